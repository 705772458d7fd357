//! Calls of ours to the peer.
//!
//! ```text
//!   Held --> Queued --> Sent --+--> Answered, Refused, Unreadable   by the peer
//!     |         |              +--> Cancelled, TimedOut             by us; the peer is told
//!     +---------+--------------+--> Closed                          with the connection
//! ```
//!
//! Held: the peer has not said that it is ready. Queued: in the outbox; a call that is given up here was never sent, and
//! its frame is taken back. Sent: its first byte was written. Every end says whether the call was sent (L10).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast_model::{
    CancelledParams, Capability, ErrorObject, Meta, Method, ProgressParams, ProgressToken, RequestId, Revision,
};

use super::Connection;
use super::event::{CallEnd, Event, ProtocolWarning};
use super::handshake::Hello;
use super::key::{CallKey, Key};
use super::outbox::{Ticket, TransmitKind};
use super::timer::Purpose;
use crate::Moment;
use crate::coverage::{self, Input};
use crate::encode;
use crate::envelope::{AnswerBody, Params};

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// What is asked.
    pub method: Method,
    /// With what: the text of a JSON object.
    pub params: Option<Box<str>>,
    /// The request whose handler makes the call; when it is cancelled, so is the call.
    pub parent: Option<Key>,
    /// How long to wait for an answer or for progress.
    pub timeout: Option<Duration>,
    /// How long to wait for the answer, whatever progress is reported.
    pub total_timeout: Option<Duration>,
    /// The token under which `params._meta` asks for progress.
    pub progress_token: Option<ProgressToken>,
    /// Whether the peer is told when we give up. Never so for `initialize` and for the probe of the era.
    pub cancellable: bool,
    /// Whether its result matters when we have given up: it may say that something goes on at the peer which only we can end.
    /// It comes as an [`Event::AnsweredLate`].
    pub expects_late_answer: bool,
}

impl Call {
    /// A call with no timeout.
    pub fn new(method: Method, params: Option<Box<str>>) -> Self {
        Self {
            method,
            params,
            parent: None,
            timeout: None,
            total_timeout: None,
            progress_token: None,
            cancellable: true,
            expects_late_answer: false,
        }
    }
}

/// Why a call was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallRefused {
    /// The connection is closed, or closing.
    Closed,
    /// The peer has not opened the connection, or its revision has no such request.
    NotInRevision,
    /// The peer did not declare the capability that it needs.
    MissingCapability(Capability),
    /// As many calls wait as the limit allows.
    TooMany,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Outbound {
    calls: BTreeMap<CallKey, Waiting>,
    /// By the id on the wire.
    ids: BTreeMap<RequestId, CallKey>,
    tokens: BTreeMap<RequestId, CallKey>,
    /// Which calls the handler of a request has made.
    children: BTreeSet<(Key, CallKey)>,
    /// How many of `calls` are of each method that takes something back: each of these has a limit of its own.
    taking_back: BTreeMap<Method, usize>,
    next_id: i64,
}

impl Outbound {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The number of the last id that was used.
    pub(super) fn next_id(&self) -> i64 {
        self.next_id
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (CallKey, &Waiting)> {
        self.calls.iter().map(|(key, waiting)| (*key, waiting))
    }
}

/// A call that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) parent: Option<Key>,
    pub(super) cancellable: bool,
    expects_late_answer: bool,
    token: Option<RequestId>,
    pub(super) state: Sending,
    timeout: Option<(Duration, Moment)>,
    total: Option<Moment>,
}

impl Waiting {
    /// How long it waits for an answer or for progress.
    pub(super) fn timeout_length(&self) -> Option<Duration> {
        self.timeout.map(|(length, _)| length)
    }
}

#[derive(Debug, Clone)]
pub(super) enum Sending {
    Held(Vec<u8>),
    Queued(Ticket),
    Sent,
}

/// Commands.
impl Connection {
    /// Calls the peer. The end of the call is an [`Event::CallEnded`].
    pub fn call(&mut self, now: Moment, key: CallKey, call: Call) -> Result<(), CallRefused> {
        self.cover(Input::Call);
        let called = self.check_call(&call).and_then(|()| self.open_call(now, key, call));
        called.inspect_err(|refused| coverage::effect(refused))
    }

    /// Gives up a call: nobody waits for it any more. Nothing happens if it has ended.
    pub fn cancel_call(&mut self, now: Moment, key: CallKey, reason: Option<&str>) {
        self.cover(Input::CancelCall);
        if let Some(given_up) = self.end_given_up(key, reason, |sent| CallEnd::Cancelled { sent }) {
            self.expect_late_answer(now, key, &given_up);
        }
        self.settle();
    }

    /// Whoever carries this call on its own knows how it ended, without a message of the peer's. Nothing happens if it has
    /// ended, but that its answer is not waited for any more.
    pub fn handle_call_ended(&mut self, key: CallKey, outcome: CallEnd) {
        self.cover(Input::CallEnded);
        self.forget_late(key);
        if self.end_call(key).is_some() {
            self.events.push_back(Event::CallEnded { call: key, outcome });
            self.settle();
        }
    }
}

impl Connection {
    fn check_call(&self, call: &Call) -> Result<(), CallRefused> {
        let Some(peer) = &self.peer else {
            // A client may ask before any handshake: that is how it finds out what the server speaks.
            let opens = matches!(*self.hello, Hello::Client(_)) && call.method.from_client_in(Revision::LATEST);
            return if opens { Ok(()) } else { Err(CallRefused::NotInRevision) };
        };
        let revision =
            call.parent.and_then(|key| self.running(key)).map_or(peer.revision, |inbound| inbound.peer.revision);
        if !self.hello.may_send(call.method, revision) {
            return Err(CallRefused::NotInRevision);
        }
        let needed = call.method.capability().filter(|capability| capability.exists_in(revision));
        let declared = |capability| match &*self.hello {
            Hello::Server(_) => peer.client_capabilities.has(capability),
            Hello::Client(_) => peer.server_capabilities.has(capability),
        };
        match needed {
            Some(capability) if !declared(capability) => Err(CallRefused::MissingCapability(capability)),
            _ => Ok(()),
        }
    }

    pub(super) fn open_call(&mut self, now: Moment, key: CallKey, call: Call) -> Result<(), CallRefused> {
        // A handler that still runs in the drain of a shutdown may ask; one whose request has ended may not.
        let orphaned = call.parent.is_some_and(|parent| !self.is_open(parent));
        if self.refuses_calls() || orphaned {
            return Err(CallRefused::Closed);
        }
        // What takes something back has a limit of its own: a full table must not keep a task from being cancelled, and a
        // cancellation that the peer is slow to answer must not keep the next call, or the next unsubscription, from being made.
        let taking_back = &self.outbound.taking_back;
        let same_limit = match taking_back.get(&call.method) {
            Some(count) => *count,
            None if call.method.takes_back() => 0,
            None if crate::mutant!(ShareRoom) => self.outbound.len(),
            None => self.outbound.len().saturating_sub(taking_back.values().sum()),
        };
        let fewer = usize::from(crate::mutant!(LowerCallLimit));
        if same_limit + fewer >= self.limits.calls {
            return Err(CallRefused::TooMany);
        }
        if !(crate::mutant!(RepeatIds) && self.outbound.next_id % 4 == 3) {
            self.outbound.next_id += 1;
        }
        let id = RequestId::from(self.outbound.next_id);
        let body = encode::request(&id, call.method.name(), call.params.as_deref());
        let ready = self.initialized || matches!(*self.hello, Hello::Client(_)) || call.method == Method::Ping;
        let state = if ready {
            let kind = TransmitKind::Request { call: key, id: id.clone(), method: call.method };
            Sending::Queued(self.outbox.push(kind, body, call.parent))
        } else {
            Sending::Held(body)
        };
        let timeout = call.timeout.map(|timeout| (timeout, now + timeout));
        let total = call.total_timeout.map(|total| now + total);
        if let Some((_, when)) = timeout {
            self.timers.set(when, Purpose::Call(key));
        }
        if let Some(when) = total {
            self.timers.set(when, Purpose::CallTotal(key));
        }
        let token = call.progress_token.clone().map(|token| token.0);
        if let Some(token) = &token {
            self.outbound.tokens.insert(token.clone(), key);
        }
        self.outbound.ids.insert(id.clone(), key);
        if let Some(parent) = call.parent {
            self.outbound.children.insert((parent, key));
        }
        let Call { method, parent, cancellable, expects_late_answer, .. } = call;
        if method.takes_back() {
            *self.outbound.taking_back.entry(method).or_default() += 1;
        }
        let waiting = Waiting { id, method, parent, cancellable, expects_late_answer, token, state, timeout, total };
        self.outbound.calls.insert(key, waiting);
        Ok(())
    }

    pub(super) fn mark_sent(&mut self, key: CallKey) {
        if crate::mutant!(ForgetWhatWasSent) {
            return;
        }
        if let Some(waiting) = self.outbound.calls.get_mut(&key) {
            waiting.state = Sending::Sent;
        }
    }

    /// The peer is ready: what was held goes out.
    pub(super) fn release_calls(&mut self) {
        for (key, waiting) in &mut self.outbound.calls {
            if let Sending::Held(body) = &mut waiting.state {
                let body = std::mem::take(body);
                let kind = TransmitKind::Request { call: *key, id: waiting.id.clone(), method: waiting.method };
                waiting.state = Sending::Queued(self.outbox.push(kind, body, waiting.parent));
            }
        }
    }

    pub(super) fn take_answer(&mut self, id: Option<RequestId>, body: AnswerBody<'_>) {
        let key = id.as_ref().and_then(|id| self.known_call(id));
        let Some(waiting) = key.and_then(|key| self.end_call(key)) else {
            if id.as_ref().is_some_and(|id| self.take_late_answer(id, &body)) {
                return;
            }
            self.statistics.answers_to_nothing += 1;
            return self.odd(ProtocolWarning::AnswerToNothing(id));
        };
        let outcome = match body {
            AnswerBody::Result(result) if waiting.method == Method::Initialize => match self.note_initialized(result) {
                Ok(()) => CallEnd::Answered(result.into()),
                Err(why) => CallEnd::Unreadable(why),
            },
            AnswerBody::Result(result) => {
                // From here on it sends no requests, whether or not we have looked at what it says.
                self.discovered |= waiting.method == Method::Discover;
                CallEnd::Answered(result.into())
            }
            AnswerBody::Error(error) => match serde_json::from_str::<ErrorObject>(error) {
                Ok(error) => CallEnd::Refused(error),
                Err(error) => CallEnd::Unreadable(format!("an error that is none: {error}")),
            },
            AnswerBody::Malformed => CallEnd::Unreadable("an answer with both a result and an error".to_owned()),
        };
        if let Some(call) = key {
            self.events.push_back(Event::CallEnded { call, outcome });
        }
    }

    /// The call that waits under this id, if the peer can know of it: a call that has not left cannot be answered, only
    /// guessed.
    pub(super) fn known_call(&self, id: &RequestId) -> Option<CallKey> {
        let key = *self.outbound.ids.get(id)?;
        let left = match self.outbound.calls.get(&key)?.state {
            Sending::Held(_) => false,
            Sending::Queued(ticket) => !self.outbox.holds(ticket),
            Sending::Sent => true,
        };
        left.then_some(key)
    }

    /// Whether this call is the one that finds out what the peer speaks.
    pub(super) fn opens(&self, key: CallKey) -> bool {
        let waiting = self.outbound.calls.get(&key);
        waiting.is_some_and(|waiting| matches!(waiting.method, Method::Initialize | Method::Discover))
    }

    /// An answer came that cannot be read.
    pub(super) fn end_unreadable(&mut self, id: Option<RequestId>, error: &ErrorObject) {
        let key = id.as_ref().and_then(|id| self.known_call(id));
        let Some(call) = key.filter(|key| self.end_call(*key).is_some()) else {
            id.as_ref().map(|id| self.take_late_answer(id, &AnswerBody::Malformed));
            self.statistics.answers_to_nothing += 1;
            return;
        };
        self.events
            .push_back(Event::CallEnded { call, outcome: CallEnd::Unreadable(error.message.clone().into_owned()) });
    }

    pub(super) fn take_progress(&mut self, now: Moment, params: &Params<'_>) {
        let Ok(progress) = serde_json::from_str::<ProgressParams>(params.text()) else {
            return self
                .odd(ProtocolWarning::UnknownNotification("notifications/progress that cannot be read".to_owned()));
        };
        let Some(call) = self.outbound.tokens.get(&progress.progress_token.0).copied() else { return };
        if let Some((timeout, when)) = self.outbound.calls.get_mut(&call).and_then(|waiting| waiting.timeout.as_mut()) {
            self.timers.clear(*when, Purpose::Call(call));
            *when = now + *timeout;
            self.timers.set(*when, Purpose::Call(call));
        }
        self.events.push_back(Event::CallProgress { call, progress });
    }

    /// The subscription of ours that a notification says it belongs to.
    pub(super) fn subscription_of(&self, params: &Params<'_>) -> Option<CallKey> {
        let meta: Meta = serde_json::from_str(params.get("_meta")?).ok()?;
        self.known_call(&meta.subscription_id()?)
    }

    /// A server of 2026-07-28 ended a subscription of ours.
    pub(super) fn end_subscription(&mut self, id: &RequestId) {
        let key = self.known_call(id);
        let listens =
            |key: &CallKey| self.outbound.calls.get(key).is_some_and(|waiting| waiting.method == Method::Listen);
        let Some(call) = key.filter(listens) else {
            self.statistics.late_cancels += 1;
            return self.odd(ProtocolWarning::LateCancel(id.clone()));
        };
        self.end_call(call);
        self.events.push_back(Event::CallEnded { call, outcome: CallEnd::EndedByPeer });
    }

    pub(super) fn end_overdue_call(&mut self, now: Moment, call: CallKey) {
        #[cfg(mutants)]
        if crate::mutant!(TimeOutSilently) {
            if let Some(waiting) = self.end_call(call) {
                let sent = self.withdraw(&waiting);
                self.events.push_back(Event::CallEnded { call, outcome: CallEnd::TimedOut { sent } });
            }
            return;
        }
        if let Some(given_up) = self.end_given_up(call, Some("no answer in time"), |sent| CallEnd::TimedOut { sent }) {
            self.expect_late_answer(now, call, &given_up);
        }
    }

    /// Gives up the calls that the handler of a request made.
    pub(super) fn cancel_calls_of(&mut self, parent: Key) {
        let all = (parent, CallKey::new(0))..=(parent, CallKey::new(u64::MAX));
        let calls: Vec<CallKey> = self.outbound.children.range(all).map(|(_, call)| *call).collect();
        for call in calls {
            self.end_given_up(call, Some("the request that it belongs to has ended"), |sent| CallEnd::Cancelled {
                sent,
            });
        }
        self.settle();
    }

    /// The connection is no more: every call that waits is told so.
    pub(super) fn fail_all_calls(&mut self) {
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
            self.events.push_back(Event::CallEnded { call, outcome: CallEnd::Closed { sent } });
        }
        if crate::mutant!(IterateWhileRemoving) {
            self.outbound = Outbound::default();
        }
    }

    /// Takes a call out of the table: this is the one place where a call ends.
    fn end_call(&mut self, key: CallKey) -> Option<Waiting> {
        let waiting = self.outbound.calls.remove(&key)?;
        if let Some(count) = self.outbound.taking_back.get_mut(&waiting.method) {
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
            self.timers.clear(when, Purpose::Call(key));
        }
        if let Some(when) = waiting.total {
            self.timers.clear(when, Purpose::CallTotal(key));
        }
        Some(waiting)
    }

    /// Ends a call that is given up. Gives it back if an answer to it would matter.
    fn end_given_up(&mut self, call: CallKey, reason: Option<&str>, outcome: fn(bool) -> CallEnd) -> Option<Waiting> {
        let waiting = self.end_call(call)?;
        let sent = self.give_up(call, &waiting, reason);
        self.events.push_back(Event::CallEnded { call, outcome: outcome(sent) });
        Some(waiting).filter(|waiting| sent && waiting.expects_late_answer)
    }

    /// Takes the frame of a call back if it has not left. Returns whether the call was sent.
    fn withdraw(&mut self, waiting: &Waiting) -> bool {
        match waiting.state {
            Sending::Held(_) => false,
            // If the writer has it, its first byte may be on its way although we have not heard so; unless nothing more
            // will ever be written.
            Sending::Queued(ticket) => !self.outbox.withdraw(ticket) && !self.output_failed,
            Sending::Sent => true,
        }
    }

    /// Takes a call back, or tells the peer that nobody waits for it. Returns whether it was sent.
    fn give_up(&mut self, call: CallKey, waiting: &Waiting, reason: Option<&str>) -> bool {
        let sent = self.withdraw(waiting);
        if (sent || crate::mutant!(CancelTheUnsent)) && waiting.cancellable && !self.stage.is_closed() {
            let mut params = CancelledParams::new(waiting.id.clone());
            params.reason = reason.map(str::to_owned);
            let revision = self.peer.as_ref().map_or(Revision::LATEST, |peer| peer.revision);
            let body = encode::notification_of(revision, Method::Cancelled, &params);
            self.outbox.push(TransmitKind::Cancellation { call }, body, waiting.parent);
        }
        sent
    }
}
