//! The laws hold: in every interleaving of small worlds, and under seeds. A smoke of what `cargo run -p sim` does at length.

use sim::explore::{self, Size};
use sim::{failed_seeds, pair};

#[test]
fn every_interleaving_of_small_worlds_is_lawful() {
    for name in explore::names() {
        match explore::explore(name, Size::Tiny) {
            Ok(totals) => assert!(totals.states > 100 && totals.quiet > 0, "{name}: {totals}"),
            Err(counterexample) => panic!("{counterexample}"),
        }
    }
}

#[test]
fn recognising_states_hides_nothing() {
    for name in explore::names() {
        let (states, paths) = explore::cross_check(name, 5).unwrap_or_else(|why| panic!("{why}"));
        assert!(paths > states, "{name}: {paths} paths, {states} states");
    }
}

#[test]
fn seeds_are_lawful() {
    for seed in 0..500 {
        if let Some(failure) = pair::examine(seed, None) {
            panic!("{failure}");
        }
    }
}

#[test]
fn seeds_that_failed_once_are_lawful() {
    for (world, seed) in failed_seeds::all() {
        if let Err(violation) = world.run(seed) {
            panic!("{world}, seed {seed}: {violation}");
        }
    }
}
