//! The end of a request of the peer: by its handler, by a deadline, or by the end of its connection. The cancellation of a
//! request by the peer is in `cancel.rs`.

use steadfast_model::{ErrorObject, RequestId};

use super::InboundRequest;
use crate::Moment;
use crate::connection::handshake::ClientOrServerDescription;
use crate::connection::timer::TimerPurpose;
use crate::connection::{CancelReason, Connection, ConnectionEvent, InboundRequestKey, ProtocolWarning};
use crate::coverage::{self, Effect, Input};
use crate::encode::EncodedResponse;

/// Commands.
impl Connection {
    /// Sends the response to a request of the peer. If the request has ended already, the response is dropped and counted; this
    /// is not an error (law L4).
    pub fn respond(&mut self, now: Moment, key: InboundRequestKey, answer: EncodedResponse) {
        self.count_input(Input::Respond);
        if !self.is_open(key) {
            #[cfg(mutants)]
            assert!(!crate::mutant!(PanicOnLateAnswer), "a handler answered a request that is not open");
            self.statistics.late_answers += 1;
            self.warn(ProtocolWarning::LateAnswer(key));
            return;
        }
        self.flush_progress(now, key);
        #[cfg(mutants)]
        if crate::mutant!(AnswerTwice) {
            self.queue_response(answer.clone().into_bytes(), None, Some(key));
        }
        self.end_answered(key, answer);
        self.close_if_done();
    }
}

impl Connection {
    /// Removes a request of the peer from the table of open requests: this is the only place where a request ends.
    pub(super) fn take_out(&mut self, key: InboundRequestKey) -> Option<(RequestId, Box<InboundRequest>)> {
        let id = self.executions.get(&key)?.id.clone();
        let inbound = self.inbound.remove(&id)?;
        if inbound.key != key {
            // Another request uses the id now: put that one back.
            self.inbound.insert(id, inbound);
            return None;
        }
        if let Some(deadline) = inbound.deadline {
            self.timers.clear(deadline, TimerPurpose::Handler(key));
        }
        if let Some(when) = inbound.progress.held_until() {
            self.timers.clear(when, TimerPurpose::Progress(key));
        }
        Some((id, inbound))
    }

    /// Ends a request of the peer with a response.
    pub(in crate::connection) fn end_answered(&mut self, key: InboundRequestKey, answer: EncodedResponse) {
        let Some((id, inbound)) = self.take_out(key) else { return };
        coverage::effect(Effect::RequestAnswered);
        self.statistics.answered += 1;
        let mut body = answer.into_bytes();
        // The responses of an open batch wait for its slowest request. They must not stop the input, so they have their own
        // limit.
        let limit = self.limits.outbox_bytes;
        if inbound.batch.is_some() && self.batches.bytes() + body.len() > limit {
            let error = ErrorObject::internal(format!(
                "response limit reached: the responses of open batches hold {limit} bytes"
            ));
            body = EncodedResponse::error(&id, &error).into_bytes();
        }
        if !(crate::mutant!(SwallowAnswers) && matches!(*self.hello, ClientOrServerDescription::Client(_))) {
            self.queue_response(body, inbound.batch, Some(key));
        }
        self.leave_batch(inbound.batch, Some(key));
    }

    /// Ends a request because the deadline of its handler has passed.
    pub(in crate::connection) fn end_timed_out(&mut self, key: InboundRequestKey) {
        if crate::mutant!(ForgetDeadlines) {
            return;
        }
        let error = ErrorObject::internal("the handler did not finish before its deadline");
        self.end_with_error(key, &error, Some(CancelReason::Deadline));
    }

    /// Ends the execution of a handler; if its request is still open, the request is answered with an error (law L2).
    pub(in crate::connection) fn end_execution(&mut self, _now: Moment, key: InboundRequestKey) {
        if !crate::mutant!(ForgetTheUnanswered) {
            let error = ErrorObject::internal("the handler of the request ended without a result");
            self.end_with_error(key, &error, None);
        }
        if crate::mutant!(ForgetToReap) {
            return;
        }
        if let Some(execution) = self.executions.remove(&key) {
            self.held_bytes -= execution.bytes;
        }
    }

    fn end_with_error(&mut self, key: InboundRequestKey, error: &ErrorObject, stop: Option<CancelReason>) {
        let Some(id) = self.executions.get(&key).map(|execution| execution.id.clone()) else { return };
        if !self.is_open(key) {
            return;
        }
        // Before the response: over HTTP, clients read no further than the response.
        self.cancel_calls_of(key);
        coverage::effect(Effect::RequestAnsweredFor);
        self.end_answered(key, EncodedResponse::error(&id, error));
        if let Some(reason) = stop {
            self.stop(key, reason);
        }
    }

    /// Stops the execution of a handler, and cancels the handler's calls to the peer.
    pub(in crate::connection) fn stop(&mut self, key: InboundRequestKey, reason: CancelReason) {
        if let Some(execution) = self.executions.get_mut(&key) {
            execution.stop_requested = true;
        }
        self.events.push_back(ConnectionEvent::Stop { key, reason });
        self.cancel_calls_of(key);
    }

    /// Answers every open request with an error, and stops every handler that was not stopped before, including handlers that
    /// have answered and still run.
    pub(in crate::connection) fn fail_open_requests(&mut self, reason: CancelReason) {
        let keys: Vec<InboundRequestKey> = self.executions.keys().copied().collect();
        for key in keys {
            let error = ErrorObject::internal(match reason {
                CancelReason::Shutdown => "the connection was shut down before the handler finished",
                _ => "the connection closed before the handler finished",
            });
            self.end_with_error(key, &error, None);
            if self.executions.get(&key).is_some_and(|execution| !execution.stop_requested) {
                self.stop(key, reason);
            }
        }
    }
}
