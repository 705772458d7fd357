//! L1: every accepted request ends exactly once.
//!
//! Never twice: no two answers for one request, no answer for none. Never zero times: an answer that a handler gave in time
//! is on the wire when everything is quiet, and when a connection that could still write has closed before its deadline.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, Phase, ResponseOwner};
use crate::observation::message::Part;

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Sent { message, .. } => {
            for part in &message.parts {
                if let Part::Answer(answer) = part {
                    check_answer(facts, answer, report);
                }
            }
        }
        Observation::Quiet if !facts.closed && !facts.output_failed => check_nothing_lost(facts, report),
        Observation::Closed(_)
            if !facts.output_failed && facts.ending.is_some_and(|ending| facts.now < ending.deadline) =>
        {
            check_nothing_lost(facts, report);
        }
        _ => {}
    }
}

fn check_answer(facts: &Ledger, answer: &crate::observation::message::Answer, report: &mut Report) {
    match facts.recipient(answer) {
        ResponseOwner::Request(place) => {
            let Some(request) = facts.requests.get(place) else { return };
            if request.answers > 0 {
                report
                    .broken(Law::OneEnding, format!("request {}: expected one answer, observed a second", request.id));
            }
            if request.phase == Phase::Running {
                report.broken(
                    Law::OneEnding,
                    format!(
                        "request {}: expected an answer after its handler responded, observed one while it runs",
                        request.id
                    ),
                );
            }
        }
        ResponseOwner::Refusal => {}
        ResponseOwner::Unexpected => {
            let id = answer.id.as_deref().unwrap_or("none");
            let known = facts.requests.iter().any(|request| Some(&request.id) == answer.id.as_ref());
            // An answer under an id that is in flight, or was cancelled, breaks another law.
            if !known {
                report.broken(
                    Law::OneEnding,
                    format!("expected answers only to received requests, observed one under the unknown id {id}"),
                );
            } else if facts
                .requests
                .iter()
                .any(|request| Some(&request.id) == answer.id.as_ref() && request.answers > 0)
            {
                report.broken(Law::OneEnding, format!("id {id}: expected one answer, observed a second"));
            }
        }
    }
}

fn check_nothing_lost(facts: &Ledger, report: &mut Report) {
    for request in facts.requests.iter().filter(|request| request.phase == Phase::Responded && request.answers == 0) {
        report.broken(
            Law::OneEnding,
            format!("request {}: expected the answer of its handler on the wire, observed none", request.id),
        );
    }
}
