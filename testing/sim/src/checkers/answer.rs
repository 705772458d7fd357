//! L2: while the connection lives and the request is not cancelled, it is answered, whatever its handler does.
//!
//! At the end of a step: no handler is past its deadline. When everything is quiet, and when a connection closes in time:
//! no response is due, and every message that had to be refused was.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, Phase};

pub(super) fn check(facts: &Ledger, seen: &Observation, report: &mut Report) {
    match seen {
        Observation::Settled { .. } if matches!(facts.cause, Some(Observation::TimedOut)) && !facts.closed => {
            for request in
                facts.requests.iter().filter(|request| request.phase == Phase::Running && facts.is_overdue(request))
            {
                report.broken(
                    Law::Answer,
                    format!("request {}: expected an answer by its deadline, observed a running handler", request.id),
                );
            }
        }
        Observation::Quiet if !facts.closed && !facts.output_failed => {
            check_paid(facts, report);
            for request in facts.requests.iter().filter(|request| request.phase == Phase::Running) {
                // A handler that was given no deadline may run for ever; one that has ended may not be waited for.
                if !request.live || facts.is_overdue(request) {
                    report.broken(
                        Law::Answer,
                        format!(
                            "request {}: expected an answer, observed nothing left that could send one",
                            request.id
                        ),
                    );
                }
            }
        }
        Observation::Closed(_)
            if !facts.output_failed && facts.ending.is_some_and(|ending| facts.now < ending.deadline) =>
        {
            check_paid(facts, report);
        }
        _ => {}
    }
}

fn check_paid(facts: &Ledger, report: &mut Report) {
    for request in facts.requests.iter().filter(|request| request.unanswered() && request.phase != Phase::Responded) {
        report.broken(
            Law::Answer,
            format!("request {}: expected an answer, observed none in phase {:?}", request.id, request.phase),
        );
    }
    if facts.refusals_due > 0 {
        report.broken(
            Law::Answer,
            format!("expected an error for each invalid message, observed {} without one", facts.refusals_due),
        );
    }
}
