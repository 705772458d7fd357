//! The facts of requests, sessions, streams and HTTP exchanges.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast::Limits;
use steadfast_proto::Moment;

use crate::http::script::Call;
use crate::http::subscriptions::Subscriptions;
use crate::law::Law;
use crate::observation::lifetimes::{LifetimeFacts, LifetimeKind};
use crate::observation::record::Record;

/// Everything that was seen.
pub(in crate::http) struct Facts {
    pub(in crate::http) limits: Limits,
    pub(in crate::http) idle: Duration,
    /// Events may be dropped before a client resumes.
    pub(in crate::http) forgetful: bool,
    pub(in crate::http) calls: BTreeMap<u64, Call>,
    pub(in crate::http) lives: BTreeMap<u64, LifetimeFacts>,
    /// Calls whose handlers block their thread now, in their first poll.
    pub(in crate::http) blocked: Vec<u64>,
    pub(super) next_life: u64,
    /// By their ids, of which no two are the same unless one is sent again.
    pub(in crate::http) requests: BTreeMap<u64, RequestFacts>,
    pub(in crate::http) sessions: Vec<SessionFacts>,
    pub(in crate::http) exchanges: BTreeMap<u64, ExchangeFacts>,
    pub(super) next_exchange: u64,
    /// When the service was shut down, or dropped.
    pub(in crate::http) closing: Option<Moment>,
    /// It was dropped, so what still holds it decides when it ends.
    pub(in crate::http) dropped: bool,
    pub(in crate::http) subscriptions: Subscriptions,
    pub(in crate::http) counts: Counts,
    pub(in crate::http) record: Record,
}

/// For the totals.
#[derive(Default)]
pub(in crate::http) struct Counts {
    pub(in crate::http) answers: u64,
    pub(in crate::http) cancellations: u64,
    pub(in crate::http) questions: u64,
    pub(in crate::http) events: u64,
    pub(in crate::http) resumed: u64,
}

/// A request of the protocol's, whatever carries it.
pub(in crate::http) struct RequestFacts {
    /// `None` in 2026-07-28.
    pub(in crate::http) session: Option<usize>,
    pub(in crate::http) tag: Option<u64>,
    pub(in crate::http) sent: usize,
    /// When it was first sent.
    pub(in crate::http) sent_at: Moment,
    /// Its body did not arrive whole.
    pub(in crate::http) torn: bool,
    pub(in crate::http) answers: usize,
    pub(in crate::http) cancels: usize,
    /// Its cancellation was taken in while its handler ran.
    pub(in crate::http) silenced: bool,
    /// Its client hung up before the answer was given (2026-07-28).
    pub(in crate::http) hung_up: bool,
    pub(in crate::http) progress: f64,
    /// The run of the handler whose log messages these are, and how many there were.
    pub(in crate::http) logs: (u64, u64),
}

/// A session.
pub(in crate::http) struct SessionFacts {
    pub(in crate::http) revision: &'static str,
    /// Deleted then.
    pub(in crate::http) deleted: Option<Moment>,
    /// It may have been idle for too long at some time.
    pub(in crate::http) may_be_gone: bool,
    /// When it was last in use for certain, and when at most.
    pub(in crate::http) used: (Moment, Moment),
    /// Responses that are open for certain, and at most.
    pub(in crate::http) open: (usize, usize),
    /// The first belongs to no request.
    pub(in crate::http) streams: Vec<StreamFacts>,
    /// Where each event is that was given out.
    pub(in crate::http) places: BTreeMap<String, (usize, usize)>,
}

/// A stream of a session: the events that were given out, in order.
#[derive(Default)]
pub(in crate::http) struct StreamFacts {
    pub(in crate::http) request: Option<u64>,
    pub(in crate::http) events: Vec<(String, Vec<u8>)>,
    pub(in crate::http) answered: bool,
    /// Somebody else reads it now.
    pub(in crate::http) newest: u64,
}

/// One request of HTTP with its response.
pub(in crate::http) struct ExchangeFacts {
    pub(in crate::http) session: Option<usize>,
    pub(in crate::http) purpose: Purpose,
    pub(in crate::http) delivered: bool,
    /// It counts as an open response for certain.
    pub(in crate::http) counted: bool,
    /// What comes next is at this place of this stream.
    pub(in crate::http) place: Option<(usize, usize)>,
    pub(in crate::http) answered: bool,
    /// It was not taken at all.
    pub(in crate::http) refused: bool,
    pub(in crate::http) over: bool,
}

/// What a request of HTTP is for.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Purpose {
    Open,
    /// A request; not for the first time.
    Request(u64, bool),
    Notification,
    Cancel(u64),
    Listen,
    Resume(String),
    Delete,
}

impl Facts {
    pub(in crate::http) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.record.broken(law, what);
    }

    pub(super) fn note(&mut self, now: Moment, event: &'static str, number: u64, bytes: &[u8]) {
        // What is sealed differs from run to run; it comes last in a message.
        let sealed = memchr::memmem::find(bytes, b"\"requestState\"");
        self.record.note(now, event, number, sealed.map_or(bytes, |at| bytes.split_at(at).0));
    }

    pub(in crate::http) fn lives_of(&self, tag: u64, what: LifetimeKind) -> impl Iterator<Item = &LifetimeFacts> {
        self.lives.values().filter(move |life| life.tag == tag && life.what == what)
    }

    pub(in crate::http) fn alive(&self) -> impl Iterator<Item = &LifetimeFacts> {
        self.lives.values().filter(|life| life.ended.is_none())
    }

    /// The requests that a handler may run for.
    pub(in crate::http) fn requests_of(&self, tag: u64) -> impl Iterator<Item = &RequestFacts> {
        self.requests.values().filter(move |request| request.tag == Some(tag))
    }

    /// The session of a call, if it has one.
    pub(in crate::http) fn session_of(&self, tag: u64) -> Option<&SessionFacts> {
        let session = self.requests_of(tag).find_map(|request| request.session)?;
        self.sessions.get(session)
    }

    /// Takes note of sessions that may have been idle for too long by now.
    pub(in crate::http) fn grow_old(&mut self, now: Moment) {
        for session in &mut self.sessions {
            session.may_be_gone |= session.open.0 == 0 && session.used.0 + self.idle <= now;
        }
    }
}

impl SessionFacts {
    /// When it has to be gone at the latest, if that is known.
    pub(in crate::http) fn gone_at(&self, idle: Duration) -> Option<Moment> {
        let idle = (self.open.1 == 0).then(|| self.used.1 + idle);
        self.deleted.into_iter().chain(idle).min()
    }

    pub(in crate::http) fn primes(&self) -> bool {
        self.revision == "2025-11-25"
    }
}
