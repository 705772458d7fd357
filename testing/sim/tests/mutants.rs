//! Every fault that can be put in is found by the checker of the law that it breaks, on a search or a seed that finds
//! nothing without it. Run with
//! `RUSTFLAGS='--cfg mutants' cargo test -p sim --test mutants --target-dir target/mutants`.
#![cfg(mutants)]

use sim::client::{self, Reach};
use sim::explore::{self, Size};
use sim::{Law, Violation, http, pair, shell};
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
    /// Under seeds, over the client on a stream.
    Client,
    /// Under seeds, over the client on HTTP.
    HttpClient,
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
    (Mutant::KeepDroppedCalls, Law::Closing, Where::Client),
    (Mutant::CrossCalls, Law::Outcome, Where::Client),
    (Mutant::ForgetCallDeadlines, Law::Answer, Where::Client),
    (Mutant::ForgetWhatWasSent, Law::Outcome, Where::Client),
    (Mutant::CloseOnBadBytes, Law::Outcome, Where::Client),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Client),
    (Mutant::KeepDroppedTasks, Law::Closing, Where::Client),
    (Mutant::KeepDroppedTasks, Law::Closing, Where::HttpClient),
    (Mutant::IgnoreLateTasks, Law::Closing, Where::Client),
    (Mutant::LeaveTasks, Law::Closing, Where::Client),
    (Mutant::LeaveTasks, Law::Closing, Where::HttpClient),
    (Mutant::AnswerTasksAgain, Law::OneEnding, Where::Client),
    (Mutant::ForgetTotal, Law::Answer, Where::Client),
    (Mutant::OutlastClose, Law::Closing, Where::Client),
    (Mutant::SleepOn, Law::Closing, Where::Client),
    (Mutant::TellEarly, Law::Order, Where::Client),
    (Mutant::KeepStale, Law::Outcome, Where::Client),
    (Mutant::KeepExpired, Law::Outcome, Where::Client),
    (Mutant::KeepExpired, Law::Outcome, Where::HttpClient),
    (Mutant::RepeatHarmful, Law::Outcome, Where::Client),
    (Mutant::ForgetLostSubscriptions, Law::Closing, Where::HttpClient),
    (Mutant::HoldWhileUnsubscribing, Law::Closing, Where::Client),
    (Mutant::SendAgain, Law::Identity, Where::HttpClient),
    (Mutant::KeepHalfRead, Law::Answer, Where::HttpClient),
    (Mutant::BrokenIsUnsent, Law::Outcome, Where::HttpClient),
    (Mutant::KeepResponses, Law::Closing, Where::HttpClient),
    (Mutant::KeepTasks, Law::Closing, Where::HttpClient),
    (Mutant::KeepLostSession, Law::Closing, Where::HttpClient),
    (Mutant::CrossCalls, Law::Outcome, Where::HttpClient),
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
    catch(|place| matches!(place, Where::Shell), |seed| shell::run_seed(seed).map(drop));
}

#[test]
fn seeds_over_http_catch_its_faults() {
    catch(|place| matches!(place, Where::Http), |seed| http::run_seed(seed).map(drop));
}

#[test]
fn seeds_of_the_client_catch_its_faults() {
    catch(|place| matches!(place, Where::Client), |seed| client::run_seed(Reach::Stream, seed).map(drop));
}

#[test]
fn seeds_of_the_client_over_http_catch_its_faults() {
    catch(|place| matches!(place, Where::HttpClient), |seed| client::run_seed(Reach::Http, seed).map(drop));
}

/// Each fault that is looked for there is found under a seed that passes without it.
fn catch(there: impl Fn(&Where) -> bool, run: impl Fn(u64) -> Result<(), Violation>) {
    let mut missed = Vec::new();
    for (mutant, law, place) in TABLE {
        if !there(place) {
            continue;
        }
        let breaks = |seed: &u64| with(*mutant, || run(*seed)).is_err_and(|violation| violation.law == *law);
        match (0..SEEDS).find(breaks) {
            Some(seed) => assert!(run(seed).is_ok(), "seed {seed} fails without {mutant:?} too"),
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
