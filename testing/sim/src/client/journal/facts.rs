//! Everything that was seen in one run, and how much waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast::ErrorKind;
use steadfast_proto::Moment;

use super::calls::CallFacts;
use super::requests::{Kind, QuestionFacts, RequestFacts};
use crate::client::TransportKind;
use crate::client::checks::cache::CacheFacts;
use crate::client::checks::changes::ListenerFacts;
use crate::client::checks::tasks::TaskFacts;
use crate::client::script::Call;
use crate::executor::line_buffer::LineBuffer;
use crate::law::Law;
use crate::observation::message::Id;
use crate::observation::record::Record;

/// How long a client waits for the answer to a subscription whose listener is gone.
const SUBSCRIBING: Duration = Duration::from_secs(60);

/// Everything that was seen.
pub(in crate::client) struct Facts {
    pub(in crate::client) record: Record,
    pub(in crate::client) transport_kind: TransportKind,
    /// The server speaks 2026-07-28.
    pub(in crate::client) modern: bool,
    /// The last request that opened a connection was `initialize`.
    pub(in crate::client) initializes: bool,
    /// How many calls may wait.
    pub(in crate::client) most_calls: usize,
    /// The most that waited at once since nothing could run.
    pub(in crate::client) peak: usize,
    pub(in crate::client) calls: BTreeMap<u64, CallFacts>,
    /// Progress that the server has reported, by the call that it is for.
    pub(in crate::client) reported: BTreeSet<(u64, String)>,
    pub(in crate::client) plans: BTreeMap<u64, Call>,
    /// Requests of the client.
    pub(in crate::client) requests: BTreeMap<Id, RequestFacts>,
    /// What they are called here, by their connection: each has ids of its own.
    pub(in crate::client) keys: BTreeMap<(usize, Id), Id>,
    pub(in crate::client) questions: BTreeMap<Id, QuestionFacts>,
    /// By their names.
    pub(in crate::client) tasks: BTreeMap<String, TaskFacts>,
    /// Those that the client followed when it was closed.
    pub(in crate::client) left_behind: Vec<String>,
    /// How many of those may go on, for want of room to cancel them.
    pub(in crate::client) may_go_on: usize,
    /// There were tasks to cancel when it was closed: it waits until the server has read that.
    pub(in crate::client) cancels_at_close: bool,
    pub(in crate::client) listeners: BTreeMap<u64, ListenerFacts>,
    /// What a server of the older revisions is to tell of, on which connection.
    pub(in crate::client) subscribed: BTreeSet<(usize, String)>,
    pub(in crate::client) cache: CacheFacts,
    /// The client reconnects.
    pub(in crate::client) returns: bool,
    /// A connection was lost.
    pub(in crate::client) trouble: bool,
    /// Those whose session was reported to the client as lost.
    pub(in crate::client) lost: BTreeSet<usize>,
    /// The client could see that it is over.
    pub(in crate::client) closing: Option<Moment>,
    /// Until when the server reads nothing.
    pub(in crate::client) deaf_until: Moment,
    /// The program has closed it.
    pub(in crate::client) shut: Option<Moment>,
    /// The program is done with the client, and no call waits.
    pub(in crate::client) left: Option<Moment>,
    /// Requests of HTTP that are under way.
    pub(in crate::client) requesting: usize,
    /// How it began, once it has.
    pub(in crate::client) opened: Option<Result<(), ErrorKind>>,
    /// Bytes of lines that have not ended, by their connection.
    pub(in crate::client) partial: BTreeMap<usize, LineBuffer>,
    pub(in crate::client) counts: Counts,
}

/// Numbers for the totals.
#[derive(Default)]
pub(in crate::client) struct Counts {
    pub(in crate::client) cancellations: u64,
    pub(in crate::client) resumed: u64,
    /// Beyond the first.
    pub(in crate::client) rounds: u64,
    pub(in crate::client) messages: u64,
    pub(in crate::client) links: u64,
}
impl Facts {
    pub(in crate::client) fn broken(&mut self, law: Law, what: impl Into<String>) {
        self.record.broken(law, what);
    }

    /// Whether the client has given a connection up because its session is lost. It opens another at once, and what is read on the
    /// old one at that moment may be dropped. What was read before that was checked when nothing could run.
    pub(in crate::client) fn is_given_up(&self, link: usize) -> bool {
        self.returns && self.lost.contains(&link)
    }

    /// Whether no part of the program waits for the client.
    pub(in crate::client) fn is_idle(&self) -> bool {
        let calls = self.calls.values().all(|call| call.ended.is_some());
        let readings = self.cache.readings.values().all(|reading| reading.finished);
        calls && readings && self.listeners.values().all(|listener| listener.ended.is_some())
    }

    /// How much may wait for an answer, at most.
    pub(in crate::client) fn waiting(&self, now: Moment) -> usize {
        // One whose progress is a stream of its own goes on by itself, and may notice later that it was dropped.
        let calls = self.calls.values().filter(|call| call.ended.is_none() || call.hears).count();
        let readings = self.cache.readings.values().filter(|reading| !reading.finished).count();
        // On the older wires a subscribe request is awaited after its listener is gone: it must not arrive after
        // its unsubscribe. It is among the requests below once it has been written, and may be under way before. A listener has
        // several, one made after the other, and all of them again on the next connection.
        let is_made = |listener: &ListenerFacts| listener.is_subscribed() && !(self.returns && self.trouble);
        let listens = |listener: &&ListenerFacts| match listener.ended {
            Some(ended) => !self.modern && !is_made(listener) && now <= ended + SUBSCRIBING,
            None => true,
        };
        let listeners = self.listeners.values().filter(listens).count();
        let beside = |request: &&RequestFacts| {
            let waits = match request.kind {
                Kind::Task | Kind::Subscription => !request.takes_back,
                // What a client sends by itself to see whether the server responds does not count.
                Kind::Opening | Kind::Ping | Kind::Call | Kind::Listen | Kind::Other => false,
            };
            // A call that is made between the arrival of an answer and its driver's next turn comes before the answer.
            waits && !request.cancelled && !request.given_up && !request.finished
        };
        calls + readings + listeners + self.requests.values().filter(beside).count()
    }
}
