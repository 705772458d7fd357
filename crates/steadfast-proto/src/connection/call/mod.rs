//! Calls: the requests that this side sends to the peer.
//!
//! ```text
//!   Held --> Queued --> Sent --+--> Answered, Refused, Unreadable   by the peer
//!     |         |              +--> Cancelled, TimedOut             by us; the peer is notified
//!     +---------+--------------+--> Closed                          with the connection
//! ```
//!
//! A call is held while the peer is not ready for requests. A queued call is in the outbox; if it is cancelled there, its
//! message is removed and was never sent. A call is sent as soon as its first byte was written. The end of every call says
//! whether the call was sent (law L10).

mod end;
mod late;
mod listen;

pub(in crate::connection) use late::CallsAwaitingLateResult;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast_model::{Capability, Method, ProgressToken, RequestId, Revision};

use super::Connection;
use super::handshake::{ClientOrServerDescription, Discovery};
use super::key::{CallKey, InboundRequestKey};
use super::outbox::{OutboxFrameKey, TransmitKind};
use super::timer::TimerPurpose;
use crate::Moment;
use crate::coverage::{self, Input};
use crate::encode;

/// A call to send: a request of this side to the peer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Its method.
    pub method: Method,
    /// The parameters of the call: the text of a JSON object.
    pub params: Option<Box<str>>,
    /// The request whose handler sends the call; when that request is cancelled, so is the call.
    pub parent: Option<InboundRequestKey>,
    /// How long this side waits for the response to the call, or for progress of the call.
    pub timeout: Option<Duration>,
    /// How long this side waits for the response to the call in total, whatever progress the peer reports.
    pub total_timeout: Option<Duration>,
    /// The progress token in `params._meta` of the call, if it asks for progress.
    pub progress_token: Option<ProgressToken>,
    /// Whether the peer is sent `notifications/cancelled` when this call is cancelled. The notification is not sent for
    /// requests that open or probe a connection (`initialize`, `server/discover`, `ping`), nor for a request that may become a
    /// task in 2025-11-25, which is cancelled with `tasks/cancel`.
    pub cancellable: bool,
    /// Whether the result of the call is needed even if the call is cancelled: the result may be a task, which only this side
    /// can cancel. A late result is reported as [`ConnectionEvent::LateResult`](super::ConnectionEvent::LateResult).
    pub expects_late_response: bool,
    /// Whether the limit [`Limits::calls`](super::Limits::calls) neither applies to this call nor counts it. Only calls that
    /// the library makes by itself are exempt from the limit: the handshake, pings and probes.
    pub exempt_from_limit: bool,
}

impl Call {
    /// A call to the peer with this method and these parameters, without a timeout.
    pub fn new(method: Method, params: Option<Box<str>>) -> Self {
        Self {
            method,
            params,
            parent: None,
            timeout: None,
            total_timeout: None,
            progress_token: None,
            cancellable: true,
            expects_late_response: false,
            exempt_from_limit: false,
        }
    }
}

/// Why this side refused to send a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSentReason {
    /// The connection is closed, or closing.
    Closed,
    /// The connection is not open, or the revision of the peer does not have the request of the call.
    NotInRevision,
    /// The peer has not declared the capability that the method needs.
    MissingCapability(Capability),
    /// The maximum number of calls that wait for a response is reached.
    TooMany,
}

#[derive(Debug, Clone, Default)]
pub(in crate::connection) struct OutboundCalls {
    calls: BTreeMap<CallKey, OutboundCallEntry>,
    /// By request id.
    ids: BTreeMap<RequestId, CallKey>,
    tokens: BTreeMap<RequestId, CallKey>,
    /// The open calls that each handler has made, by the key of the handler's request.
    children: BTreeSet<(InboundRequestKey, CallKey)>,
    /// The current number of `calls` of each method that ends a task or subscription: each of these methods has its own limit.
    teardowns: BTreeMap<Method, usize>,
    /// The current number of `calls` that are exempt from the limit of calls.
    exempt: usize,
    next_id: i64,
}

impl OutboundCalls {
    pub(in crate::connection) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The request id of the last call.
    pub(in crate::connection) fn next_id(&self) -> i64 {
        self.next_id
    }

    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (CallKey, &OutboundCallEntry)> {
        self.calls.iter().map(|(key, waiting)| (*key, waiting))
    }
}

/// A call of this side that waits for its response.
#[derive(Debug, Clone)]
pub(in crate::connection) struct OutboundCallEntry {
    pub(in crate::connection) id: RequestId,
    pub(in crate::connection) method: Method,
    pub(in crate::connection) parent: Option<InboundRequestKey>,
    pub(in crate::connection) cancellable: bool,
    expects_late_response: bool,
    pub(in crate::connection) exempt_from_limit: bool,
    token: Option<RequestId>,
    pub(in crate::connection) state: CallSendState,
    timeout: Option<(Duration, Moment)>,
    total: Option<Moment>,
}

impl OutboundCallEntry {
    /// How long the call waits for a response or for progress before it times out.
    pub(in crate::connection) fn timeout_length(&self) -> Option<Duration> {
        self.timeout.map(|(length, _)| length)
    }
}

#[derive(Debug, Clone)]
pub(in crate::connection) enum CallSendState {
    Held(Vec<u8>),
    Queued(OutboxFrameKey),
    Sent,
}

/// Commands.
impl Connection {
    /// Sends a call to the peer. The end of the call is reported as
    /// [`ConnectionEvent::CallEnded`](super::ConnectionEvent::CallEnded).
    pub fn call(&mut self, now: Moment, key: CallKey, call: Call) -> Result<(), NotSentReason> {
        self.count_input(Input::Call);
        let called = self.check_call(&call).and_then(|()| self.open_call(now, key, call));
        called.inspect_err(|refused| coverage::effect(refused))
    }
}

impl Connection {
    fn check_call(&self, call: &Call) -> Result<(), NotSentReason> {
        let Some(peer) = &self.peer else {
            // A client may call before any handshake: this is how it discovers the revisions of the server.
            let is_stateless = || Revision::stateless().iter().any(|revision| call.method.from_client_in(*revision));
            let is_opening_call = matches!(*self.hello, ClientOrServerDescription::Client(_)) && is_stateless();
            return if is_opening_call { Ok(()) } else { Err(NotSentReason::NotInRevision) };
        };
        let revision =
            call.parent.and_then(|key| self.running(key)).map_or(peer.revision, |inbound| inbound.peer.revision);
        if !self.hello.may_send(call.method, revision) {
            return Err(NotSentReason::NotInRevision);
        }
        let needed = call.method.capability().filter(|capability| capability.exists_in(revision));
        let declared = |capability| match &*self.hello {
            ClientOrServerDescription::Server(_) => peer.client_capabilities.has(capability),
            ClientOrServerDescription::Client(_) => peer.server_capabilities.has(capability),
        };
        match needed {
            Some(capability) if !declared(capability) => Err(NotSentReason::MissingCapability(capability)),
            _ => Ok(()),
        }
    }

    pub(in crate::connection) fn open_call(
        &mut self,
        now: Moment,
        key: CallKey,
        call: Call,
    ) -> Result<(), NotSentReason> {
        // A handler that still runs during a shutdown may call the peer; one whose request has ended may not.
        let orphaned = call.parent.is_some_and(|parent| !self.is_open(parent));
        if self.refuses_calls() || orphaned {
            return Err(NotSentReason::Closed);
        }
        // Requests that end a task or subscription have their own limit: a full table must not prevent the cancellation of a task, and
        // slow responses to cancellations must not prevent other calls.
        let teardowns = &self.outbound.teardowns;
        let same_limit = match teardowns.get(&call.method) {
            Some(count) => *count,
            None if call.method.is_teardown() => 0,
            None if crate::mutant!(TeardownsUseCallLimit) => self.outbound.len(),
            None => self.outbound.len().saturating_sub(teardowns.values().sum()).saturating_sub(self.outbound.exempt),
        };
        let fewer = usize::from(crate::mutant!(LowerCallLimit));
        if same_limit + fewer >= self.limits.calls && !call.exempt_from_limit {
            return Err(NotSentReason::TooMany);
        }
        if !(crate::mutant!(RepeatIds) && self.outbound.next_id % 4 == 3) {
            self.outbound.next_id += 1;
        }
        let id = RequestId::from(self.outbound.next_id);
        if call.method == Method::Discover {
            self.discovery = Discovery::Sent(id.clone());
        }
        let body = encode::request(&id, call.method.name(), call.params.as_deref());
        let ready = self.initialized
            || matches!(*self.hello, ClientOrServerDescription::Client(_))
            || call.method == Method::Ping;
        let state = if ready {
            let kind = TransmitKind::Request { call: key, id: id.clone(), method: call.method };
            CallSendState::Queued(self.outbox.push(kind, body, call.parent))
        } else {
            CallSendState::Held(body)
        };
        let timeout = call.timeout.map(|timeout| (timeout, now + timeout));
        let total = call.total_timeout.map(|total| now + total);
        if let Some((_, when)) = timeout {
            self.timers.set(when, TimerPurpose::Call(key));
        }
        if let Some(when) = total {
            self.timers.set(when, TimerPurpose::CallTotal(key));
        }
        let token = call.progress_token.clone().map(ProgressToken::into_id);
        if let Some(token) = &token {
            self.outbound.tokens.insert(token.clone(), key);
        }
        self.outbound.ids.insert(id.clone(), key);
        if let Some(parent) = call.parent {
            self.outbound.children.insert((parent, key));
        }
        let Call { method, parent, cancellable, expects_late_response, exempt_from_limit, .. } = call;
        if method.is_teardown() && !exempt_from_limit {
            *self.outbound.teardowns.entry(method).or_default() += 1;
        }
        self.outbound.exempt += usize::from(exempt_from_limit);
        let waiting = OutboundCallEntry {
            id,
            method,
            parent,
            cancellable,
            expects_late_response,
            exempt_from_limit,
            token,
            state,
            timeout,
            total,
        };
        self.outbound.calls.insert(key, waiting);
        Ok(())
    }

    pub(in crate::connection) fn mark_sent(&mut self, key: CallKey) {
        if crate::mutant!(ForgetWhatWasSent) {
            return;
        }
        let Some(waiting) = self.outbound.calls.get_mut(&key) else { return };
        waiting.state = CallSendState::Sent;
        if waiting.method == Method::Initialize {
            // Whatever the result of `server/discover` was, the revision is a stateful one now, in which servers send requests.
            self.discovery = Discovery::NotSent;
        }
    }

    /// Queues the calls that this side has held back until the peer was ready for requests.
    pub(in crate::connection) fn send_held_calls(&mut self) {
        for (key, waiting) in &mut self.outbound.calls {
            if let CallSendState::Held(body) = &mut waiting.state {
                let body = std::mem::take(body);
                let kind = TransmitKind::Request { call: *key, id: waiting.id.clone(), method: waiting.method };
                waiting.state = CallSendState::Queued(self.outbox.push(kind, body, waiting.parent));
            }
        }
    }
}
