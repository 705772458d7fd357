//! How observations change the ledger.

use std::sync::Arc;

use steadfast_proto::connection::CancelReason;

use super::Ledger;
use super::facts::{CallFacts, DrainState, Phase, RequestFacts, ResponseOwner, Side};
use crate::observation::drain::handler_window;
use crate::observation::message::{Id, Message, Part};
use crate::observation::{CallNumber, CallRecord, Execution, Observation};

impl Ledger {
    /// Takes note of something that was seen. Checkers are asked before.
    pub(crate) fn note(&mut self, seen: &Observation) {
        match seen {
            Observation::Settled { .. } => self.settle(),
            Observation::Started { .. }
            | Observation::Stopped { .. }
            | Observation::CallEnded { .. }
            | Observation::CallProgressed(_)
            | Observation::Opened(_)
            | Observation::LogLine(_)
            | Observation::Closed(_)
            | Observation::Panicked(_)
            | Observation::Quiet => {}
            cause => self.cause = Some(cause.clone()),
        }
        match seen {
            Observation::Received(message) => self.note_received(message),
            Observation::Sent { message, call } => self.note_sent(message, *call),
            Observation::FirstByte(call) => {
                if let Some(call) = self.call_mut(*call) {
                    call.written = true;
                }
            }
            Observation::Flushed => self.in_transit = false,
            Observation::InputEnded => {
                self.input_ended = true;
                self.begin_ending(true);
            }
            Observation::PeerGone => self.begin_ending(true),
            Observation::WriteFailed => self.note_write_failed(),
            Observation::ShutDown { at_once } => {
                self.begin_ending(false);
                if let (true, Some(ending)) = (*at_once, &mut self.ending) {
                    ending.window = self.now;
                }
            }
            Observation::Responded(execution) => self.change(*execution, Phase::Responded),
            Observation::ExecutionEnded(execution) => {
                self.change(*execution, Phase::Owed);
                if let Some(request) = self.request_mut(*execution) {
                    request.live = false;
                }
            }
            Observation::Called(called) => self.note_called(called),
            Observation::Started { execution, id, method } => self.note_started(*execution, id, method),
            Observation::Stopped { execution, reason } => {
                if *reason != CancelReason::Peer {
                    self.change(*execution, Phase::Owed);
                }
                if let Some(request) = self.request_mut(*execution) {
                    request.stop_reason = Some(*reason);
                }
            }
            Observation::CallEnded { call, .. } => {
                if let Some(call) = self.call_mut(*call) {
                    call.ended = true;
                }
            }
            Observation::CallProgressed(call) => {
                let now = self.now;
                if let Some(call) = self.call_mut(*call) {
                    call.renewed_at = now;
                }
            }
            Observation::Opened(revision) => self.opened = Some(*revision),
            Observation::Closed(_) => self.closed = true,
            Observation::Panicked(_) => self.panicked = true,
            Observation::GaveUp(_)
            | Observation::TimedOut
            | Observation::Progressed(_)
            | Observation::Logged { .. }
            | Observation::Asked(_)
            | Observation::LogLine(_)
            | Observation::Settled { .. }
            | Observation::Quiet => {}
        }
    }

    /// Moves a request that is running to another phase; one that is not stays where it is.
    fn change(&mut self, execution: Execution, phase: Phase) {
        if let Some(request) = self.request_mut(execution).filter(|request| request.phase == Phase::Running) {
            request.phase = phase;
        }
    }

    fn note_received(&mut self, message: &Message) {
        if self.only_asks() {
            return;
        }
        if message.batch && !self.takes_apart(message) {
            self.refusals_due += 1;
            return;
        }
        for part in &message.parts {
            match part {
                Part::Request { id, method, token } => self.note_request(id, method, token.as_ref(), message.batch),
                Part::Cancel { id: Some(id) } => self.note_cancel(id),
                Part::Unreadable { answer, request, id } => {
                    // What a server sends under the id of a call may be its answer, and answers are not answered.
                    let waited_for = id.as_ref().is_none_or(|id| self.open_call(id).is_some());
                    let possible = *answer || self.settings.side == Side::Client && waited_for;
                    *(if possible { &mut self.refusals_possible } else { &mut self.refusals_due }) += 1;
                    // Only a request is refused under its id, and not under one that is in flight.
                    self.refused_ids.extend(id.clone().filter(|id| *request && self.running(id).is_none()));
                }
                Part::Notification { method } if &**method == "notifications/initialized" => {
                    self.ready |= self.opened.is_some();
                }
                _ => {}
            }
        }
    }

    fn note_request(&mut self, id: &Id, method: &str, token: Option<&Id>, batch: bool) {
        let duplicate = self.running(id).is_some();
        let mut twin = false;
        for request in self.requests.iter_mut().filter(|request| request.phase == Phase::Arrived && request.id == *id) {
            (twin, request.twin) = (true, true);
        }
        // Those that came in the same message may be live as well.
        let arrived = self.requests.iter().filter(|request| request.phase == Phase::Arrived).count();
        let live_before = self.live_executions() + arrived;
        self.requests.push(RequestFacts {
            id: Arc::clone(id),
            token: token.cloned(),
            phase: if duplicate { Phase::Duplicate } else { Phase::Arrived },
            execution: None,
            live: false,
            stop_reason: None,
            answers: 0,
            batch,
            live_before,
            refusals_before: self.refusals_due + self.refusals_possible + self.refusals_sent,
            twin,
            cancelled_early: false,
            progress: None,
            started_at: None,
            lasting: matches!(method, "subscriptions/listen" | "tasks/result"),
        });
    }

    fn note_cancel(&mut self, id: &Id) {
        let open = |request: &&mut RequestFacts| {
            request.id == *id && matches!(request.phase, Phase::Running | Phase::Arrived) && !request.cancelled_early
        };
        let Some(request) = self.requests.iter_mut().find(open) else { return };
        if request.phase == Phase::Running {
            request.phase = Phase::Cancelled;
        } else {
            request.cancelled_early = true;
        }
    }

    fn note_started(&mut self, execution: Execution, id: &Id, method: &str) {
        let is_it =
            |request: &RequestFacts, phase| request.id == *id && request.execution.is_none() && request.phase == phase;
        // Of two in one message the first is started, and the other is the duplicate.
        let arrived = self.requests.iter().position(|request| is_it(request, Phase::Arrived));
        let duplicate = || self.requests.iter().rposition(|request| is_it(request, Phase::Duplicate));
        let place = arrived.or_else(duplicate).unwrap_or_else(|| {
            // It was not expected: a checker has reported it. It is tracked all the same.
            self.note_request(id, method, None, false);
            self.requests.len() - 1
        });
        self.executions.push(place);
        debug_assert_eq!(self.executions.len() as u64, execution + 1, "executions are numbered as they start");
        let now = self.now;
        if let Some(request) = self.requests.get_mut(place) {
            request.phase = if request.cancelled_early { Phase::Cancelled } else { Phase::Running };
            request.execution = Some(execution);
            request.live = true;
            request.started_at = Some(now);
        }
    }

    fn note_sent(&mut self, message: &Message, call: Option<CallNumber>) {
        self.in_transit = true;
        for part in &message.parts {
            match part {
                Part::Request { id, .. } => {
                    if let Some(call) = call.and_then(|call| self.call_mut(call)) {
                        call.id = Some(Arc::clone(id));
                    }
                }
                Part::Answer(answer) => match self.recipient(answer) {
                    ResponseOwner::Request(place) => {
                        if let Some(request) = self.requests.get_mut(place) {
                            request.answers = request.answers.saturating_add(1);
                        }
                    }
                    ResponseOwner::Refusal => {
                        let owed =
                            if self.refusals_due > 0 { &mut self.refusals_due } else { &mut self.refusals_possible };
                        *owed -= 1;
                        self.refusals_sent += 1;
                        let named = answer.id.as_ref().or(answer.about.as_ref());
                        if let Some(place) = self.refused_ids.iter().position(|id| Some(id) == named) {
                            self.refused_ids.remove(place);
                        }
                    }
                    ResponseOwner::Unexpected => {}
                },
                Part::Progress { token: Some(token), value } => {
                    let place = self.progress_place(token);
                    if let Some(request) = place.and_then(|place| self.requests.get_mut(place)) {
                        request.progress = Some(*value);
                    }
                }
                _ => {}
            }
        }
    }

    fn note_called(&mut self, called: &CallRecord) {
        self.calls.push(CallFacts {
            called: called.clone(),
            id: None,
            written: false,
            ended: false,
            held: self.would_hold(called.method),
            made_at: self.now,
            renewed_at: self.now,
        });
    }

    fn begin_ending(&mut self, by_peer: bool) {
        let limits = &self.settings.limits;
        if self.ending.is_none() && !self.closed {
            let (window, deadline) = (self.now + handler_window(limits), self.now + limits.drain_deadline);
            self.ending = Some(DrainState { deadline, window, by_peer });
        }
    }

    fn note_write_failed(&mut self) {
        self.output_failed = true;
        self.in_transit = false;
        self.begin_ending(true);
        let limits = &self.settings.limits;
        let cleanups = limits.drain_deadline.saturating_sub(handler_window(limits));
        if let Some(ending) = &mut self.ending {
            ending.deadline = ending.deadline.min(self.now + cleanups);
            ending.window = self.now;
        }
    }

    fn settle(&mut self) {
        for request in &mut self.requests {
            if request.phase == Phase::Arrived {
                request.phase = Phase::Owed;
            }
        }
    }
}
