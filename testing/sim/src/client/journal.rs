//! What is seen from outside in one run: what the program did with its client and the outcomes, and what the server has
//! read and written. The checks are in [`checks`](super::checks).

mod calls;
mod facts;
mod program;
mod requests;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use steadfast_proto::Moment;

use super::checks::cache::CacheFacts;
use super::checks::tasks;
use super::script::{Action, Script};
use crate::executor::Executor;
use crate::observation::record::Record;
pub(super) use calls::{CallFacts, CallResult};
pub(super) use facts::{Counts, Facts};
pub(super) use requests::{Fault, Kind, QuestionFacts, RequestFacts, ResponseKind};

/// The journal of one run.
pub(super) struct Journal {
    pub(super) executor: Executor,
    facts: Mutex<Facts>,
    transport: OnceLock<Arc<dyn TransportFacts>>,
}

/// What is known of the transport between the client and the server.
pub(super) trait TransportFacts: Send + Sync {
    /// Whether the client has read what this is the receipt of.
    fn was_read(&self, receipt: usize) -> bool;

    /// The same, if that was before the client could know that its own words are lost on that connection.
    fn was_read_in_time(&self, receipt: usize) -> bool {
        self.was_read(receipt)
    }

    /// The server has read everything that the client writes.
    fn is_quiet(&self) -> bool;

    /// The client has read to the end, and there will be no more.
    fn is_read_to_end(&self) -> bool;

    /// The client has let go of it.
    fn is_dropped(&self) -> bool;
}

impl Journal {
    pub(super) fn new(executor: Executor, script: &Script, kept: bool) -> Arc<Self> {
        let plans = script.steps.iter().filter_map(|step| match &step.action {
            Action::Call(call) => Some((call.tag, call.clone())),
            _ => None,
        });
        let facts = Facts {
            record: Record::new(kept),
            transport_kind: script.transport_kind,
            modern: script.handshake.is_none(),
            initializes: false,
            most_calls: script.limits.calls,
            peak: 0,
            calls: BTreeMap::new(),
            reported: BTreeSet::new(),
            plans: plans.collect(),
            requests: BTreeMap::new(),
            keys: BTreeMap::new(),
            questions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            left_behind: Vec::new(),
            may_go_on: 0,
            cancels_at_close: false,
            listeners: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            cache: CacheFacts::default(),
            returns: script.returns,
            trouble: false,
            lost: BTreeSet::new(),
            closing: None,
            deaf_until: Moment::default(),
            shut: None,
            left: None,
            requesting: 0,
            opened: None,
            partial: BTreeMap::new(),
            counts: Counts::default(),
        };
        Arc::new(Self { executor, facts: Mutex::new(facts), transport: OnceLock::new() })
    }

    pub(super) fn set_transport(&self, transport: Arc<dyn TransportFacts>) {
        // It is set once, before anything runs.
        let _ = self.transport.set(transport);
    }

    pub(super) fn transport(&self) -> Option<&dyn TransportFacts> {
        self.transport.get().map(|transport| &**transport)
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, event: &'static str, number: u64, bytes: &[u8]) {
        let now = self.executor.now();
        self.facts().record.note(now, event, number, bytes);
    }

    /// From now on the client can see that a connection is over; and that is all, unless it reconnects.
    pub(super) fn lose(&self, event: &'static str) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, event, 0, b"");
        facts.trouble = true;
        if !facts.returns {
            facts.closing.get_or_insert(now);
        }
    }

    /// The client learns that the session of a connection is lost.
    pub(super) fn lose_session(&self, link: usize) {
        self.facts().lost.insert(link);
        self.lose("session lost");
    }

    /// The program closes the client.
    pub(super) fn close(&self) {
        let now = self.executor.now();
        let mut facts = self.facts();
        facts.record.note(now, "close", 0, b"");
        facts.shut.get_or_insert(now);
        facts.closing.get_or_insert(now);
        if let Some(transport) = self.transport() {
            tasks::at_close(&mut facts, transport, now);
        }
    }

    /// The client is closed.
    pub(super) fn closed(&self) {
        self.note("closed", 0, b"");
        tasks::at_closed(&mut self.facts());
    }
}
