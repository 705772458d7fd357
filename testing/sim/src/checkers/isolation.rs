//! L6: what one request or one bad message does is not felt by others.
//!
//! A message that cannot be read neither starts, stops nor ends anything; it can only tell a caller that its answer cannot
//! be read. What a handler does touches its own request. Nothing panics.

use super::Report;
use crate::law::Law;
use crate::observation::ledger::Ledger;
use crate::observation::{CallOutcome, Execution, Observation};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    let Some(cause) = &facts.cause else { return };
    if let Observation::Panicked(why) = seen {
        report.broken(Law::Isolation, format!("expected no panic of the connection, observed {why}"));
    }
    match cause {
        Observation::Received(message) if message.is_unreadable() => {
            let felt = match seen {
                Observation::Started { .. } | Observation::Stopped { .. } | Observation::Closed(_) => true,
                Observation::CallEnded { how, .. } => *how != CallOutcome::Unreadable,
                _ => false,
            };
            if felt {
                report
                    .broken(Law::Isolation, format!("expected no effect of an unreadable message, observed {seen:?}"));
            }
        }
        Observation::Responded(own)
        | Observation::Progressed(own)
        | Observation::Logged { execution: own, .. }
        | Observation::ExecutionEnded(own) => check_own(facts, *own, seen, report),
        _ => {}
    }
}

fn check_own(facts: &Ledger, own: Execution, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Stopped { execution, .. } if *execution != own && !facts.closed && facts.ending.is_none() => {
            report.broken(
                Law::Isolation,
                format!("expected execution {own} to affect only itself, observed a stop of execution {execution}"),
            );
        }
        Observation::CallEnded { call, .. } if facts.ending.is_none() => {
            let parent = facts.call(*call).and_then(|call| call.called.parent);
            if parent != Some(own) {
                report.broken(
                    Law::Isolation,
                    format!("expected execution {own} to end only its own calls, observed the end of call {call}"),
                );
            }
        }
        _ => {}
    }
}
