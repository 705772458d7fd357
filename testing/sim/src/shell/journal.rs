//! What is seen from outside in one run: the wire at the peer's end, and what handlers, shields, cleanups and calls live
//! through. The checks are in [`checks`](super::checks).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast::{Limits, Outcome};
use steadfast_proto::Moment;

use super::script::{Call, Script};
use super::subscriptions::Subscriptions;
use crate::executor::Executor;
use crate::executor::link::Link;
use crate::law::Law;
use crate::observation::json::Json;
use crate::observation::lifetimes::{Lifetime, LifetimeEnd, LifetimeFacts, LifetimeKind, LifetimeObserver};
use crate::observation::message::{Id, Part};
use crate::observation::record::Record;
use crate::script::changes::Change;

/// The journal of one run.
pub(super) struct Journal {
    executor: Executor,
    link: Link,
    facts: Mutex<Facts>,
}

/// Everything that was seen.
pub(super) struct Facts {
    pub(super) limits: Limits,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) lives: BTreeMap<u64, LifetimeFacts>,
    /// Calls whose handlers block their thread now, in their first poll.
    pub(super) blocked: Vec<u64>,
    pub(super) requests: BTreeMap<Id, RequestFacts>,
    /// What the connection answers by itself, and has not answered.
    pub(super) asks: BTreeSet<Id>,
    /// Cancellations that were sent before an ask, and how many requests of that id were sent before them.
    barriers: BTreeMap<Id, Vec<(Id, usize)>>,
    cancels: Vec<(Id, usize)>,
    pub(super) tags: BTreeMap<u64, u32>,
    tokens: BTreeMap<Id, TokenFacts>,
    next_life: u64,
    /// When the server could first see that it is to end.
    pub(super) closing: Option<Moment>,
    /// The peer went, or the server's future was dropped, before it was done.
    pub(super) rough: bool,
    pub(super) server_dropped: bool,
    pub(super) shut_down: bool,
    pub(super) paused_until: Moment,
    pub(super) ended: Option<Moment>,
    pub(super) calls_made: usize,
    pub(super) calls_not_sent: usize,
    pub(super) calls_answered: usize,
    pub(super) calls_seen: usize,
    pub(super) answers_sent: usize,
    /// Lines that were corrupted on their way.
    pub(super) corrupted: usize,
    pub(super) frames: usize,
    pub(super) answers: usize,
    /// When nothing could run the last time: what had been written, and who had returned.
    pub(super) settled: (usize, Vec<u64>),
    pub(super) subscriptions: Subscriptions,
    /// Bytes that the peer has read, in whole lines.
    read: u64,
    pub(super) record: Record,
}

/// What was seen of an id.
#[derive(Default)]
pub(super) struct RequestFacts {
    pub(super) sent: usize,
    /// When the last of them was.
    pub(super) sent_at: Moment,
    /// Lines that may or may not be taken as a request of this id.
    pub(super) doubtful: usize,
    pub(super) answers: usize,
    /// Of these, results.
    pub(super) results: usize,
    pub(super) refusals: usize,
    pub(super) cancels: usize,
    /// Its cancellation has been taken in.
    pub(super) silenced: bool,
    pub(super) tag: Option<u64>,
}

struct TokenFacts {
    id: Id,
    last: f64,
}

impl Facts {
    pub(super) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.record.broken(law, what);
    }

    fn note(&mut self, now: Moment, event: &'static str, number: u64, bytes: &[u8]) {
        self.record.note(now, event, number, bytes);
    }

    pub(super) fn lives_of(&self, tag: u64, what: LifetimeKind) -> impl Iterator<Item = &LifetimeFacts> {
        self.lives.values().filter(move |life| life.tag == tag && life.what == what)
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &LifetimeFacts> {
        self.lives.values().filter(|life| life.ended.is_none())
    }
}

impl Journal {
    pub(super) fn new(executor: Executor, link: Link, script: &Script, kept: bool) -> Arc<Self> {
        let facts = Facts {
            limits: script.limits.clone(),
            calls: script.calls(),
            lives: BTreeMap::new(),
            blocked: Vec::new(),
            requests: BTreeMap::new(),
            asks: BTreeSet::new(),
            barriers: BTreeMap::new(),
            cancels: Vec::new(),
            tags: BTreeMap::new(),
            tokens: BTreeMap::new(),
            next_life: 0,
            closing: None,
            rough: false,
            server_dropped: false,
            shut_down: false,
            paused_until: Moment::ORIGIN,
            ended: None,
            calls_made: 0,
            calls_not_sent: 0,
            calls_answered: 0,
            calls_seen: 0,
            answers_sent: 0,
            corrupted: 0,
            frames: 0,
            answers: 0,
            settled: (0, Vec::new()),
            subscriptions: Subscriptions::new(script.handshake.is_none()),
            read: 0,
            record: Record::new(kept),
        };
        Arc::new(Self { executor, link, facts: Mutex::new(facts) })
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn call(&self, tag: u64) -> Option<Call> {
        self.facts().calls.get(&tag).cloned()
    }

    /// The server could see from now on that it is to end.
    pub(super) fn close(&self, event: &'static str, rough: bool) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.note(now, event, 0, b"");
        if facts.ended.is_none() {
            facts.closing.get_or_insert(now);
            facts.rough |= rough;
            facts.subscriptions.close();
        }
    }

    /// The server is about to change.
    pub(super) fn change(&self, change: Change) {
        let written = u64::try_from(self.link.total_written()).unwrap_or(u64::MAX);
        let mut facts = self.facts();
        let closing = facts.closing.is_some();
        facts.subscriptions.changed(change, written, closing);
    }

    /// Something that the server wrote was never read.
    pub(super) fn lost(&self) {
        self.facts().rough = true;
    }

    /// The server's future has ended.
    pub(super) fn server_ended(&self, text: &str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.note(now, "server ended", 0, text.as_bytes());
        facts.ended = Some(now);
        facts.blocked = self.executor.blocked_in_first_poll();
        super::checks::at_the_end(&mut facts, now);
    }
}

/// The lives of handlers and of what they start.
impl Journal {
    pub(super) fn begin(self: &Arc<Self>, tag: u64, what: LifetimeKind) -> Lifetime {
        let (now, written) = (self.executor.now(), self.link.total_written());
        let mut facts = self.facts();
        facts.next_life += 1;
        let number = facts.next_life;
        facts.note(now, what.began(), tag, b"");
        facts.lives.insert(number, LifetimeFacts { tag, what, running: false, began: now, ended: None });
        facts.calls_made += usize::from(what == LifetimeKind::Call);
        super::checks::at_begin(&mut facts, now, tag, what, written);
        Lifetime::new(Arc::clone(self) as Arc<dyn LifetimeObserver>, number)
    }

    /// How a call of a handler to the client ended.
    pub(super) fn called(&self, failed: Option<Outcome>) {
        let mut facts = self.facts();
        match failed {
            Some(Outcome::NotSent) => facts.calls_not_sent += 1,
            Some(Outcome::Unknown) => {}
            _ => facts.calls_answered += 1,
        }
    }
}

impl LifetimeObserver for Journal {
    fn running(&self, number: u64) {
        if let Some(life) = self.facts().lives.get_mut(&number) {
            life.running = true;
        }
    }

    fn ended(&self, number: u64, how: LifetimeEnd) {
        let now = self.executor.now();
        let mut facts = self.facts();
        let Some(life) = facts.lives.get_mut(&number) else { return };
        life.ended = Some((now, how));
        let (tag, what) = (life.tag, life.what);
        facts.note(now, what.ended(how), tag, b"");
    }
}

/// The wire.
impl Journal {
    /// The peer sends a line. `doubtful` names the id that it had before it was corrupted.
    pub(super) fn sent(&self, line: &[u8], tag: Option<u64>, doubtful: Option<&str>) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.note(now, "->", 0, line);
        if let Some(id) = doubtful {
            let request = facts.requests.entry(id.into()).or_default();
            request.doubtful += 1;
            request.silenced = false;
            facts.corrupted += 1;
            // What is damaged may be the id, and then it may be that of another request.
            if let Some(other) = damaged_id(line).filter(|other| other != id) {
                let request = facts.requests.entry(other.as_str().into()).or_default();
                request.doubtful += 1;
                request.silenced = false;
            }
        }
        for part in &Part::all_of(Json::read(line).as_ref(), line) {
            match part {
                Part::Request { id, method, token } => {
                    let request = facts.requests.entry(id.clone()).or_default();
                    request.sent += 1;
                    request.sent_at = now;
                    request.silenced = false;
                    request.tag = tag.or(request.tag);
                    if let Some(token) = token {
                        facts.tokens.insert(token.clone(), TokenFacts { id: id.clone(), last: f64::NEG_INFINITY });
                    }
                    if matches!(&**method, "ping" | "server/discover") {
                        facts.asks.insert(id.clone());
                        let cancels = std::mem::take(&mut facts.cancels);
                        facts.barriers.insert(id.clone(), cancels);
                    }
                }
                Part::Cancel { id: Some(id) } => {
                    let request = facts.requests.entry(id.clone()).or_default();
                    request.cancels += 1;
                    let covers = request.sent + request.doubtful;
                    facts.cancels.push((id.clone(), covers));
                    facts.subscriptions.cancel(id);
                }
                Part::Answer(_) => facts.answers_sent += 1,
                _ => {}
            }
        }
    }

    /// The peer has read a line. Returns the ids of calls that it is asked to answer.
    pub(super) fn received(&self, line: &[u8]) -> Vec<Id> {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.note(now, "<-", 0, line);
        facts.frames += 1;
        facts.read += u64::try_from(line.len() + 1).unwrap_or(0);
        super::checks::at_frame(&mut facts, line);
        let mut asked = Vec::new();
        let json = Json::read(line);
        for part in &Part::all_of(json.as_ref(), line) {
            match part {
                Part::Request { id, .. } => {
                    facts.calls_seen += 1;
                    asked.push(id.clone());
                }
                Part::Answer(answer) => facts.answered(answer),
                Part::Progress { token: Some(token), value } => facts.progressed(token, f64::from_bits(*value)),
                Part::Log { marker: Some(tag) } => facts.logged(*tag),
                Part::Notification { .. } | Part::Cancel { .. } => facts.notified(json.as_ref().unwrap_or(&Json::Null)),
                Part::Unreadable { .. } => {
                    facts.broken(Law::Order, "expected a JSON-RPC message from the server, observed something else");
                }
                _ => {}
            }
        }
        asked
    }
}

impl Facts {
    fn answered(&mut self, answer: &crate::observation::message::Answer) {
        let Some(id) = &answer.id else {
            if let Some(request) = answer.about.as_ref().and_then(|about| self.requests.get_mut(about)) {
                request.refusals += 1;
            }
            return;
        };
        self.answers += 1;
        super::checks::at_answer(self, id, answer);
        super::subscriptions::answered(self, id, answer);
        self.tokens.retain(|_, token| {
            token.id != *id || self.requests.get(id).is_some_and(|known| known.sent + known.doubtful > 1)
        });
        if self.asks.remove(id) {
            for (cancelled, covers) in self.barriers.remove(id).unwrap_or_default() {
                if let Some(request) = self.requests.get_mut(&cancelled)
                    && request.sent + request.doubtful == covers
                {
                    request.silenced = true;
                }
            }
        }
    }

    fn notified(&mut self, message: &Json<'_>) {
        let position = self.read;
        super::subscriptions::notified(
            self,
            message["method"].as_str().unwrap_or_default(),
            &message["params"],
            position,
        );
    }

    fn progressed(&mut self, token: &Id, value: f64) {
        let Some(known) = self.tokens.get_mut(token) else {
            return self.broken(
                Law::Order,
                format!("token {token}: expected progress only while its request is open, observed it"),
            );
        };
        let grew = value > known.last;
        known.last = value;
        let silenced = self.requests.get(&known.id).is_some_and(|request| request.silenced);
        if !grew {
            self.broken(Law::Order, format!("token {token}: expected increasing progress, observed {value}"));
        }
        if silenced {
            self.broken(
                Law::Silence,
                format!("token {token}: expected silence after its cancellation, observed progress"),
            );
        }
    }

    fn logged(&mut self, tag: u64) {
        let id = self.calls.get(&tag).map(|call| call.id.clone()).unwrap_or_default();
        if self.requests.get(&*id).is_some_and(|request| request.silenced) {
            self.broken(Law::Silence, format!("{id}: expected silence after its cancellation, observed a log message"));
        }
    }
}

/// What stands in the place of the id in a line that was damaged.
fn damaged_id(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let (_, rest) = text.split_once("\"id\":")?;
    rest.split([',', '}']).next().map(|id| id.trim().to_owned())
}
