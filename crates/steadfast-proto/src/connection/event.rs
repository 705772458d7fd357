//! The events of a connection: what its driver has to do, and warnings.

use std::sync::Arc;

use steadfast_model::{
    ClientCapabilities, ErrorObject, Implementation, LoggingLevel, Method, ProgressParams, ProgressToken, RequestId,
    Revision, ServerCapabilities,
};

use super::call::NotSentReason;
use super::key::{CallKey, InboundRequestKey};
use crate::envelope::OwnedParams;

/// What the driver has to do, in order.
#[derive(Debug, Clone)]
pub enum ConnectionEvent {
    /// Run the handler of this request. Its execution is live until `handle_execution_ended`.
    Start(Request),
    /// Stop this execution: its result is not needed any more. It stays live until `handle_execution_ended`.
    Stop {
        /// Which.
        key: InboundRequestKey,
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
    /// The result of a call that was cancelled, for calls with
    /// [`Call::expects_late_response`](super::Call::expects_late_response): its JSON text.
    LateResult(Box<str>),
    /// The peer reports progress on a call of ours.
    CallProgress {
        /// Which.
        call: CallKey,
        /// How far it is.
        progress: ProgressParams,
    },
    /// A notification of the peer that the connection does not handle itself.
    Notification {
        /// The `subscriptions/listen` call of ours that it belongs to.
        call: Option<CallKey>,
        /// Its method.
        method: Method,
        /// Its parameters.
        params: OwnedParams,
    },
    /// The handshake is done, or a stateless revision was opened.
    Opened(Arc<PeerInfo>),
    /// A message that was ignored or refused, for the log.
    Warning(ProtocolWarning),
    /// The connection has closed. This is the last event.
    Closed(CloseCause),
}

/// A request that was accepted.
#[derive(Debug, Clone)]
pub struct Request {
    /// Identifies the request within the connection, and the execution of its handler.
    pub key: InboundRequestKey,
    /// The id that the peer gave it.
    pub id: RequestId,
    /// Its method.
    pub method: Method,
    /// Its parameters.
    pub params: OwnedParams,
    /// The sender: from the handshake, or from the metadata of this request in stateless revisions.
    pub peer: Arc<PeerInfo>,
    /// Set if the peer wants progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// The minimum level of log messages that this request asked for (stateless revisions only).
    pub log_level: Option<LoggingLevel>,
}

/// The other side of a connection, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PeerInfo {
    /// The revision of its messages.
    pub revision: Revision,
    /// The name and version that the peer gives itself; they are not verified.
    pub info: Option<Implementation>,
    /// The capabilities of a client.
    pub client_capabilities: ClientCapabilities,
    /// The capabilities of a server.
    pub server_capabilities: ServerCapabilities,
}

impl PeerInfo {
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
    /// This side refused the call before it was sent.
    NotSent(NotSentReason),
    /// With a result: its JSON text.
    Answered(Box<str>),
    /// With an error of the peer.
    Refused(ErrorObject),
    /// With a response that could not be read; whether the peer has processed the request is not known.
    Unreadable(String),
    /// It was cancelled by this side.
    Cancelled {
        /// Whether any byte of the call's request was written to the transport.
        sent: bool,
    },
    /// The peer ended a subscription of ours.
    EndedByPeer,
    /// It timed out.
    TimedOut {
        /// Whether any byte of the call's request was written to the transport.
        sent: bool,
    },
    /// The connection closed.
    Closed {
        /// Whether any byte of the call's request was written to the transport.
        sent: bool,
    },
    /// The transport of this call failed, where each call has its own (HTTP). The connection continues.
    Lost {
        /// Whether the peer may have received the call.
        sent: bool,
        /// What happened.
        why: String,
    },
    /// The server does not know the session, and has not processed the call. The connection ends.
    SessionLost,
    /// The call cannot be sent, and a retry would fail again. The connection continues.
    Unsendable(String),
}

/// Why a connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseCause {
    /// The peer ended its stream.
    PeerClosed,
    /// Writing failed: the peer does not read any more.
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

/// A message that was ignored or refused (law L4): not an error, but worth a line in the log.
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
        /// The reason.
        reason: String,
    },
    /// A cancellation of a request that is not open: unknown, finished, or cancelled before.
    LateCancel(RequestId),
    /// A cancellation that names no request.
    MalformedCancel,
    /// The result of a handler whose request had already ended.
    LateAnswer(InboundRequestKey),
    /// A response with an unknown id.
    UnknownResponse(Option<RequestId>),
    /// A notification that this revision does not have, or that cannot be read.
    UnknownNotification(String),
}
