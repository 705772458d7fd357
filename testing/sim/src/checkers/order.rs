//! L9: a peer sees messages in the order in which they were committed.
//!
//! Answers, calls and log messages are committed when a handler or a caller gives them; whatever goes out has nothing
//! before it that went out later. Progress comes before the result and only grows; the cancellation of a call comes after
//! the call.

use std::collections::VecDeque;

use super::Report;
use crate::law::Law;
use crate::observation::ledger::{Ledger, Phase};
use crate::observation::message::{Message, Part};
use crate::observation::{CallNumber, Execution, Observation};

/// A message that was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mark {
    Answer(Execution),
    Log(u64),
    Call(CallNumber),
}

/// What was committed and is not on the wire, in order.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Order {
    committed: VecDeque<Mark>,
}

impl Order {
    pub(super) fn check(&mut self, facts: &Ledger, seen: &Observation, report: &mut Report) {
        match seen {
            Observation::Responded(execution) => {
                let request = facts.request(*execution);
                // The answers of a batch are committed together, by its last.
                if request.is_some_and(|request| request.phase == Phase::Running && !request.batch) {
                    self.committed.push_back(Mark::Answer(*execution));
                }
            }
            Observation::Logged { execution, marker }
                if facts.request(*execution).is_some_and(|request| request.phase == Phase::Running) =>
            {
                self.committed.push_back(Mark::Log(*marker));
            }
            // A call that is held until the peer is ready is committed then, which cannot be seen from outside.
            Observation::Called(called) if called.accepted && !facts.would_hold(called.method) => {
                self.committed.push_back(Mark::Call(called.call));
            }
            Observation::Sent { message, call } => self.check_sent(facts, message, *call, report),
            Observation::CallEnded { call, .. } => self.committed.retain(|mark| *mark != Mark::Call(*call)),
            Observation::WriteFailed => self.committed.clear(),
            Observation::Settled { waiting: 0, .. } if !facts.in_transit => {
                // Nothing waits: log messages that are left were dropped.
                self.committed.retain(|mark| matches!(mark, Mark::Call(_) | Mark::Answer(_)));
            }
            _ => {}
        }
    }

    fn check_sent(&mut self, facts: &Ledger, message: &Message, call: Option<CallNumber>, report: &mut Report) {
        if let Some(call) = call.filter(|call| facts.call(*call).is_some_and(|call| !call.held)) {
            self.sent(facts, Mark::Call(call), report);
        }
        for part in &message.parts {
            match part {
                Part::Answer(answer) => {
                    if let Some(execution) = answer.marker.filter(|_| !message.batch) {
                        self.sent(facts, Mark::Answer(execution), report);
                    }
                }
                Part::Log { marker: Some(marker) } => self.sent(facts, Mark::Log(*marker), report),
                Part::Progress { token: Some(token), value } => check_progress(facts, token, *value, report),
                Part::Cancel { id: Some(id) } if !facts.calls.iter().any(|call| call.id.as_ref() == Some(id)) => {
                    report.broken(
                        Law::Order,
                        format!(
                            "call {id}: expected its request before its cancellation, observed the cancellation first"
                        ),
                    );
                }
                _ => {}
            }
        }
    }

    fn sent(&mut self, facts: &Ledger, mark: Mark, report: &mut Report) {
        let Some(place) = self.committed.iter().position(|committed| *committed == mark) else {
            report.broken(
                Law::Order,
                format!("{mark:?}: expected on the wire once and in order, observed again or out of order"),
            );
            return;
        };
        for overtaken in self.committed.drain(..=place).filter(|other| *other != mark) {
            match overtaken {
                // Log messages may be dropped, and calls cancelled; if they show later, they were overtaken.
                Mark::Log(_) => {}
                Mark::Call(call) if facts.call(call).is_none_or(|call| !call.is_open()) => {}
                Mark::Call(_) | Mark::Answer(_) => {
                    report.broken(
                        Law::Order,
                        format!("expected {overtaken:?} before {mark:?}, as committed, observed {mark:?} first"),
                    );
                }
            }
        }
    }
}

fn check_progress(facts: &Ledger, token: &crate::observation::message::Id, value: u64, report: &mut Report) {
    let Some(request) = facts.progress_place(token).and_then(|place| facts.requests.get(place)) else { return };
    if request.answers > 0 {
        report.broken(
            Law::Order,
            format!("request {}: expected nothing after its answer, observed progress", request.id),
        );
    }
    // A damaged token may be that of another request: then it is not known which of the two it is about.
    let shared = facts.shares_token(token);
    if !shared && request.progress.is_some_and(|before| f64::from_bits(value) <= f64::from_bits(before)) {
        report.broken(
            Law::Order,
            format!("request {}: expected increasing progress, observed a value that is not larger", request.id),
        );
    }
}
