//! What is known of one end, its requests, its calls and its drain.

use std::hash::Hash;

use steadfast_proto::Moment;
use steadfast_proto::connection::{CancelReason, Limits};

use crate::observation::message::Id;
use crate::observation::{CallRecord, Execution};

/// What one end is, and what it promised to keep to.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) side: Side,
    pub(crate) limits: Limits,
    /// The longest answer and log message that handlers here write.
    pub(crate) longest_frame: usize,
}

/// Which side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Server,
    Client,
}

/// Where a request is, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// It came in with this very message.
    Arrived,
    /// Its handler was started and has not answered.
    Running,
    /// Its handler has answered.
    Responded,
    /// The peer cancelled it while it ran.
    Cancelled,
    /// The connection owes it an answer of its own: it was never started, or its handler did not answer.
    Owed,
    /// An id that is in flight: to be refused without one.
    Duplicate,
}

/// What is known of a request of the peer's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestFacts {
    pub(crate) id: Id,
    pub(crate) token: Option<Id>,
    pub(crate) phase: Phase,
    pub(crate) execution: Option<Execution>,
    /// Its execution has not ended.
    pub(crate) live: bool,
    /// Why its handler was stopped.
    pub(crate) stop_reason: Option<CancelReason>,
    /// Answers on the wire.
    pub(crate) answers: u8,
    /// It came in a batch, so that its answer goes out with others.
    pub(crate) batch: bool,
    /// Executions that were live when it came.
    pub(crate) live_before: usize,
    /// Messages to be refused that came before it.
    pub(crate) refusals_before: u32,
    /// Another with this id came in the same message: which of the two is the duplicate shows later.
    pub(super) twin: bool,
    /// It was cancelled by the message that it came in.
    pub(super) cancelled_early: bool,
    /// The largest progress on the wire.
    pub(crate) progress: Option<u64>,
    pub(super) started_at: Option<Moment>,
    /// It may last as long as its connection.
    pub(super) lasting: bool,
}

impl RequestFacts {
    /// Whether an answer is due that is not on the wire.
    pub(crate) fn unanswered(&self) -> bool {
        matches!(self.phase, Phase::Responded | Phase::Owed | Phase::Duplicate) && self.answers == 0
    }
}

/// What is known of a call to the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFacts {
    pub(crate) called: CallRecord,
    /// Its id, once it was on the wire.
    pub(crate) id: Option<Id>,
    /// Its first byte was written.
    pub(crate) written: bool,
    pub(crate) ended: bool,
    /// It had to wait until the peer was ready.
    pub(crate) held: bool,
    pub(super) made_at: Moment,
    /// The last progress, or the beginning.
    pub(super) renewed_at: Moment,
}

impl CallFacts {
    /// Whether it waits for its end.
    pub(crate) fn is_open(&self) -> bool {
        self.called.accepted && !self.ended
    }
}

/// Whom an answer on the wire belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseOwner {
    /// A request, by its place in the ledger.
    Request(usize),
    /// A message that could not be taken.
    Refusal,
    /// Nothing that is owed one.
    Unexpected,
}

/// An end of the connection has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrainState {
    /// When it has to be over.
    pub(crate) deadline: Moment,
    /// Until when handlers may still answer.
    pub(crate) window: Moment,
    /// It began because the peer left, so that what it sent before is still served.
    pub(super) by_peer: bool,
}
