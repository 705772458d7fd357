//! What one message of the peer's entitles it to, by the rules of the wire and nothing else.
//!
//! This is a second, naive reading of the rules, with one thing taken from the connection: whether a request was started
//! or answered at once, which depends on what the server offers.

use std::collections::VecDeque;

use steadfast_model::{CancelledParams, Method, RequestId, Revision};
use steadfast_proto::connection::{CancelReason, Connection, Event, Key, Request};
use steadfast_proto::envelope::{self, Batch, Message, Refusal, RefusalKind};
use steadfast_proto::salvage::Shape;

use super::ledger::Ledger;
use super::operation::Side;

/// What is known of the connection before it hears a message.
pub(super) struct Hearing {
    depth: usize,
    most_members: usize,
    revision: Option<Revision>,
    side: Side,
}

impl Hearing {
    pub(super) fn of(connection: &Connection, side: Side) -> Self {
        let limits = connection.limits();
        let revision = connection.peer().map(|peer| peer.revision);
        Self { depth: limits.depth, most_members: limits.batch, revision, side }
    }

    /// Enters in the ledger what a message entitles the peer to. `events` are what the connection made of it.
    pub(super) fn enter(&self, bytes: &[u8], events: &[Event], ledger: &mut Ledger) {
        let mut made = Made::of(events);
        match envelope::read(bytes, self.depth) {
            Ok(Message::Batch(batch)) if self.is_taken(&batch) => {
                batch.each(|member| self.enter_one(envelope::read_text(member, self.depth), &mut made, ledger));
            }
            message => self.enter_one(message, &mut made, ledger),
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
        self.side == Side::Server || self.revision.is_none_or(|revision| !revision.is_modern())
    }

    fn enter_one(&self, message: Result<Message<'_>, Refusal>, made: &mut Made<'_>, ledger: &mut Ledger) {
        if !self.is_answered() {
            return;
        }
        match message {
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
            Ok(Message::Notification { .. } | Message::Answer { .. }) => {}
            Ok(Message::Batch(_)) => ledger.owe_without_id(),
            Err(refusal) if is_never_answered(&refusal) => {}
            Err(refusal) => match refusal.salvaged.id {
                Some(id) if !ledger.is_open(&id) => ledger.owe(id),
                _ => ledger.owe_without_id(),
            },
        }
    }

    /// A cancellation silences a request.
    fn may_cancel(&self, key: Key, made: &Made<'_>) -> bool {
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
fn is_never_answered(refusal: &Refusal) -> bool {
    let notification = refusal.kind == RefusalKind::BadParams && refusal.salvaged.id.is_none();
    notification || refusal.salvaged.shape == Shape::Answer
}

/// What a connection made of a message.
struct Made<'a> {
    /// In order.
    started: VecDeque<&'a Request>,
    cancelled: Vec<Key>,
}

impl<'a> Made<'a> {
    fn of(events: &'a [Event]) -> Self {
        let mut made = Self { started: VecDeque::new(), cancelled: Vec::new() };
        for event in events {
            match event {
                Event::Start(request) => made.started.push_back(request),
                Event::Stop { key, reason: CancelReason::Peer } => made.cancelled.push(*key),
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
}
