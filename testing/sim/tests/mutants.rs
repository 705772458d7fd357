//! Every fault that can be put in is found by the checker of the law that it breaks, on a search or a seed that finds
//! nothing without it. Run with
//! `RUSTFLAGS='--cfg mutants' cargo test -p sim --test mutants --target-dir target/mutants`.
#![cfg(mutants)]

use sim::explore::{self, Size};
use sim::mutants::{TABLE, Where};
use sim::worlds::World;
use sim::{Seed, failed_seeds, pair};
use steadfast_proto::mutant::{Mutant, with};

/// Seeds to look at before giving up.
const SEEDS: u64 = 2_000;

#[test]
fn every_fault_is_in_the_table() {
    for mutant in Mutant::ALL {
        assert!(TABLE.iter().any(|(listed, _, _)| listed == mutant), "{mutant:?} is not looked for");
    }
}

#[test]
fn small_worlds_catch_their_faults() {
    let mut missed = Vec::new();
    for (mutant, law, place) in TABLE {
        let Where::Explore(world) = place else { continue };
        match with(*mutant, || explore::hunt(world, Size::Tiny, *law)) {
            Some(caught) => assert!(caught.breaks(*law), "{mutant:?}:\n{caught}"),
            None => missed.push(format!("{mutant:?} does not break {law} in the world \"{world}\"")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn seeds_catch_their_faults() {
    for (mutant, law, place) in TABLE {
        if !matches!(place, Where::Seeds(World::Cores)) {
            continue;
        }
        let seed = (0..SEEDS).find(|seed| with(*mutant, || pair::run(*seed)).breaks(*law));
        let seed = seed.unwrap_or_else(|| panic!("{mutant:?} does not break {law} under {SEEDS} seeds"));
        assert_eq!(pair::run(seed).violations, [], "seed {seed} fails without {mutant:?} too");
    }
}

#[test]
fn seeds_of_the_shell_catch_its_faults() {
    catch(World::Shell);
}

#[test]
fn seeds_over_http_catch_its_faults() {
    catch(World::Http);
}

#[test]
fn seeds_of_the_client_catch_its_faults() {
    catch(World::Client);
}

#[test]
fn seeds_of_the_client_over_http_catch_its_faults() {
    catch(World::HttpClient);
}

/// Each fault that is looked for in a world is found under a seed that passes without it, with a script that is biased towards
/// the rare or with one that is not.
fn catch(world: World) {
    let mut missed = Vec::new();
    for (mutant, law, place) in TABLE {
        if *place != Where::Seeds(world) {
            continue;
        }
        let breaks = |seed: &Seed| with(*mutant, || world.run(*seed)).is_err_and(|violation| violation.law == *law);
        match (0..SEEDS).flat_map(|number| [number.into(), Seed::plain(number)]).find(breaks) {
            Some(seed) => assert!(world.run(seed).is_ok(), "seed {seed} fails without {mutant:?} too"),
            None => missed.push(format!("{mutant:?} does not break {law} under {SEEDS} seeds")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn small_worlds_are_lawful_without_faults() {
    for (_, _, place) in TABLE {
        let Where::Explore(world) = place else { continue };
        if let Err(counterexample) = explore::explore(world, Size::Tiny) {
            panic!("{counterexample}");
        }
    }
}

#[test]
fn seeds_that_failed_catch_the_faults_that_they_failed_for() {
    for (mutant, law, place) in TABLE {
        let Where::FailedSeeds(world) = place else { continue };
        let mut seeds = failed_seeds::all().into_iter().filter(|(of, _)| of == world);
        let caught = seeds.any(|(_, seed)| {
            with(*mutant, || world.run(seed)).is_err_and(|violation| violation.law == *law) && world.run(seed).is_ok()
        });
        assert!(caught, "{mutant:?} does not break {law} under the failed seeds of {world}");
    }
}
