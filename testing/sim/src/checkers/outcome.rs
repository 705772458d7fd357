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
                return report.broken(Law::Outcome, format!("call {number} ended and was never taken"));
            };
            if call.ended {
                report.broken(Law::Outcome, format!("call {number} ended twice"));
            }
            match how.claims_sent() {
                Some(false) if call.written => {
                    report.broken(Law::Outcome, format!("call {number} was reported as not sent, but was sent"));
                }
                Some(true) if call.id.is_none() => {
                    report.broken(Law::Outcome, format!("call {number} is said to have been sent, and was not"));
                }
                _ => {}
            }
            if matches!(how, CallOutcome::TimedOut { .. }) && !facts.is_call_overdue(call) {
                report.broken(Law::Outcome, format!("call {number} is said to have timed out before its time"));
            }
        }
        Observation::Sent { call: Some(number), .. }
            if facts.call(*number).is_none_or(|call| call.ended || !call.called.accepted) =>
        {
            report.broken(Law::Outcome, format!("call {number} was sent after it was dropped"));
        }
        Observation::Settled { .. } if matches!(facts.cause, Some(Observation::TimedOut)) => {
            for call in facts.calls.iter().filter(|call| call.is_open() && facts.is_call_overdue(call)) {
                report.broken(Law::Outcome, format!("call {} waits past its timeout", call.called.call));
            }
        }
        Observation::Settled { .. } => {
            if let Some(Observation::GaveUp(number)) = facts.cause
                && facts.call(number).is_some_and(crate::observation::ledger::CallFacts::is_open)
            {
                report.broken(Law::Outcome, format!("call {number} was given up and goes on"));
            }
        }
        _ => {}
    }
}
