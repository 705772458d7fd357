//! What one message of the peer's entitles it to, by the rules of the wire and nothing else.
//!
//! This is a second, naive reading of the rules, with one thing taken from the connection: whether a request was started
//! or answered at once, which depends on what the server offers.

use std::collections::{BTreeMap, VecDeque};

use steadfast_model::{CancelledParams, Method, RequestId, Revision};
use steadfast_proto::connection::{CallEnd, CallKey, CancelReason, Connection, ConnectionEvent, InboundRequestKey, Request};
use steadfast_proto::envelope::{self, Batch, Message, MalformedMessage, MalformedMessageReason};
use steadfast_proto::salvage::SalvagedMessageShape;

use super::calls::Calls;
use super::ledger::Ledger;
use super::operation::Side;

/// What is known of the connection before it hears a message.
pub(super) struct Hearing {
    depth: usize,
    most_members: usize,
    revision: Option<Revision>,
    /// The peer has answered `server/discover`: requests that it sends behind that are not answered, unless a handshake
    /// follows.
    discovered: bool,
    side: Side,
}

impl Hearing {
    pub(super) fn of(connection: &Connection, side: Side) -> Self {
        let limits = connection.limits();
        let revision = connection.peer().map(|peer| peer.revision);
        let discovered = connection.has_discovered();
        Self { depth: limits.depth, most_members: limits.batch, revision, discovered, side }
    }

    /// Enters in the ledger what a message entitles the peer to. `events` are what the connection made of it, and `calls` are
    /// as they were before it.
    pub(super) fn enter(&self, bytes: &[u8], events: &[ConnectionEvent], calls: &Calls, ledger: &mut Ledger) {
        let mut made = Made::of(events);
        let mut enter_one = |message: Result<Message<'_>, MalformedMessage>| {
            let awaited = self.answers(&message).and_then(|id| calls.awaited(id));
            if !awaited.is_some_and(|call| made.take_answered(call)) {
                self.enter_one(message, &mut made, ledger);
            }
        };
        match envelope::read(bytes, self.depth) {
            Ok(Message::Batch(batch)) if self.is_taken(&batch) => {
                batch.each(|member| enter_one(envelope::read_text(member, self.depth)));
            }
            message => enter_one(message),
        }
        assert!(made.started.is_empty(), "started without being asked: {:?}", made.started);
    }

    /// How many messages there are in one.
    pub(super) fn members(&self, bytes: &[u8]) -> usize {
        match envelope::read(bytes, self.depth) {
            Ok(Message::Batch(batch)) => batch.len(),
            _ => 1,
        }
    }

    /// Whether it is answered at all: a client of 2026-07-28 answers nothing.
    pub(super) fn is_answered(&self) -> bool {
        self.side == Side::Server || self.revision.is_none_or(|revision| !revision.is_stateless())
    }

    /// The id of the call that a message is the answer to, if that waits for one. What a server says under the id of a call
    /// is taken for its answer if it is broken before it says what it is: otherwise its caller would wait until the deadline.
    fn answers<'a>(&self, message: &'a Result<Message<'_>, MalformedMessage>) -> Option<&'a RequestId> {
        match message {
            Ok(Message::Response { id, .. }) => id.as_ref(),
            Err(MalformedMessage { salvaged, .. }) => {
                let may_answer = salvaged.shape == SalvagedMessageShape::Response
                    || (salvaged.shape == SalvagedMessageShape::Unknown && self.side == Side::Client);
                salvaged.id.as_ref().filter(|_| may_answer)
            }
            Ok(_) => None,
        }
    }

    fn enter_one(&self, message: Result<Message<'_>, MalformedMessage>, made: &mut Made<'_>, ledger: &mut Ledger) {
        if !self.is_answered() {
            return;
        }
        match message {
            Ok(Message::Request { .. } | Message::Batch(_)) | Err(_) if self.discovered && self.revision.is_none() => {}
            Ok(Message::Request { id, .. }) if ledger.is_open(&id) => ledger.owe_without_id(),
            Ok(Message::Request { id, method, params }) => match made.take_started(&id, &method, params.text()) {
                Some(request) => ledger.start(request),
                None => ledger.owe(id),
            },
            Ok(Message::Notification { method, params }) if method == Method::Cancelled.name() => {
                let cancelled: Option<CancelledParams> = serde_json::from_str(params.text()).ok();
                if let Some(id) = cancelled.and_then(|cancelled| cancelled.request_id) {
                    ledger.silence(&id, |key| self.may_cancel(key, made));
                }
            }
            Ok(Message::Notification { .. } | Message::Response { .. }) => {}
            Ok(Message::Batch(_)) => ledger.owe_without_id(),
            Err(refusal) if is_never_answered(&refusal) => {}
            Err(refusal) => match refusal.salvaged.id {
                Some(id) if refusal.salvaged.shape == SalvagedMessageShape::Call && !ledger.is_open(&id) => ledger.owe(id),
                _ => ledger.owe_without_id(),
            },
        }
    }

    /// A cancellation silences a request.
    fn may_cancel(&self, key: InboundRequestKey, made: &Made<'_>) -> bool {
        match (self.side, self.revision) {
            (Side::Server, _) | (Side::Client, Some(_)) => true,
            // Nobody said yet what is spoken here. Either will do.
            (Side::Client, None) => made.cancelled.contains(&key),
        }
    }

    fn is_taken(&self, batch: &Batch<'_>) -> bool {
        let mut initializes = false;
        batch.each(|member| {
            let message = envelope::read_text(member, self.depth);
            initializes |=
                matches!(message, Ok(Message::Request { method, .. }) if method == Method::Initialize.name());
        });
        let counts = !batch.is_empty() && batch.len() <= self.most_members;
        self.revision == Some(Revision::V2025_03_26) && counts && !initializes
    }
}

/// An answer is not answered, nor is a notification with parameters that are none.
fn is_never_answered(refusal: &MalformedMessage) -> bool {
    let notification = refusal.kind == MalformedMessageReason::BadParams && refusal.salvaged.id.is_none();
    notification || refusal.salvaged.shape == SalvagedMessageShape::Response
}

/// What a connection made of a message.
struct Made<'a> {
    /// In order.
    started: VecDeque<&'a Request>,
    cancelled: Vec<InboundRequestKey>,
    /// The calls that ended, and whether it was with an answer that no message has been found for yet.
    ended: BTreeMap<CallKey, bool>,
}

impl<'a> Made<'a> {
    fn of(events: &'a [ConnectionEvent]) -> Self {
        let mut made = Self { started: VecDeque::new(), cancelled: Vec::new(), ended: BTreeMap::new() };
        for event in events {
            match event {
                ConnectionEvent::Start(request) => made.started.push_back(request),
                ConnectionEvent::Stop { key, reason: CancelReason::Peer } => made.cancelled.push(*key),
                ConnectionEvent::CallEnded { call, outcome } => {
                    let answered =
                        matches!(outcome, CallEnd::Answered(_) | CallEnd::Refused(_) | CallEnd::Unreadable(_));
                    made.ended.insert(*call, answered);
                }
                _ => {}
            }
        }
        made
    }

    /// The next request that was started, if it is this one.
    fn take_started(&mut self, id: &RequestId, method: &str, params: &str) -> Option<&'a Request> {
        let next = *self.started.front()?;
        let same = next.id == *id && next.method.name() == method && next.params.text() == params;
        if same { self.started.pop_front() } else { None }
    }

    /// Whether this is the answer that a call has ended with. In a batch, the call may have ended before it.
    fn take_answered(&mut self, call: CallKey) -> bool {
        let answered = self.ended.get_mut(&call).unwrap_or_else(|| panic!("the answer to {call} did not end it"));
        std::mem::take(answered)
    }
}
