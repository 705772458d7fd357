//! What the connection tells its driver to do, and what it noticed.

use std::sync::Arc;

use steadfast_model::{
    ClientCapabilities, ErrorObject, Implementation, LoggingLevel, Method, ProgressParams, ProgressToken, RequestId,
    Revision, ServerCapabilities,
};

use super::key::{CallKey, Key};
use super::outbound::CallRefused;
use crate::envelope::OwnedParams;

/// What the driver is to do, in order.
#[derive(Debug, Clone)]
pub enum Event {
    /// Run the handler of this request. Its execution is live until `handle_execution_ended`.
    Start(Request),
    /// Stop this execution: nobody waits for it any more. It stays live until it says that it ended.
    Stop {
        /// Which.
        key: Key,
        /// Why.
        reason: CancelReason,
    },
    /// A call of ours has ended.
    CallEnded {
        /// Which.
        call: CallKey,
        /// How.
        outcome: CallEnd,
    },
    /// A call of ours was given up, its result matters all the same ([`Call::expects_late_answer`](super::Call::expects_late_answer)), and
    /// here it is: its JSON text.
    AnsweredLate(Box<str>),
    /// The peer reports progress on a call of ours.
    CallProgress {
        /// Which.
        call: CallKey,
        /// How far it is.
        progress: ProgressParams,
    },
    /// The peer tells us something that the connection itself has no use for.
    Notification {
        /// The call of ours that it belongs to: a subscription, which is told what it asked for.
        call: Option<CallKey>,
        /// Its method.
        method: Method,
        /// Its parameters.
        params: OwnedParams,
    },
    /// The handshake of an older revision is done.
    Opened(Arc<Peer>),
    /// Something odd that was ignored or refused: a line for the log.
    Odd(ProtocolWarning),
    /// The connection has ended; nothing more will happen.
    Closed(CloseCause),
}

/// A request that was accepted.
#[derive(Debug, Clone)]
pub struct Request {
    /// Names it and its execution.
    pub key: Key,
    /// The id that the peer gave it.
    pub id: RequestId,
    /// What is asked.
    pub method: Method,
    /// With what.
    pub params: OwnedParams,
    /// Who asks: for older revisions as the handshake said, for 2026-07-28 as this request said.
    pub peer: Arc<Peer>,
    /// Set if the peer wants to hear of progress.
    pub progress_token: Option<ProgressToken>,
    /// The least level of log messages that this request asked for (2026-07-28 only).
    pub log_level: Option<LoggingLevel>,
}

/// Who is at the other end, as far as is known.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Peer {
    /// The revision that is spoken.
    pub revision: Revision,
    /// What it calls itself. Never verified.
    pub info: Option<Implementation>,
    /// What a client can do.
    pub client_capabilities: ClientCapabilities,
    /// What a server can do.
    pub server_capabilities: ServerCapabilities,
}

impl Peer {
    /// A peer of which only the revision is known.
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            info: None,
            client_capabilities: ClientCapabilities::default(),
            server_capabilities: ServerCapabilities::default(),
        }
    }
}

/// Why an execution is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The peer cancelled the request.
    Peer,
    /// The connection closed.
    ConnectionClosed,
    /// The handler took longer than its deadline.
    Deadline,
    /// The server is shutting down.
    Shutdown,
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Peer => "cancelled by the peer",
            Self::ConnectionClosed => "the connection closed",
            Self::Deadline => "the deadline passed",
            Self::Shutdown => "the server is shutting down",
        })
    }
}

/// How a call ended (law L10).
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// It was never made.
    NotMade(CallRefused),
    /// With a result: its JSON text.
    Answered(Box<str>),
    /// With an error of the peer's.
    Refused(ErrorObject),
    /// With an answer that could not be read; whether the work was done is not known.
    Unreadable(String),
    /// We gave it up.
    Cancelled {
        /// Whether any byte of it was written.
        sent: bool,
    },
    /// The peer ended a subscription of ours.
    EndedByPeer,
    /// No answer came in time.
    TimedOut {
        /// Whether any byte of it was written.
        sent: bool,
    },
    /// The connection closed.
    Closed {
        /// Whether any byte of it was written.
        sent: bool,
    },
    /// What carried this call failed, where calls are carried one by one. The connection goes on.
    Lost {
        /// Whether the peer may have it.
        sent: bool,
        /// What happened.
        why: String,
    },
    /// The peer does not know the session that it belongs to, and has not begun it. The connection ends.
    SessionLost,
    /// It cannot be written or may not be: making it again changes nothing. The connection goes on.
    Unsendable(String),
}

/// Why a connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseCause {
    /// The peer ended its stream.
    PeerClosed,
    /// Nobody reads what we write.
    OutputFailed,
    /// We shut down.
    Shutdown,
}

impl std::fmt::Display for CloseCause {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::PeerClosed => "the peer closed the connection",
            Self::OutputFailed => "the peer stopped reading",
            Self::Shutdown => "this side shut down",
        })
    }
}

/// Something odd that was ignored or refused (law L4): never an error, always worth a line in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolWarning {
    /// A message was refused.
    Refused {
        /// Its id, if it could be read.
        id: Option<RequestId>,
        /// Why.
        why: String,
    },
    /// The peer gave a reason when it cancelled a request: the beginning of it, if it is long.
    Cancelled {
        /// The request.
        id: RequestId,
        /// What the peer says.
        reason: String,
    },
    /// A cancellation of a request that is not open: unknown, finished, or cancelled before.
    LateCancel(RequestId),
    /// A cancellation that names no request.
    MalformedCancel,
    /// An answer of a handler whose request had ended already.
    LateAnswer(Key),
    /// An answer of the peer's to nothing that waits.
    AnswerToNothing(Option<RequestId>),
    /// A notification that this revision does not have, or that cannot be read.
    UnknownNotification(String),
}
