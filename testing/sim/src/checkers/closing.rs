//! L5: nothing outlives the connection.
//!
//! Once closing has begun: it is over by its deadline, and at once when nothing is left to wait for. When it is over: every
//! handler that still runs has a reason to stop, every call has ended, no timer is set, and nothing more happens.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, Phase};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Closed(_) => check_closed(facts, report),
        Observation::Started { .. }
        | Observation::Stopped { .. }
        | Observation::CallEnded { .. }
        | Observation::Sent { .. }
            if facts.closed =>
        {
            report.broken(Law::Closing, format!("expected no effect after the connection closed, observed {seen}"));
        }
        Observation::Settled { waiting, deadline, wants_input } => {
            if facts.closed {
                if deadline.is_some() || *wants_input || *waiting > 0 {
                    report.broken(
                        Law::Closing,
                        format!("expected a closed connection to ask for nothing, observed {seen:?}"),
                    );
                }
            } else {
                check_ending(facts, *waiting, report);
            }
            if facts.input_ended && facts.open_calls() > 0 {
                report.broken(Law::Closing, "expected every call to end at the end of input, observed an open call");
            }
        }
        Observation::Quiet => {
            if facts.ending.is_some() && !facts.closed {
                report.broken(Law::Closing, "expected the connection to close, observed a drain that never ends");
            }
            if facts.closed && facts.open_calls() > 0 {
                report.broken(Law::Closing, "expected no open call on a closed connection, observed one");
            }
        }
        _ => {}
    }
}

fn check_closed(facts: &Ledger, report: &mut Report) {
    if facts.ending.is_none() {
        report.broken(Law::Closing, "expected a cause for the close, observed none");
    }
    for request in facts.requests.iter().filter(|request| request.live && request.stop_reason.is_none()) {
        report.broken(
            Law::Closing,
            format!("request {}: expected its handler to be stopped at the close, observed no stop", request.id),
        );
    }
    for request in facts.requests.iter().filter(|request| request.phase == Phase::Running) {
        report.broken(
            Law::Closing,
            format!("request {}: expected its end at the close, observed that it is still open", request.id),
        );
    }
    for call in facts.calls.iter().filter(|call| call.is_open()) {
        report.broken(
            Law::Closing,
            format!("call {}: expected its end at the close, observed that it is still open", call.called.call),
        );
    }
}

fn check_ending(facts: &Ledger, waiting: usize, report: &mut Report) {
    let Some(ending) = facts.ending else { return };
    let timed = matches!(facts.cause, Some(Observation::TimedOut));
    if timed && ending.deadline <= facts.now {
        report.broken(Law::Closing, "expected the drain to end at its deadline, observed that it goes on");
    }
    let busy = facts.live_executions() > 0 || facts.requests.iter().any(|request| request.phase == Phase::Running);
    let unwritten = !facts.output_failed && (waiting > 0 || facts.in_transit);
    // A window that has passed is acted on by the timeout, not before.
    let input_done = facts.input_ended || facts.output_failed || facts.input_is_done() && timed;
    if input_done && !busy && !unwritten {
        report.broken(Law::Closing, "expected the drain to end when nothing is left, observed an open connection");
    }
}
