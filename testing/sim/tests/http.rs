//! The HTTP service under seeds: the laws hold, a run can be replayed, and what is simulated is what it is about.

use sim::http;

/// Few enough for every run of the tests; `cargo run --release -p sim` does many more.
const SEEDS: u64 = 300;

/// How many seeds to run, if the environment says so.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn the_laws_hold_over_http() {
    let mut found = Vec::new();
    let mut all = http::Totals::default();
    for seed in 0..seeds() {
        let violation = match http::run_seed(seed) {
            Ok(totals) => {
                all += totals;
                continue;
            }
            Err(violation) => violation,
        };
        // One of each law is enough to read.
        if !found.contains(&violation.law) {
            println!("seed {seed}: {}", http::shrink(seed).map_or_else(String::new, |shrunk| shrunk.to_string()));
            found.push(violation.law);
        }
    }
    println!("{all}");
    assert!(found.is_empty(), "these laws were broken: {found:?}");
    let Some(least) = [all.answers, all.cancellations, all.resumed, all.questions].into_iter().min() else { return };
    assert!(least * 20 > seeds(), "hardly anything happens: {all}");
}

#[test]
fn a_seed_replays_event_for_event() {
    for seed in 0..SEEDS / 10 {
        let (first, second) = (http::run_seed(seed), http::run_seed(seed));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn seeds_differ() {
    assert_ne!(http::run_seed(1).map(|totals| totals.trace), http::run_seed(2).map(|totals| totals.trace));
}
