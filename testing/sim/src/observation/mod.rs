//! What can be seen of a connection from outside: the wire at its end, and the journal of its handlers and callers.
//!
//! Checkers get these and nothing else. A step is one cause (something that was done to the connection), then its effects
//! (what the connection returned to its driver), then [`Observation::Settled`].

pub(crate) mod drain;
pub(crate) mod json;
pub(crate) mod ledger;
pub(crate) mod lifetimes;
pub(crate) mod message;
pub(crate) mod record;
pub(crate) mod subscription;
pub(crate) mod trace;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::Revision;
use steadfast_proto::Moment;
use steadfast_proto::connection::{CallEnd, CancelReason, CloseCause};

use crate::observation::message::{Id, Message};

/// Numbers an execution, in the order of their starts. Handlers write it into their answers.
pub(crate) type Execution = u64;

/// Numbers a call, in the order in which they are made.
pub(crate) type CallNumber = u64;

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) enum Observation {
    // Causes on the wire.
    /// A frame came in.
    Received(Arc<Message>),
    /// The writer took a frame. `call` is set if it is a call of ours.
    Sent { message: Arc<Message>, call: Option<CallNumber> },
    /// The first byte of a call was written.
    FirstByte(CallNumber),
    /// Everything that the writer took was written.
    Flushed,
    /// The peer ended its stream, and everything that it sent has been handled.
    InputEnded,
    /// The peer has closed its end, and input is still unread.
    PeerGone,
    /// Writing failed: the peer has closed its input.
    WriteFailed,
    // Causes by our side.
    /// This side shuts down; `at_once` without the window.
    ShutDown { at_once: bool },
    /// The deadline that was asked for has come.
    TimedOut,
    /// A handler answers.
    Responded(Execution),
    /// A handler reports progress.
    Progressed(Execution),
    /// A handler logs; the number is in the data of the log message.
    Logged { execution: Execution, marker: u64 },
    /// An execution has really ended.
    ExecutionEnded(Execution),
    /// The application makes a call.
    Called(CallRecord),
    /// The application drops a call.
    GaveUp(CallNumber),
    /// Something else was asked of the connection that has no part in the laws.
    Asked(&'static str),
    // Effects.
    /// A handler is to run.
    Started { execution: Execution, id: Id, method: &'static str },
    /// A handler is to stop.
    Stopped { execution: Execution, reason: CancelReason },
    /// A call has ended.
    CallEnded { call: CallNumber, how: CallOutcome },
    /// The peer reported progress on a call.
    CallProgressed(CallNumber),
    /// The connection is open, in this revision.
    Opened(Revision),
    /// A line for the log.
    LogLine(String),
    /// The connection has ended.
    Closed(CloseCause),
    /// It panicked.
    Panicked(String),
    // The end of a step, and of a run.
    /// The step is over. This is what the connection asks of its driver now.
    Settled { waiting: usize, deadline: Option<Moment>, wants_input: bool },
    /// Nothing is on its way any more, here or at the peer, and no timer runs.
    Quiet,
}

/// A call that was made, or refused at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallRecord {
    pub(crate) call: CallNumber,
    pub(crate) method: &'static str,
    /// The execution that made it.
    pub(crate) parent: Option<Execution>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) accepted: bool,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum CallOutcome {
    /// With a result: its text, read and written again so that spelling does not count.
    Answered(Arc<str>),
    Refused(i64),
    Unreadable,
    /// The peer ended a subscription.
    ByPeer,
    Cancelled {
        sent: bool,
    },
    TimedOut {
        sent: bool,
    },
    Closed {
        sent: bool,
    },
}

impl From<CallEnd> for CallOutcome {
    fn from(outcome: CallEnd) -> Self {
        match outcome {
            CallEnd::Answered(text) => {
                let value = json::Json::read(text.as_bytes());
                Self::Answered(value.map_or_else(|| Arc::from(&*text), |value| value.to_string().into()))
            }
            CallEnd::Refused(error) => Self::Refused(error.code),
            CallEnd::Cancelled { sent } => Self::Cancelled { sent },
            CallEnd::TimedOut { sent } => Self::TimedOut { sent },
            // Streams carry all calls together, so none is lost alone.
            CallEnd::Closed { sent } | CallEnd::Lost { sent, .. } => Self::Closed { sent },
            CallEnd::SessionLost | CallEnd::Unsendable(_) | CallEnd::NotSent(_) => Self::Closed { sent: false },
            CallEnd::Unreadable(_) => Self::Unreadable,
            CallEnd::EndedByPeer => Self::ByPeer,
        }
    }
}

impl CallOutcome {
    /// Whether any byte was written, as far as this end says so.
    pub(crate) fn claims_sent(&self) -> Option<bool> {
        match self {
            Self::Cancelled { sent } | Self::TimedOut { sent } | Self::Closed { sent } => Some(*sent),
            Self::Answered(_) | Self::Refused(_) | Self::Unreadable | Self::ByPeer => None,
        }
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Received(message) => write!(formatter, "<- {message}"),
            Self::Sent { message, .. } => write!(formatter, "-> {message}"),
            other => write!(formatter, "   {other:?}"),
        }
    }
}
