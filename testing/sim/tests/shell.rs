//! The real shell under seeds: the laws hold, a run can be replayed, and faults that were put in are found.

use sim::shell;

/// Few enough for every run of the tests; `cargo run --release -p sim` does many more.
const SEEDS: u64 = 300;

/// How many seeds to run, if the environment says so.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn the_laws_hold_over_the_real_shell() {
    let mut laws = Vec::new();
    let mut all = shell::Totals::default();
    for seed in 0..seeds() {
        let violation = match shell::run_seed(seed) {
            Ok(totals) => {
                all += totals;
                continue;
            }
            Err(violation) => violation,
        };
        // One of each law is enough to read.
        if !laws.contains(&violation.law) {
            println!("seed {seed}: {}", shell::shrink(seed).map_or_else(String::new, |shrunk| shrunk.to_string()));
            laws.push(violation.law);
        }
    }
    println!("{all}");
    assert!(laws.is_empty(), "these laws were broken: {laws:?}");
}

#[test]
fn a_seed_replays_byte_for_byte() {
    for seed in 0..SEEDS / 10 {
        let (first, second) = (shell::run_seed(seed), shell::run_seed(seed));
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn seeds_differ() {
    assert_ne!(shell::run_seed(1).map(|totals| totals.trace), shell::run_seed(2).map(|totals| totals.trace));
}

#[cfg(mutants)]
mod mutants {
    use sim::{Law, shell};
    use steadfast_proto::mutant::{Mutant, with};

    /// Under some seed that passes without the fault, the fault is found as a breach of one of these laws.
    fn is_caught(mutant: Mutant, laws: &[Law]) {
        for seed in 0..super::SEEDS {
            let Err(violation) = with(mutant, || shell::run_seed(seed)) else { continue };
            assert!(laws.contains(&violation.law), "seed {seed}: {mutant:?} shows as {violation}");
            assert!(shell::run_seed(seed).is_ok(), "seed {seed} fails without {mutant:?} too");
            return;
        }
        panic!("{mutant:?} was not caught in {} seeds", super::SEEDS);
    }

    #[test]
    fn a_panic_that_is_not_answered_is_caught() {
        is_caught(Mutant::SwallowPanic, &[Law::Answer, Law::Isolation]);
    }

    #[test]
    fn a_handler_that_is_not_stopped_is_caught() {
        is_caught(Mutant::IgnoreStop, &[Law::Closing]);
    }
}
