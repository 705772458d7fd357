//! Every fault that can be put in is found by the checker of the law that it breaks, on a search or a seed that finds
//! nothing without it. Run with
//! `RUSTFLAGS='--cfg mutants' cargo test -p sim --test mutants --target-dir target/mutants`.
#![cfg(mutants)]

use sim::explore::{self, Size};
use sim::{Law, http, pair, shell};
use steadfast_proto::mutant::{Mutant, with};

/// Where a fault is looked for.
enum Where {
    /// In a small world, searched through.
    World(&'static str),
    /// Under seeds, over the two cores.
    Seeds,
    /// Under seeds, over the real shell.
    Shell,
    /// Under seeds, over the HTTP service.
    Http,
}

const TABLE: &[(Mutant, Law, Where)] = &[
    (Mutant::AnswerTwice, Law::OneEnding, Where::World("server")),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Seeds),
    (Mutant::AnswerAfterCancel, Law::Silence, Where::World("server")),
    (Mutant::AnswerAfterCancel, Law::Silence, Where::World("modern server")),
    (Mutant::ForgetTheUnanswered, Law::Answer, Where::World("server")),
    (Mutant::ForgetTheUnanswered, Law::Answer, Where::Seeds),
    (Mutant::ForgetDeadlines, Law::Answer, Where::World("server")),
    (Mutant::KeepFramesOfCancelled, Law::Silence, Where::World("notifications")),
    (Mutant::KeepFramesOfCancelled, Law::Silence, Where::Seeds),
    (Mutant::PanicOnLateCancel, Law::Lateness, Where::World("duplicates")),
    (Mutant::PanicOnLateAnswer, Law::Lateness, Where::World("duplicates")),
    (Mutant::CloseOnBadBytes, Law::Isolation, Where::World("notifications")),
    (Mutant::CloseOnBadBytes, Law::Isolation, Where::Seeds),
    (Mutant::ForgetToReap, Law::Closing, Where::World("endings")),
    (Mutant::IterateWhileRemoving, Law::Closing, Where::World("calls")),
    (Mutant::LoseWaiterOnClose, Law::Closing, Where::World("calls")),
    (Mutant::LoseWaiterOnClose, Law::Closing, Where::World("client")),
    (Mutant::DrainForever, Law::Closing, Where::World("endings")),
    (Mutant::IgnoreLimit, Law::Bounded, Where::World("duplicates")),
    (Mutant::IgnoreLimit, Law::Bounded, Where::Seeds),
    (Mutant::AcceptDuplicateId, Law::Identity, Where::World("duplicates")),
    (Mutant::ConfuseTextAndNumber, Law::Identity, Where::World("server")),
    (Mutant::AnswerOvertakes, Law::Order, Where::World("server")),
    (Mutant::DropOutboxEntry, Law::OneEnding, Where::Seeds),
    (Mutant::ForgetWhatWasSent, Law::Outcome, Where::World("client")),
    (Mutant::SwallowPanic, Law::Answer, Where::Shell),
    (Mutant::IgnoreStop, Law::Closing, Where::Shell),
    (Mutant::ResumeTooEarly, Law::Order, Where::Http),
    (Mutant::CloseWithResponse, Law::Answer, Where::Http),
    (Mutant::CutIsCancellation, Law::Answer, Where::Http),
    (Mutant::IgnoreHangup, Law::Closing, Where::Http),
    (Mutant::KeepDeleted, Law::Closing, Where::Http),
    (Mutant::KeepIdle, Law::Closing, Where::Http),
    (Mutant::CrossStreams, Law::Identity, Where::Http),
    (Mutant::KeepUnreadOfCancelled, Law::Silence, Where::Http),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Http),
];

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
        let Where::World(world) = place else { continue };
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
        if !matches!(place, Where::Seeds) {
            continue;
        }
        let seed = (0..SEEDS).find(|seed| with(*mutant, || pair::run(*seed)).breaks(*law));
        let seed = seed.unwrap_or_else(|| panic!("{mutant:?} does not break {law} under {SEEDS} seeds"));
        assert_eq!(pair::run(seed).violations, [], "seed {seed} fails without {mutant:?} too");
    }
}

#[test]
fn seeds_of_the_shell_catch_its_faults() {
    for (mutant, law, place) in TABLE {
        if !matches!(place, Where::Shell) {
            continue;
        }
        let breaks =
            |seed: &u64| with(*mutant, || shell::run_seed(*seed)).is_err_and(|violation| violation.law == *law);
        let seed = (0..SEEDS).find(breaks);
        let seed = seed.unwrap_or_else(|| panic!("{mutant:?} does not break {law} under {SEEDS} seeds"));
        assert!(shell::run_seed(seed).is_ok(), "seed {seed} fails without {mutant:?} too");
    }
}

#[test]
fn seeds_over_http_catch_its_faults() {
    let mut missed = Vec::new();
    for (mutant, law, place) in TABLE {
        if !matches!(place, Where::Http) {
            continue;
        }
        let breaks = |seed: &u64| with(*mutant, || http::run_seed(*seed)).is_err_and(|violation| violation.law == *law);
        match (0..SEEDS).find(breaks) {
            Some(seed) => assert!(http::run_seed(seed).is_ok(), "seed {seed} fails without {mutant:?} too"),
            None => missed.push(format!("{mutant:?} does not break {law} under {SEEDS} seeds")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn small_worlds_are_lawful_without_faults() {
    for (_, _, place) in TABLE {
        let Where::World(world) = place else { continue };
        if let Err(counterexample) = explore::explore(world, Size::Tiny) {
            panic!("{counterexample}");
        }
    }
}
