//! What the peer sends about a call of ours: its response, and progress.

use steadfast_model::{ErrorObject, Method, ProgressParams, RequestId};

use super::CallSendState;
use crate::Moment;
use crate::connection::timer::TimerPurpose;
use crate::connection::{CallEnd, CallKey, Connection, ConnectionEvent, ProtocolWarning};
use crate::envelope::{Params, ResultOrError};

impl Connection {
    pub(in crate::connection) fn receive_response(&mut self, id: Option<RequestId>, body: ResultOrError<'_>) {
        let key = id.as_ref().and_then(|id| self.answerable_call(id));
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
            ResultOrError::Result(result) => {
                // From here on the server sends no requests, whether or not the client has read the result yet.
                self.discovered |= waiting.method == Method::Discover;
                CallEnd::Answered(result.into())
            }
            ResultOrError::Error(error) => match serde_json::from_str::<ErrorObject>(error) {
                Ok(error) => CallEnd::Refused(error),
                Err(error) => CallEnd::Unreadable(format!("malformed error object: {error}")),
            },
            ResultOrError::Malformed => {
                CallEnd::Unreadable("response without exactly one of result and error".to_owned())
            }
        };
        if let Some(call) = key {
            self.events.push_back(ConnectionEvent::CallEnded { call, outcome });
        }
    }

    /// The call with this id, if it has left the outbox: a response to a call that was not sent is a guess.
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

    /// A response arrived that cannot be read.
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
        let Some(call) = self.outbound.tokens.get(&progress.progress_token.0).copied() else { return };
        if let Some((timeout, when)) = self.outbound.calls.get_mut(&call).and_then(|waiting| waiting.timeout.as_mut()) {
            self.timers.clear(*when, TimerPurpose::Call(call));
            *when = now + *timeout;
            self.timers.set(*when, TimerPurpose::Call(call));
        }
        self.events.push_back(ConnectionEvent::CallProgress { call, progress });
    }
}
