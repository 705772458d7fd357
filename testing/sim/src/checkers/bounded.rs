//! L7: limits hold: requests that run, calls that wait, bytes that wait, the length of a message. Below a limit nothing
//! is refused because of it.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, ResponseOwner};
use crate::observation::message::Part;

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    let limits = &facts.settings.limits;
    match seen {
        Observation::Started { id, .. } => {
            if facts.live_executions() >= limits.in_flight {
                report.broken(
                    Law::Bounded,
                    format!(
                        "request {id}: expected a refusal at the limit of {} in flight, observed a start",
                        limits.in_flight
                    ),
                );
            }
            if matches!(&facts.cause, Some(Observation::Received(message)) if message.too_long) {
                report.broken(
                    Law::Bounded,
                    format!("request {id}: expected a refusal of a message over the size limit, observed a start"),
                );
            }
        }
        Observation::Called(called) if called.accepted && facts.open_calls() >= limits.calls => {
            report.broken(
                Law::Bounded,
                format!(
                    "call {}: expected an error at the limit of {} calls, observed that it was accepted",
                    called.call, limits.calls
                ),
            );
        }
        Observation::Sent { message, .. } => {
            for part in &message.parts {
                let Part::Answer(answer) = part else { continue };
                let ResponseOwner::Request(place) = facts.recipient(answer) else { continue };
                let Some(request) = facts.requests.get(place) else { continue };
                let limit = u64::try_from(limits.in_flight).unwrap_or(u64::MAX);
                if answer.limit == Some(limit) && request.live_before < limits.in_flight {
                    let live = request.live_before;
                    report.broken(
                        Law::Bounded,
                        format!(
                            "request {}: expected a start below the limit, observed a refusal with {live} in flight",
                            request.id
                        ),
                    );
                }
            }
        }
        Observation::Settled { waiting, .. } => {
            // What waits may pass the budget by what was already accepted when it was reached, and by one message more.
            let each = facts.settings.longest_frame * (2 + limits.queued_logs);
            let most = limits.outbox_bytes
                + limits.in_flight * each
                + limits.calls * facts.settings.longest_frame
                + limits.message_bytes;
            if *waiting > most {
                report.broken(
                    Law::Bounded,
                    format!("expected at most {most} bytes of unwritten output, observed {waiting}"),
                );
            }
        }
        _ => {}
    }
}
