//! The events of a connection: what the driver of the connection has to do, and warnings.

use std::sync::Arc;

use steadfast_model::{
    ClientCapabilities, ErrorObject, Implementation, LoggingLevel, Method, ProgressParams, ProgressToken, RequestId,
    Revision, ServerCapabilities,
};

use super::call::NotSentReason;
use super::key::{CallKey, InboundRequestKey};
use crate::envelope::OwnedParams;

/// What the driver of a connection has to do, in the order of the events.
#[derive(Debug, Clone)]
pub enum ConnectionEvent {
    /// The driver has to run the handler of this request. The execution of the handler is live until the driver calls
    /// `handle_execution_ended`.
    Start(Request),
    /// The driver has to stop this execution of a handler: its result is not needed any more. The stopped execution stays live
    /// until the driver calls `handle_execution_ended`.
    Stop {
        /// Which.
        key: InboundRequestKey,
        /// Why.
        reason: CancelReason,
    },
    /// A call of this side to the peer has ended.
    CallEnded {
        /// Which.
        call: CallKey,
        /// How.
        outcome: CallEnd,
    },
    /// The JSON text of the result of a call that was cancelled before, for calls with
    /// [`Call::expects_late_response`](super::Call::expects_late_response).
    LateResult(Box<str>),
    /// The peer reports progress on a call of this side.
    CallProgress {
        /// Which.
        call: CallKey,
        /// The progress that the peer reports.
        progress: ProgressParams,
    },
    /// A notification of the peer that the connection does not handle itself.
    Notification {
        /// The `subscriptions/listen` call of this client that the notification belongs to.
        call: Option<CallKey>,
        /// Its method.
        method: Method,
        /// Its parameters.
        params: OwnedParams,
    },
    /// The handshake is done, or a stateless revision was opened.
    Opened(Arc<PeerInfo>),
    /// A message of the peer was ignored or refused, which is worth a line in the log.
    Warning(ProtocolWarning),
    /// The connection has closed. `Closed` is the last event of a connection.
    Closed(CloseCause),
}

/// A request of the peer that was accepted.
#[derive(Debug, Clone)]
pub struct Request {
    /// Identifies the request within the connection, and the execution of its handler.
    pub key: InboundRequestKey,
    /// The request id that the peer chose.
    pub id: RequestId,
    /// Its method.
    pub method: Method,
    /// Its parameters.
    pub params: OwnedParams,
    /// The peer that sent the request, as the handshake described it or, in stateless revisions, the metadata of this request.
    pub peer: Arc<PeerInfo>,
    /// The progress token, if the peer wants progress notifications about this request.
    pub progress_token: Option<ProgressToken>,
    /// The minimum level of log messages that this request asked for (stateless revisions only).
    pub log_level: Option<LoggingLevel>,
}

/// What is known of the peer, the other side of a connection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PeerInfo {
    /// The protocol revision of the peer's messages.
    pub revision: Revision,
    /// The name and version that the peer gives itself; they are not verified.
    pub info: Option<Implementation>,
    /// The capabilities of the peer, if it is a client.
    pub client_capabilities: ClientCapabilities,
    /// The capabilities of the peer, if it is a server.
    pub server_capabilities: ServerCapabilities,
}

impl PeerInfo {
    /// A peer of which only the protocol revision is known.
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            info: None,
            client_capabilities: ClientCapabilities::default(),
            server_capabilities: ServerCapabilities::default(),
        }
    }
}

/// Why the execution of a handler is stopped.
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

/// How a call of this side to the peer ended (law L10).
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// This side refused to send the call.
    NotSent(NotSentReason),
    /// The peer answered the call with a result: its JSON text.
    Answered(Box<str>),
    /// The peer answered the call with an error.
    Refused(ErrorObject),
    /// The response to the call could not be read; whether the peer has processed the call is not known.
    Unreadable(String),
    /// This side cancelled the call.
    Cancelled {
        /// Whether any byte of the call's request was written to the transport before the call ended.
        sent: bool,
    },
    /// The server ended a subscription of this client.
    EndedByPeer,
    /// The call timed out.
    TimedOut {
        /// Whether any byte of the call's request was written to the transport before the call ended.
        sent: bool,
    },
    /// The connection closed.
    Closed {
        /// Whether any byte of the call's request was written to the transport before the call ended.
        sent: bool,
    },
    /// The HTTP request of this call failed, on a transport that sends each call as a request of its own. The connection
    /// continues.
    Lost {
        /// Whether the peer may have received the call.
        sent: bool,
        /// What happened.
        why: String,
    },
    /// The server does not know the MCP session of the client, and has not processed the call. The connection ends.
    SessionLost,
    /// The call cannot be sent, and a retry of the call would fail again. The connection continues.
    Unsendable(String),
}

/// Why a connection closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseCause {
    /// The peer closed its stream.
    PeerClosed,
    /// Writing failed: the peer does not read any more.
    OutputFailed,
    /// This side shut down the connection.
    Shutdown,
}

impl std::fmt::Display for CloseCause {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::PeerClosed => "the peer closed the connection",
            Self::OutputFailed => "the peer does not read any more",
            Self::Shutdown => "this side shut down the connection",
        })
    }
}

/// A warning about a message of the peer that was ignored or refused (law L4): not an error, but worth a line in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolWarning {
    /// A message of the peer was refused.
    Refused {
        /// The id of the refused message, if it could be read.
        id: Option<RequestId>,
        /// Why.
        why: String,
    },
    /// The peer gave a reason when it cancelled a request; a long reason is cut to its beginning.
    Cancelled {
        /// The request.
        id: RequestId,
        /// The reason.
        reason: String,
    },
    /// The peer cancelled a request that is not open: it is unknown, has finished, or was cancelled before.
    LateCancel(RequestId),
    /// The peer sent a cancellation that names no request.
    MalformedCancel,
    /// A handler returned the result of a request that had already ended.
    LateAnswer(InboundRequestKey),
    /// The peer sent a response with an unknown id.
    UnknownResponse(Option<RequestId>),
    /// The peer sent a notification that its revision does not have, or that cannot be read.
    UnknownNotification(String),
}
