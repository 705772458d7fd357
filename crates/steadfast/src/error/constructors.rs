//! Constructors of [`Error`], for the JSON-RPC errors that handlers return and for the ways in which a call or a
//! connection can fail.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steadfast_model::{ClientCapabilities, ErrorObject, Revision, code};

use super::{Error, ErrorInner, ErrorKind, Outcome};

/// Errors that a handler may return: each is sent as a JSON-RPC error.
impl Error {
    /// Creates a JSON-RPC error with any code, for a handler to return. The error codes of JSON-RPC and MCP are in
    /// [`code`].
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from(ErrorObject::new(code, message))
    }

    /// The JSON-RPC error -32600: the request is not allowed in this place, or not at this time.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// The JSON-RPC error -32601: there is no such method.
    pub fn method_not_found(method: &str) -> Self {
        Self::from(ErrorObject::method_not_found(method))
    }

    /// The JSON-RPC error -32602: the parameters are invalid.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// The JSON-RPC error for a resource that does not exist: -32002, or -32602 since 2026-07-28.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::from(ErrorObject::resource_not_found(uri))
    }

    /// The JSON-RPC error -32603: this side failed to handle the request. The text `message` is sent to the peer.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// Returns this error with `data`, which is sent to the peer as a part of the JSON-RPC error.
    ///
    /// ```
    /// use serde_json::json;
    /// use steadfast::Error;
    /// let error = Error::invalid_params("no such account").with_data(json!({ "account": 7 }));
    /// assert_eq!(error.object().data, Some(json!({ "account": 7 })));
    /// ```
    pub fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.0.object.data = Some(data.into());
        self
    }
}

/// Failures of a call or of a connection. Some constructors of call and connection failures are public, for transports
/// and mock peers outside of this crate.
impl Error {
    /// The peer answered `method` with a JSON-RPC error.
    pub fn refused(method: impl fmt::Display, object: ErrorObject) -> Self {
        let message = format!("the peer refused {method}: {object}");
        Self::local(ErrorKind::Refused, Outcome::Refused, message).with_source(object)
    }

    /// Creates the error for a closed connection.
    pub fn closed(outcome: Outcome) -> Self {
        Self::local(ErrorKind::Closed, outcome, "connection closed")
    }

    /// A deadline passed.
    pub fn timed_out(outcome: Outcome) -> Self {
        Self::local(ErrorKind::TimedOut, outcome, "request timed out")
    }

    /// The server did not complete the handshake within the timeout.
    pub(crate) fn open_timed_out(timeout: Duration) -> Self {
        let message = format!("connection timed out: the server did not complete the handshake within {timeout:?}");
        Self::local(ErrorKind::TimedOut, Outcome::NotSent, message)
    }

    /// Creates the error for a cancelled call.
    pub(crate) fn cancelled(outcome: Outcome) -> Self {
        Self::local(ErrorKind::Cancelled, outcome, "request cancelled")
    }

    /// The server asked the user for input, and the user declined. If a tool returns the error `declined`, the model
    /// reads it as the tool's result: it is not sent as a JSON-RPC error.
    pub fn declined() -> Self {
        Self::local(ErrorKind::Declined, Outcome::Answered, "the user declined")
    }

    /// The server asked the user for input, and the user dismissed the question. If a tool returns the error
    /// `dismissed`, the model reads it as the tool's result: it is not sent as a JSON-RPC error.
    pub fn dismissed() -> Self {
        Self::local(ErrorKind::Dismissed, Outcome::Answered, "the user dismissed the question without answering")
    }

    /// A limit of this side of the connection was reached, so the call was not sent.
    pub(crate) fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Limit, Outcome::NotSent, message)
    }

    /// The peer's paginated list exceeded a limit, and may never end.
    pub(crate) fn endless_list(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Limit, Outcome::Answered, message).with_peer_fault()
    }

    /// The peer does not support what this call requires, so the call was not sent.
    pub(crate) fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Unsupported, Outcome::NotSent, message)
    }

    /// The client did not declare the capabilities that a request of this server requires, so the request was not sent.
    /// Revision 2026-07-28 has an error code for a missing capability; clients of older revisions get an internal
    /// error.
    pub(crate) fn missing_capability(revision: Revision, message: String, required: &ClientCapabilities) -> Self {
        let mut object = ErrorObject::missing_capability(message, required);
        if !revision.is_stateless() {
            object.code = code::INTERNAL_ERROR;
        }
        let (kind, outcome) = (ErrorKind::Unsupported, Outcome::NotSent);
        Self(Box::new(ErrorInner { kind, outcome, peer_fault: false, object, source: None }))
    }

    /// Client and server have no protocol revision in common, or the handshake failed.
    pub(crate) fn incompatible(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Incompatible, Outcome::NotSent, message)
    }

    /// A value could not be encoded as JSON, so nothing was sent.
    pub fn encode(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Encode, Outcome::NotSent, "a value could not be encoded as JSON").with_source(source)
    }

    /// The result of `method` could not be decoded as its result type.
    pub fn decode(method: impl fmt::Display, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = format!("the response to {method} could not be decoded");
        Self::local(ErrorKind::Decode, Outcome::Answered, message).with_source(source)
    }

    /// The response to `method` could not be parsed at all, so it is not known whether the peer did the work.
    pub(crate) fn unreadable(method: impl fmt::Display, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = format!("the response to {method} could not be decoded");
        Self::local(ErrorKind::Decode, Outcome::Unknown, message).with_source(source)
    }

    /// The result of a tool does not match the tool's output schema; `why` names the member.
    pub(crate) fn invalid_output(tool: &str, why: impl fmt::Display) -> Self {
        let message = format!("the result of the tool `{tool}` does not match its output schema: {why}");
        Self::local(ErrorKind::InvalidOutput, Outcome::Answered, message)
    }

    /// The definition of a tool cannot be used, so the tool was not called.
    pub(crate) fn uncallable(tool: &str, why: impl fmt::Display) -> Self {
        let message = format!("the tool `{tool}` was not called: {why}");
        Self::local(ErrorKind::Unsupported, Outcome::NotSent, message)
    }

    /// The I/O of the transport failed, such as a read or a write.
    pub fn transport(outcome: Outcome, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Transport, outcome, "transport failed").with_source(source)
    }

    /// The message cannot be sent, now or on a retry.
    pub(crate) fn unsendable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Unsendable, Outcome::NotSent, "the message cannot be sent").with_source(source)
    }

    /// The client could not reconnect to the server. All calls that waited for the client to reconnect share the same
    /// `cause`.
    pub(crate) fn reconnect_failed(cause: Arc<Self>) -> Self {
        let kind = match cause.kind() {
            kind @ (ErrorKind::Closed | ErrorKind::Incompatible | ErrorKind::Unsendable) => kind,
            _ => ErrorKind::Transport,
        };
        Self::local(kind, Outcome::NotSent, "reconnecting to the server failed").with_source(cause)
    }

    /// The server asked for input instead of sending a result, and did not get it. The call will not finish, and it is
    /// not known what the server did before it asked for input.
    pub(crate) fn unanswered(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Unanswered, Outcome::Unknown, message)
    }

    /// The server asked for input in a way that no client could answer: without any input request, with too many, or
    /// again and again without end.
    pub(crate) fn unanswerable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::unanswered(message).with_peer_fault()
    }

    /// The program used the API of this library wrongly.
    pub fn usage(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Usage, Outcome::NotSent, message)
    }

    /// Returns this error with `source` as its cause, which is never sent to the peer.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns this error with a more specific message.
    pub(crate) fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.object.message = message.into();
        self
    }

    /// Turns an error during the handshake into the error with which the attempt to connect fails. No call of the
    /// program was sent, whatever happened to the requests of the handshake, so the outcome is [`Outcome::NotSent`]
    /// unless the server answered one of them with an error.
    pub(crate) fn into_open_error(mut self) -> Self {
        if self.kind() == ErrorKind::Closed {
            self.0.object.message = "the server closed the connection during the handshake".into();
        }
        if self.outcome() == Outcome::Refused { self } else { self.with_outcome(Outcome::NotSent) }
    }

    /// Returns this error with the reason why the server process exited as its source, unless the error has a source
    /// already.
    pub(crate) fn with_exit_reason(self, exit_reason: Option<Arc<str>>) -> Self {
        match exit_reason.filter(|_| self.0.source.is_none()) {
            Some(exit_reason) => self.with_source(&*exit_reason),
            None => self,
        }
    }

    /// Returns this error with the outcome [`Outcome::Unknown`].
    pub(crate) fn with_outcome_unknown(self) -> Self {
        self.with_outcome(Outcome::Unknown)
    }

    /// Returns this error with another outcome of its call.
    pub(crate) fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    fn with_peer_fault(mut self) -> Self {
        self.0.peer_fault = true;
        self
    }

    /// An error that this side detected: if it ends a request of the peer, the peer gets the code of an internal error.
    fn local(kind: ErrorKind, outcome: Outcome, message: impl Into<Cow<'static, str>>) -> Self {
        let object = ErrorObject::new(code::INTERNAL_ERROR, message);
        Self(Box::new(ErrorInner { kind, outcome, peer_fault: false, object, source: None }))
    }
}
