//! How a call (a request of this side to the peer) ends: with the peer's response, cancelled, timed out, lost, or with the
//! connection. Also handles the progress that the peer reports about a call.

use steadfast_model::{CancelledParams, ErrorObject, Method, ProgressParams, RequestId};

use super::{CallSendState, OutboundCallEntry, OutboundCalls};
use crate::Moment;
use crate::connection::outbox::TransmitKind;
use crate::connection::timer::TimerPurpose;
use crate::connection::{CallEnd, CallKey, Connection, ConnectionEvent, InboundRequestKey, ProtocolWarning};
use crate::coverage::Input;
use crate::encode;
use crate::envelope::{Params, ResultOrError};

/// Commands.
impl Connection {
    /// Cancels a call. Nothing happens if the call has already ended.
    pub fn cancel_call(&mut self, now: Moment, key: CallKey, reason: Option<&str>) {
        self.count_input(Input::CancelCall);
        if let Some(cancelled) = self.end_cancelled_call(key, reason, |sent| CallEnd::Cancelled { sent }) {
            self.expect_late_answer(now, key, &cancelled);
        }
        self.close_if_done();
    }

    /// Handles the end of a call that the transport reports without a message of the peer (HTTP). If the call has ended
    /// already, its late response is not expected any more.
    pub fn handle_call_ended(&mut self, key: CallKey, outcome: CallEnd) {
        self.count_input(Input::CallEnded);
        self.forget_late(key);
        if self.end_call(key).is_some() {
            self.events.push_back(ConnectionEvent::CallEnded { call: key, outcome });
            self.close_if_done();
        }
    }
}

impl Connection {
    pub(in crate::connection) fn end_timed_out_call(&mut self, now: Moment, call: CallKey) {
        #[cfg(mutants)]
        if crate::mutant!(TimeOutSilently) {
            if let Some(waiting) = self.end_call(call) {
                let sent = self.withdraw(&waiting);
                self.events.push_back(ConnectionEvent::CallEnded { call, outcome: CallEnd::TimedOut { sent } });
            }
            return;
        }
        if let Some(cancelled) =
            self.end_cancelled_call(call, Some("request timed out"), |sent| CallEnd::TimedOut { sent })
        {
            self.expect_late_answer(now, call, &cancelled);
        }
    }

    /// Cancels all calls that the handler of a request has made to the peer.
    pub(in crate::connection) fn cancel_calls_of(&mut self, parent: InboundRequestKey) {
        let all = (parent, CallKey::new(0))..=(parent, CallKey::new(u64::MAX));
        let calls: Vec<CallKey> = self.outbound.children.range(all).map(|(_, call)| *call).collect();
        for call in calls {
            self.end_cancelled_call(call, Some("the parent request has ended"), |sent| CallEnd::Cancelled { sent });
        }
        self.close_if_done();
    }

    /// Ends every call of this side to the peer, because the connection closes.
    pub(in crate::connection) fn fail_all_calls(&mut self) {
        let mut calls: Vec<CallKey> = self.outbound.calls.keys().copied().collect();
        if crate::mutant!(LoseWaiterOnClose) && !calls.is_empty() {
            let lost = calls.pop();
            lost.map(|call| self.end_call(call));
        }
        if crate::mutant!(IterateWhileRemoving) {
            calls = calls.into_iter().step_by(2).collect();
        }
        for call in calls {
            let Some(waiting) = self.end_call(call) else { continue };
            let sent = self.withdraw(&waiting);
            self.events.push_back(ConnectionEvent::CallEnded { call, outcome: CallEnd::Closed { sent } });
        }
        if crate::mutant!(IterateWhileRemoving) {
            self.outbound = OutboundCalls::default();
        }
    }

    /// Removes a call from the table of calls: this is the only place where a call ends.
    pub(super) fn end_call(&mut self, key: CallKey) -> Option<OutboundCallEntry> {
        let waiting = self.outbound.calls.remove(&key)?;
        self.outbound.exempt = self.outbound.exempt.saturating_sub(usize::from(waiting.exempt_from_limit));
        if !waiting.exempt_from_limit
            && let Some(count) = self.outbound.teardowns.get_mut(&waiting.method)
        {
            *count = count.saturating_sub(1);
        }
        self.outbound.ids.remove(&waiting.id);
        if let Some(parent) = waiting.parent {
            self.outbound.children.remove(&(parent, key));
        }
        if let Some(token) = &waiting.token {
            self.outbound.tokens.remove(token);
        }
        if let Some((_, when)) = waiting.timeout {
            self.timers.clear(when, TimerPurpose::Call(key));
        }
        if let Some(when) = waiting.total {
            self.timers.clear(when, TimerPurpose::CallTotal(key));
        }
        Some(waiting)
    }

    /// Ends a call of this side because it was cancelled or timed out. Returns the call if its late result is needed.
    fn end_cancelled_call(
        &mut self,
        call: CallKey,
        reason: Option<&str>,
        outcome: fn(bool) -> CallEnd,
    ) -> Option<OutboundCallEntry> {
        let waiting = self.end_call(call)?;
        let sent = self.withdraw_or_cancel(call, &waiting, reason);
        self.events.push_back(ConnectionEvent::CallEnded { call, outcome: outcome(sent) });
        Some(waiting).filter(|waiting| sent && waiting.expects_late_response)
    }

    /// Removes the message of a call from the output queue if it is still there. Returns whether the call was already sent.
    fn withdraw(&mut self, waiting: &OutboundCallEntry) -> bool {
        match waiting.state {
            CallSendState::Held(_) => false,
            // The writer may have written its first byte without having reported it yet, unless writing has failed.
            CallSendState::Queued(ticket) => !self.outbox.withdraw(ticket) && !self.output_failed,
            CallSendState::Sent => true,
        }
    }

    /// Removes a cancelled call from the output queue or, if the call was sent, notifies the peer of the cancellation. Returns
    /// whether the call was sent.
    fn withdraw_or_cancel(&mut self, call: CallKey, waiting: &OutboundCallEntry, reason: Option<&str>) -> bool {
        let sent = self.withdraw(waiting);
        if (sent || crate::mutant!(CancelTheUnsent)) && waiting.cancellable && !self.stage.is_closed() {
            let mut params = CancelledParams::new(waiting.id.clone());
            params.reason = reason.map(str::to_owned);
            let revision = self.revision();
            let body = encode::notification_of(revision, Method::Cancelled, &params);
            self.outbox.push(TransmitKind::Cancellation { call }, body, waiting.parent);
        }
        sent
    }
}

/// Handles what the peer sends about a call of this side.
impl Connection {
    pub(in crate::connection) fn receive_response(&mut self, id: Option<RequestId>, body: ResultOrError<'_>) {
        let key = id.as_ref().and_then(|id| self.answerable_call(id));
        if let ResultOrError::Result(_) = body {
            self.note_discovery(id.as_ref());
        }
        let Some(waiting) = key.and_then(|key| self.end_call(key)) else {
            if id.as_ref().is_some_and(|id| self.receive_late_answer(id, &body)) {
                return;
            }
            self.statistics.unknown_responses += 1;
            return self.warn(ProtocolWarning::UnknownResponse(id));
        };
        let outcome = match body {
            ResultOrError::Result(result) if waiting.method == Method::Initialize => {
                match self.accept_initialize_result(result) {
                    Ok(()) => CallEnd::Answered(result.into()),
                    Err(why) => CallEnd::Unreadable(why),
                }
            }
            ResultOrError::Result(result) => CallEnd::Answered(result.into()),
            ResultOrError::Error(error) => match serde_json::from_str::<ErrorObject>(error) {
                Ok(error) => CallEnd::Refused(error),
                Err(error) => CallEnd::Unreadable(format!("the response has a malformed error object: {error}")),
            },
            ResultOrError::Malformed => {
                CallEnd::Unreadable("the response does not have exactly one of result and error".to_owned())
            }
        };
        if let Some(call) = key {
            self.events.push_back(ConnectionEvent::CallEnded { call, outcome });
        }
    }

    /// The call of this side with this request id, if it has left the output queue: a peer cannot answer a call that was not
    /// sent.
    pub(in crate::connection) fn answerable_call(&self, id: &RequestId) -> Option<CallKey> {
        let key = *self.outbound.ids.get(id)?;
        let left = match self.outbound.calls.get(&key)?.state {
            CallSendState::Held(_) => false,
            CallSendState::Queued(ticket) => !self.outbox.holds(ticket),
            CallSendState::Sent => true,
        };
        left.then_some(key)
    }

    /// Whether this call is `initialize` or `server/discover`.
    pub(in crate::connection) fn is_opening_call(&self, key: CallKey) -> bool {
        let waiting = self.outbound.calls.get(&key);
        waiting.is_some_and(|waiting| matches!(waiting.method, Method::Initialize | Method::Discover))
    }

    /// Ends the call whose response cannot be read.
    pub(in crate::connection) fn end_unreadable(&mut self, id: Option<RequestId>, error: &ErrorObject) {
        let key = id.as_ref().and_then(|id| self.answerable_call(id));
        let Some(call) = key.filter(|key| self.end_call(*key).is_some()) else {
            id.as_ref().map(|id| self.receive_late_answer(id, &ResultOrError::Malformed));
            self.statistics.unknown_responses += 1;
            return;
        };
        self.events.push_back(ConnectionEvent::CallEnded {
            call,
            outcome: CallEnd::Unreadable(error.message.clone().into_owned()),
        });
    }

    pub(in crate::connection) fn receive_progress(&mut self, now: Moment, params: &Params<'_>) {
        let Ok(progress) = serde_json::from_str::<ProgressParams>(params.text()) else {
            return self.warn(ProtocolWarning::UnknownNotification("malformed notifications/progress".to_owned()));
        };
        let Some(call) = self.outbound.tokens.get(progress.progress_token.as_id()).copied() else { return };
        if let Some((timeout, when)) = self.outbound.calls.get_mut(&call).and_then(|waiting| waiting.timeout.as_mut()) {
            self.timers.clear(*when, TimerPurpose::Call(call));
            *when = now + *timeout;
            self.timers.set(*when, TimerPurpose::Call(call));
        }
        self.events.push_back(ConnectionEvent::CallProgress { call, progress });
    }
}
