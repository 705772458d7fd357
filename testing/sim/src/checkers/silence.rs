//! L3: once a cancellation is processed before the response was committed, nothing more about that request is written:
//! no result, no error, no progress, no log. The calls that its handler made are cancelled in the same step.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, Phase, ResponseOwner};
use crate::observation::message::{Answer, Part};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Sent { message, .. } => {
            for part in &message.parts {
                match part {
                    Part::Answer(answer) => check_answer(facts, answer, report),
                    Part::Progress { token: Some(token), .. } => {
                        // A damaged token may be that of another request, which was not cancelled: then it is of that one.
                        let mut of_token =
                            facts.requests.iter().rev().filter(|request| request.token.as_ref() == Some(token));
                        let cancelled = of_token.clone().all(|request| request.phase == Phase::Cancelled);
                        if let Some(request) = of_token.next().filter(|_| cancelled) {
                            report.broken(
                                Law::Silence,
                                format!(
                                    "request {}: expected silence after its cancellation, observed progress",
                                    request.id
                                ),
                            );
                        }
                    }
                    Part::Log { marker: Some(marker) } => {
                        let of_marker = facts.request(marker / LOGS_EACH);
                        if let Some(request) = of_marker.filter(|request| request.phase == Phase::Cancelled) {
                            report.broken(
                                Law::Silence,
                                format!(
                                    "request {}: expected silence after its cancellation, observed a log message",
                                    request.id
                                ),
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
        Observation::Settled { .. } => {
            for call in facts.calls.iter().filter(|call| call.is_open()) {
                let parent = call.called.parent.and_then(|parent| facts.request(parent));
                if parent.is_some_and(|request| request.phase == Phase::Cancelled) {
                    report.broken(
                        Law::Silence,
                        format!(
                            "call {}: expected its end with the cancelled request that made it, observed an open call",
                            call.called.call
                        ),
                    );
                }
            }
        }
        _ => {}
    }
}

/// Log messages carry `execution * LOGS_EACH + n`.
pub(crate) const LOGS_EACH: u64 = 1_000;

fn check_answer(facts: &Ledger, answer: &Answer, report: &mut Report) {
    let cancelled = match facts.recipient(answer) {
        ResponseOwner::Request(place) => facts.requests.get(place).filter(|request| request.phase == Phase::Cancelled),
        ResponseOwner::Refusal => None,
        // An error of the connection's own for which no request waits.
        ResponseOwner::Unexpected => facts
            .requests
            .iter()
            .rev()
            .find(|request| Some(&request.id) == answer.id.as_ref())
            .filter(|request| request.phase == Phase::Cancelled),
    };
    if let Some(request) = cancelled {
        report.broken(
            Law::Silence,
            format!("request {}: expected silence after its cancellation, observed an answer", request.id),
        );
    }
}
