//! L8: an id in flight is never taken twice; `"7"` and `7` are different; ids of the two directions never meet.

use steadfast_proto::connection::CancelReason;

use super::Report;
use crate::law::Law;
use crate::observation::ledger::{Ledger, Phase, ResponseOwner};
use crate::observation::message::Part;
use crate::observation::{CallNumber, CallOutcome, Observation};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Started { id, .. } => {
            if facts.running(id).is_some() {
                report.broken(
                    Law::Identity,
                    format!("request {id}: expected a refusal of an id in flight, observed a second start"),
                );
            }
            let waits = |phase| matches!(phase, Phase::Arrived | Phase::Duplicate);
            let asked = facts
                .requests
                .iter()
                .any(|request| request.id == *id && request.execution.is_none() && waits(request.phase));
            if !asked {
                report.broken(
                    Law::Identity,
                    format!("request {id}: expected a start only after the request, observed a start without one"),
                );
            }
        }
        Observation::Stopped { execution, reason: CancelReason::Peer } => {
            let request = facts.request(*execution);
            if let Some(request) = request.filter(|request| request.phase != Phase::Cancelled) {
                report.broken(
                    Law::Identity,
                    format!(
                        "request {}: expected a stop only after its cancellation, observed one without it",
                        request.id
                    ),
                );
            }
        }
        Observation::CallEnded { call, how } => check_call(facts, *call, how, report),
        Observation::Sent { message, .. } => {
            for part in &message.parts {
                let Part::Answer(answer) = part else { continue };
                let Some(id) = &answer.id else { continue };
                let Some(running) = facts.running(id) else { continue };
                let confusing = match facts.recipient(answer) {
                    // One that was refused before this one came is not to blame.
                    ResponseOwner::Refusal => facts.refusals_sent >= running.refusals_before,
                    ResponseOwner::Unexpected => true,
                    ResponseOwner::Request(_) => false,
                };
                if confusing {
                    report.broken(
                        Law::Identity,
                        format!("id {id}: expected no error under the id of a request in flight, observed one"),
                    );
                }
            }
        }
        _ => {}
    }
}

/// A call ends by a response of the peer only if the response has its id, and with the content of that response.
fn check_call(facts: &Ledger, call: CallNumber, how: &CallOutcome, report: &mut Report) {
    let Some(Observation::Received(message)) = &facts.cause else { return };
    let Some(id) = facts.call(call).and_then(|call| call.id.as_ref()) else { return };
    let matches = message.parts.iter().any(|part| match (part, how) {
        (Part::Answer(answer), CallOutcome::Answered(text)) => {
            answer.id.as_ref() == Some(id) && answer.result.as_ref() == Some(text)
        }
        (Part::Answer(answer), CallOutcome::Refused(code)) => {
            answer.id.as_ref() == Some(id) && answer.code == Some(*code)
        }
        (Part::Answer(answer), CallOutcome::Unreadable) => answer.id.as_ref() == Some(id),
        (Part::Cancel { id: named }, CallOutcome::ByPeer) => named.as_ref() == Some(id),
        // A line that could not be read, or the calls of a request that was cancelled.
        (Part::Unreadable { .. }, CallOutcome::Unreadable) | (Part::Cancel { .. }, CallOutcome::Cancelled { .. }) => {
            true
        }
        _ => false,
    });
    if !matches && !matches!(how, CallOutcome::Closed { .. }) {
        report.broken(
            Law::Identity,
            format!(
                "call {call} with id {id}: expected an end by its own response, observed {how:?} by another message"
            ),
        );
    }
}
