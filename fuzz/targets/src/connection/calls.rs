//! The books on our calls to the peer: each ends exactly once, and says truly whether it was sent.

use std::collections::BTreeMap;

use steadfast_model::RequestId;
use steadfast_proto::Moment;
use steadfast_proto::connection::{CallEnd, CallKey, Connection, InboundRequestKey};

use super::frame::Frame;

#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    calls: BTreeMap<CallKey, Entry>,
    next: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    parent: Option<InboundRequestKey>,
    cancellable: bool,
    /// When it has to be over.
    total: Option<Moment>,
    /// The id that it was given to the writer under.
    written: Option<RequestId>,
    /// The writer said that its first byte is out.
    told: bool,
    ended: bool,
    /// It was given up when it might have been sent, and may be cancelled, so the peer is to be told.
    given_up: bool,
}

impl Calls {
    /// A key that no call had before.
    pub(super) fn new_key(&mut self) -> (CallKey, u64) {
        self.next += 1;
        (CallKey::new(self.next), self.next)
    }

    pub(super) fn open(&mut self, key: CallKey, parent: Option<InboundRequestKey>, cancellable: bool, total: Option<Moment>) {
        let entry = Entry { parent, cancellable, total, written: None, told: false, ended: false, given_up: false };
        self.calls.insert(key, entry);
    }

    pub(super) fn end(&mut self, key: CallKey, outcome: &CallEnd) {
        let entry = self.entry(key);
        assert!(!entry.ended, "ended twice: {entry:?}");
        entry.ended = true;
        match outcome {
            CallEnd::Cancelled { sent } | CallEnd::TimedOut { sent } => {
                entry.given_up = *sent && entry.cancellable;
                entry.assert_sent(*sent);
            }
            CallEnd::Closed { sent } => entry.assert_sent(*sent),
            outcome => {
                assert!(entry.written.is_some(), "{outcome:?} for a call that the peer cannot know of: {entry:?}");
            }
        }
    }

    pub(super) fn progress(&mut self, key: CallKey) {
        let entry = self.entry(key);
        assert!(!entry.ended, "progress after the end: {entry:?}");
    }

    /// A call was given to the writer.
    pub(super) fn wrote(&mut self, key: CallKey, frame: &Frame) {
        let entry = self.entry(key);
        assert!(!entry.ended && entry.written.is_none(), "written twice, or after its end: {entry:?}");
        entry.written.clone_from(&frame.id);
        assert!(entry.written.is_some(), "a call has an id");
    }

    /// A cancellation was given to the writer. Returns whether it is of a call that was given up, and the first of it.
    pub(super) fn wrote_cancelled(&mut self, id: &RequestId) -> bool {
        let given_up = self.calls.values_mut().find(|entry| entry.given_up && entry.written.as_ref() == Some(id));
        let Some(entry) = given_up else { return false };
        entry.given_up = false;
        true
    }

    /// The first byte of each call that the writer took is out. Gives those that were not known to be.
    pub(super) fn tell(&mut self) -> Vec<CallKey> {
        let untold = self.calls.iter_mut().filter(|(_, entry)| entry.written.is_some() && !entry.told);
        untold
            .map(|(key, entry)| {
                entry.told = true;
                *key
            })
            .collect()
    }

    /// The call that the peer may answer under this id.
    pub(super) fn awaited(&self, id: &RequestId) -> Option<CallKey> {
        let awaited = |(_, entry): &(&CallKey, &Entry)| !entry.ended && entry.written.as_ref() == Some(id);
        self.calls.iter().find(awaited).map(|(key, _)| *key)
    }

    pub(super) fn pick(&self, which: u8) -> Option<CallKey> {
        let ended = |ended: bool| self.calls.iter().filter(move |(_, entry)| entry.ended == ended);
        ended(false).chain(ended(true)).nth(usize::from(which)).map(|(key, _)| *key)
    }

    pub(super) fn assert_agrees(&self, connection: &Connection) {
        let open = self.calls.values().filter(|entry| !entry.ended).count();
        assert_eq!(connection.open_calls(), open, "open calls");
        assert!(open <= connection.limits().calls, "more calls than the limit");
    }

    /// No call outlives the execution that was stopped.
    pub(super) fn assert_orphans_ended(&self, parent: InboundRequestKey) {
        let orphan = self.calls.values().find(|entry| entry.parent == Some(parent) && !entry.ended);
        assert!(orphan.is_none(), "{parent} was stopped, and its call goes on: {orphan:?}");
    }

    /// No call is open past its last deadline.
    pub(super) fn tick(&self, now: Moment) {
        let overdue = self.calls.values().find(|entry| !entry.ended && entry.total.is_some_and(|total| total <= now));
        assert!(overdue.is_none(), "open past its deadline: {overdue:?}");
    }

    pub(super) fn assert_all_ended(&self) {
        let open = self.calls.values().find(|entry| !entry.ended);
        assert!(open.is_none(), "a call that was never told: {open:?}");
    }

    fn entry(&mut self, key: CallKey) -> &mut Entry {
        self.calls.get_mut(&key).unwrap_or_else(|| panic!("{key} was never made"))
    }
}

impl Entry {
    /// What was surely sent is said to be, and what was surely not is not. Between the two the writer has it.
    fn assert_sent(&self, sent: bool) {
        if self.told {
            assert!(sent, "sent, and said not to be: {self:?}");
        }
        if self.written.is_none() {
            assert!(!sent, "never sent, and said to be: {self:?}");
        }
    }
}
