//! L4: what comes late, twice or for nothing is a no-op with a log line.
//!
//! A cancellation for a request that is not running, an answer to no call, an answer of a handler whose request has ended:
//! the step that it begins has no effect but a line for the log.

use super::Report;
use crate::law::Law;
use crate::observation::Observation;
use crate::observation::ledger::{Ledger, Phase};
use crate::observation::message::{Message, Part};

/// What is late in the step that is going on.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Lateness {
    late: Option<&'static str>,
    logged: bool,
}

impl Lateness {
    pub(super) fn check(&mut self, facts: &Ledger, seen: &Observation, report: &mut Report) {
        match seen {
            Observation::Received(message) => self.begin(late_message(facts, message)),
            Observation::Responded(execution) => {
                let running = facts.request(*execution).is_some_and(|request| request.phase == Phase::Running);
                self.begin((!running).then_some("a late response"));
            }
            Observation::LogLine(_) => self.logged = true,
            Observation::Started { .. }
            | Observation::Stopped { .. }
            | Observation::CallEnded { .. }
            | Observation::Closed(_) => {
                if let Some(late) = self.late {
                    report.broken(Law::Lateness, format!("{late}: expected no effect, observed {seen:?}"));
                }
            }
            Observation::Panicked(why) => {
                if let Some(late) = self.late {
                    report.broken(Law::Lateness, format!("{late}: expected no effect, observed a panic: {why}"));
                }
            }
            Observation::Settled { .. } => {
                if let Some(late) = self.late.filter(|_| !self.logged && !facts.closed && !facts.panicked) {
                    report.broken(Law::Lateness, format!("{late}: expected a warning, observed none"));
                }
                *self = Self::default();
            }
            _ => {}
        }
    }

    fn begin(&mut self, late: Option<&'static str>) {
        *self = Self { late, logged: false };
    }
}

/// Why a message has to be without effect, if it has.
fn late_message(facts: &Ledger, message: &Message) -> Option<&'static str> {
    if facts.closed || facts.input_ended {
        // It is not read at all.
        return None;
    }
    let [part] = message.parts.as_slice() else { return None };
    if message.batch {
        return None;
    }
    match part {
        Part::Cancel { id: None } => Some("a cancellation without an id"),
        Part::Cancel { id: Some(id) } if facts.only_asks() => {
            let listens = facts.open_call(id).is_some_and(|call| call.called.method == "subscriptions/listen");
            (!listens).then_some("a cancellation of a call that is no subscription")
        }
        Part::Cancel { id: Some(id) } => facts.running(id).is_none().then_some("a late cancellation"),
        Part::Answer(answer) => {
            let waiting = answer.id.as_ref().and_then(|id| facts.open_call(id));
            // An id that is not on the wire yet can be guessed: whether that counts as its answer is not for this law.
            let guessed = answer.id.is_some() && facts.calls.iter().any(|call| call.is_open() && call.id.is_none());
            (waiting.is_none() && !guessed).then_some("a response with an unknown id")
        }
        _ => None,
    }
}
