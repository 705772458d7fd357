//! L10: a caller always learns the outcome of its call, once, and it is true: a call that is reported as not sent was
//! not, and is not sent afterwards; one that is reported as sent was taken by the writer.

use super::Report;
use crate::law::Law;
use crate::observation::ledger::Ledger;
use crate::observation::{CallOutcome, Observation};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::CallEnded { call: number, how } => {
            let Some(call) = facts.call(*number).filter(|call| call.called.accepted) else {
                return report.broken(
                    Law::Outcome,
                    format!(
                        "call {number}: expected an end only of an accepted call, observed the end of a refused one"
                    ),
                );
            };
            if call.ended {
                report.broken(Law::Outcome, format!("call {number}: expected one end, observed a second"));
            }
            match how.claims_sent() {
                Some(false) if call.written => {
                    report.broken(Law::Outcome, format!("call {number}: expected \"sent\", because its first byte was written, observed \"not sent\""));
                }
                Some(true) if call.id.is_none() => {
                    report.broken(
                        Law::Outcome,
                        format!("call {number}: expected \"not sent\", because no byte was written, observed \"sent\""),
                    );
                }
                _ => {}
            }
            if matches!(how, CallOutcome::TimedOut { .. }) && !facts.is_call_overdue(call) {
                report.broken(
                    Law::Outcome,
                    format!("call {number}: expected a timeout at its deadline, observed one before"),
                );
            }
        }
        Observation::Sent { call: Some(number), .. }
            if facts.call(*number).is_none_or(|call| call.ended || !call.called.accepted) =>
        {
            report.broken(
                Law::Outcome,
                format!("call {number}: expected nothing on the wire after it ended, observed its request"),
            );
        }
        Observation::Settled { .. } if matches!(facts.cause, Some(Observation::TimedOut)) => {
            for call in facts.calls.iter().filter(|call| call.is_open() && facts.is_call_overdue(call)) {
                report.broken(
                    Law::Outcome,
                    format!("call {}: expected a timeout at its deadline, observed an open call", call.called.call),
                );
            }
        }
        Observation::Settled { .. } => {
            if let Some(Observation::GaveUp(number)) = facts.cause
                && facts.call(number).is_some_and(crate::observation::ledger::CallFacts::is_open)
            {
                report.broken(
                    Law::Outcome,
                    format!("call {number}: expected an end after it was dropped, observed an open call"),
                );
            }
        }
        _ => {}
    }
}
