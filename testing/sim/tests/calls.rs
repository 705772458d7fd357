//! The real client under seeds, over a stream and over HTTP: the laws hold, a run can be replayed, and what is simulated is
//! what it is about.

use sim::client::{self, Totals, TransportKind};

/// Few enough for every run of the tests; `cargo run --release -p sim` does many more.
const SEEDS: u64 = 300;

/// How many seeds to run, if the environment says so.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// Runs the seeds, and returns what they came to.
fn lawful(transport: TransportKind) -> Totals {
    let mut found = Vec::new();
    let mut all = Totals::default();
    for seed in 0..seeds() {
        let violation = match client::run_seed(transport, seed) {
            Ok(totals) => {
                all += totals;
                continue;
            }
            Err(violation) => violation,
        };
        // One of each law is enough to read.
        if !found.contains(&violation.law) {
            println!(
                "seed {seed}: {}",
                client::shrink(transport, seed).map_or_else(String::new, |shrunk| shrunk.to_string())
            );
            found.push(violation.law);
        }
    }
    println!("{all}");
    assert!(found.is_empty(), "these laws were broken: {found:?}");
    all
}

#[test]
fn the_laws_hold_over_a_stream() {
    let all = lawful(TransportKind::Stream);
    let least = [all.opened, all.done, all.dropped, all.cancellations, all.questions].into_iter().min();
    assert!(least.is_some_and(|least| least * 4 > seeds()), "hardly anything happens: {all}");
    assert!(all.goes_beyond_one_request(seeds() / 30), "hardly anything takes more than a request: {all}");
}

#[test]
fn the_laws_hold_over_http() {
    let all = lawful(TransportKind::Http);
    let least = [all.opened, all.done, all.dropped, all.resumed, all.questions].into_iter().min();
    assert!(least.is_some_and(|least| least * 10 > seeds()), "hardly anything happens: {all}");
    assert!(all.goes_beyond_one_request(seeds() / 30), "hardly anything takes more than a request: {all}");
}

#[test]
fn a_seed_replays_event_for_event() {
    for transport in [TransportKind::Stream, TransportKind::Http] {
        for seed in 0..SEEDS / 10 {
            let (first, second) = (client::run_seed(transport, seed), client::run_seed(transport, seed));
            assert_eq!(first, second, "{transport:?}, seed {seed}");
        }
    }
}

#[test]
fn seeds_differ() {
    let trace = |seed| client::run_seed(TransportKind::Stream, seed).map(|totals| totals.trace);
    assert_ne!(trace(1), trace(2));
}
