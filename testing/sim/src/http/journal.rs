//! What is seen from outside in one run over HTTP: requests and responses where the service takes and gives them, and what
//! handlers and what they start live through. The checks are in [`checks`](super::checks).

mod facts;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_proto::Moment;

use super::checks;
use super::script::{Call, Script};
use super::subscriptions::{self, Subscriptions};
use crate::executor::Executor;
use crate::observation::json::Json;
use crate::observation::lifetimes::{Lifetime, LifetimeEnd, LifetimeFacts, LifetimeKind, LifetimeObserver};
use crate::observation::message::Part;
use crate::observation::record::Record;
use crate::script::changes::Change;
pub(super) use facts::{Counts, ExchangeFacts, Facts, Purpose, RequestFacts, SessionFacts, StreamFacts};

/// The journal of one run.
pub(super) struct Journal {
    executor: Executor,
    facts: Mutex<Facts>,
}

impl Journal {
    pub(super) fn new(executor: Executor, script: &Script, kept: bool) -> Arc<Self> {
        let facts = Facts {
            limits: script.limits.clone(),
            idle: script.tuning.session_idle,
            forgetful: script.tuning.forgetful,
            calls: script.calls(),
            lives: BTreeMap::new(),
            blocked: Vec::new(),
            next_life: 0,
            requests: BTreeMap::new(),
            sessions: Vec::new(),
            exchanges: BTreeMap::new(),
            next_exchange: 0,
            closing: None,
            dropped: false,
            subscriptions: Subscriptions::default(),
            counts: Counts::default(),
            record: Record::new(kept),
        };
        Arc::new(Self { executor, facts: Mutex::new(facts) })
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn call(&self, tag: u64) -> Option<Call> {
        self.facts().calls.get(&tag).cloned()
    }

    pub(super) fn close(&self, event: &'static str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.note(now, event, 0, b"");
        facts.closing.get_or_insert(now);
        facts.subscriptions.close();
    }

    /// The server is about to change.
    pub(super) fn change(&self, change: Change) {
        let mut facts = self.facts();
        let events = facts.counts.events;
        facts.subscriptions.changed(change, events);
    }
}

/// Requests and responses.
impl Journal {
    /// A client sends a request of the protocol's, or sends one again.
    pub(super) fn sent(&self, number: u64, session: Option<usize>, tag: Option<u64>, torn: bool) {
        let now = self.executor.now();
        let mut facts = self.facts();
        let request = facts.requests.entry(number).or_insert(RequestFacts {
            session,
            tag,
            sent: 0,
            sent_at: now,
            torn: false,
            answers: 0,
            cancels: 0,
            silenced: false,
            hung_up: false,
            progress: f64::NEG_INFINITY,
            logs: (0, 0),
        });
        request.sent += 1;
        request.silenced = false;
        request.torn |= torn;
    }

    pub(super) fn begin_exchange(self: &Arc<Self>, session: Option<usize>, purpose: Purpose, body: &[u8]) -> Open {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        facts.next_exchange += 1;
        let number = facts.next_exchange;
        facts.note(now, "-> ", number, format!("{session:?} {purpose:?} {}", String::from_utf8_lossy(body)).as_bytes());
        let bodiless = matches!(purpose, Purpose::Listen | Purpose::Resume(_) | Purpose::Delete);
        let exchange = ExchangeFacts {
            session,
            purpose,
            delivered: bodiless,
            counted: false,
            place: None,
            answered: false,
            refused: false,
            over: false,
        };
        facts.exchanges.insert(number, exchange);
        if let Some(session) = session.and_then(|session| facts.sessions.get_mut(session)) {
            session.open.1 += 1;
            session.used.1 = now;
        }
        Open { journal: Arc::clone(self), number }
    }

    /// The service has read all of a body.
    pub(super) fn delivered(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        facts.note(now, "   body arrived", number, b"");
        let facts = &mut *facts;
        let Some(exchange) = facts.exchanges.get_mut(&number) else { return };
        exchange.delivered = true;
        let Some(session) = exchange.session.and_then(|session| facts.sessions.get_mut(session)) else { return };
        if exchange.purpose == Purpose::Notification || matches!(exchange.purpose, Purpose::Request(_, false)) {
            session.used = (now, now);
        }
        if matches!(exchange.purpose, Purpose::Request(_, false)) {
            exchange.counted = true;
            session.open.0 += 1;
        }
    }

    /// The service has begun to respond. Returns the session that it opened, if it did.
    pub(super) fn responded(
        &self,
        number: u64,
        status: u16,
        events: bool,
        opened: Option<&'static str>,
    ) -> Option<usize> {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        facts.note(now, "<- ", number, format!("{status}{}", if events { " events" } else { "" }).as_bytes());
        let new = opened.map(|revision| {
            facts.sessions.push(SessionFacts {
                revision,
                deleted: None,
                may_be_gone: false,
                used: (now, now),
                open: (0, 0),
                streams: vec![StreamFacts::default()],
                places: BTreeMap::new(),
            });
            facts.sessions.len() - 1
        });
        checks::at_response(&mut facts, now, number, status, events);
        let facts = &mut *facts;
        let Some(exchange) = facts.exchanges.get_mut(&number) else { return new };
        let Some(session) = exchange.session.and_then(|session| facts.sessions.get_mut(session)) else { return new };
        if !events {
            leave(session, exchange, now);
            return new;
        }
        if !std::mem::replace(&mut exchange.counted, true) {
            session.open.0 += 1;
        }
        exchange.place = match &exchange.purpose {
            Purpose::Request(request, _) => {
                session.streams.push(StreamFacts { request: Some(*request), ..StreamFacts::default() });
                Some((session.streams.len() - 1, 0))
            }
            Purpose::Resume(id) => session.places.get(id).map(|(stream, place)| (*stream, place + 1)),
            _ => session.streams.first().map(|standalone| (0, standalone.events.len())),
        };
        if let Some(stream) = exchange.place.and_then(|(stream, _)| session.streams.get_mut(stream)) {
            stream.newest = number;
        }
        facts.counts.resumed += u64::from(matches!(exchange.purpose, Purpose::Resume(_)));
        new
    }

    /// The service gives an event, or a message that is a body.
    pub(super) fn given(&self, number: u64, id: Option<&str>, data: &[u8]) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.counts.events += 1;
        facts.note(now, "<- event", number, &[id.unwrap_or("-").as_bytes(), b" ", data].concat());
        let Some(request) = checks::at_event(&mut facts, number, id, data) else { return };
        let json = Json::read(data);
        for part in &Part::all_of(json.as_ref(), data) {
            facts.counts.questions += u64::from(matches!(part, Part::Request { .. }));
            checks::at_message(&mut facts, number, request, part);
            subscriptions::at_message(&mut facts, request, part, json.as_ref().unwrap_or(&Json::Null));
        }
        checks::at_bytes(&mut facts, data);
    }

    /// The service has given all of a body.
    pub(super) fn given_all(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        facts.note(now, "<- end", number, b"");
        checks::at_end_of_body(&mut facts, number);
        subscriptions::at_end_of_body(&mut facts, now, number);
        facts.exchanges.get_mut(&number).into_iter().for_each(|exchange| exchange.over = true);
    }

    /// A client has learned that its cancellation was taken in.
    pub(super) fn cancelled(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.counts.cancellations += 1;
        checks::silence(&mut facts, now, number);
    }
}

/// A response counts for its session no more.
fn leave(session: &mut SessionFacts, exchange: &mut ExchangeFacts, now: Moment) {
    if std::mem::take(&mut exchange.counted) {
        session.open.0 = session.open.0.saturating_sub(1);
        session.used.0 = now;
    }
    session.used.1 = now;
}

/// A request of HTTP until it is done, or its client hangs up.
pub(super) struct Open {
    journal: Arc<Journal>,
    pub(super) number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let now = self.journal.executor.now();
        let mut facts = self.journal.facts();
        facts.grow_old(now);
        facts.note(now, "   response let go", self.number, b"");
        let facts = &mut *facts;
        let Some(exchange) = facts.exchanges.get_mut(&self.number) else { return };
        if let Some(session) = exchange.session.and_then(|session| facts.sessions.get_mut(session)) {
            leave(session, exchange, now);
            session.open.1 = session.open.1.saturating_sub(1);
        }
        let mut hung_up = None;
        if let (None, Purpose::Request(number, _)) = (exchange.session, exchange.purpose.clone())
            && !exchange.answered
            && !exchange.refused
            && let Some(request) = facts.requests.get_mut(&number)
        {
            request.hung_up = true;
            hung_up = Some(number);
        }
        exchange.over = true;
        if let Some(number) = hung_up {
            facts.subscriptions.give_up(number);
        }
    }
}

/// The lives of handlers and of what they start.
impl Journal {
    /// Returns how often this has begun for the call, too.
    pub(super) fn begin(self: &Arc<Self>, tag: u64, what: LifetimeKind) -> (Lifetime, u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        facts.next_life += 1;
        let number = facts.next_life;
        facts.note(now, what.began(), tag, b"");
        facts.lives.insert(number, LifetimeFacts { tag, what, running: false, began: now, ended: None });
        checks::at_begin(&mut facts, tag, what);
        let run = facts.lives_of(tag, what).count();
        (Lifetime::new(Arc::clone(self) as Arc<dyn LifetimeObserver>, number), u64::try_from(run).unwrap_or(0))
    }
}

impl LifetimeObserver for Journal {
    fn running(&self, number: u64) {
        let now = self.executor.now();
        let mut facts = self.facts();
        let Some(life) = facts.lives.get_mut(&number) else { return };
        life.running = true;
        let tag = life.tag;
        facts.note(now, "   cleanup begins", tag, b"");
    }

    fn ended(&self, number: u64, how: LifetimeEnd) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.grow_old(now);
        let Some(life) = facts.lives.get_mut(&number) else { return };
        life.ended = Some((now, how));
        let (tag, what, began) = (life.tag, life.what, life.began);
        facts.note(now, what.ended(how), tag, b"");
        if (what, how) == (LifetimeKind::Handler, LifetimeEnd::Dropped) {
            checks::at_drop(&mut facts, now, tag, began);
        }
    }
}
