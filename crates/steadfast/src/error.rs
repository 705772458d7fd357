//! What can go wrong, whose fault it is, and what the peer is told.
//!
//! [`Error`] is the one error type of the crate: what a call to a peer ends with, what serving ends with, and what a
//! handler returns when it wants a JSON-RPC error as its answer. A failure of a tool that a model should read is not an
//! [`Error`] but a [`ToolError`](crate::ToolError).
//!
//! [`Error::object`] is the only place where an error becomes what goes on the wire. It never shows the peer a source: an
//! error that nobody wrote for the peer's eyes is an internal error with a plain sentence.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steadfast_model::{ClientCapabilities, ErrorObject, Revision, code};

type Source = Box<dyn StdError + Send + Sync>;

/// The member of a refusal's `data` that says which status it was, where a server said nothing else over HTTP.
pub(crate) const HTTP_STATUS: &str = "httpStatus";

/// A failure of the protocol, of the peer or of the connection.
///
/// Inside a tool, an `Error` that goes through `?` becomes a JSON-RPC error, whereas any other error becomes a result
/// that a model can read:
///
/// ```
/// use steadfast::Error;
///
/// async fn read(path: String) -> steadfast::Result<String> {
///     if path.starts_with("/etc") {
///         return Err(Error::invalid_params("only files of the workspace").into()); // a JSON-RPC error
///     }
///     Ok(std::fs::read_to_string(path)?) // a failure of the tool
/// }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    outcome: Outcome,
    /// It is the peer's fault, whatever the kind says.
    by_peer: bool,
    object: ErrorObject,
    source: Option<Source>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A handler gave this error as its answer.
    Answer,
    /// The peer answered a call with an error.
    Refused,
    /// The connection ended.
    Closed,
    /// A deadline passed.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// A limit of this side was reached.
    Limit,
    /// The peer did not declare that it can do this, or its revision does not have it, or it promises it in a way that this
    /// side does not understand: a schema in an unknown dialect.
    Unsupported,
    /// No revision of the protocol is spoken by both sides, or the peer did not complete the handshake.
    Incompatible,
    /// A value could not be written as JSON.
    Encode,
    /// A message could not be sent at all: it cannot be written as the transport wants it, nobody would authorize it, or the server wants it
    /// sent to somebody else.
    /// Making the call again changes nothing.
    Unsendable,
    /// What the peer answered is not what the method's answer looks like.
    Decode,
    /// What a tool answered is not what its own output schema says.
    InvalidOutput,
    /// Reading, writing, starting or stopping failed below the protocol.
    Transport,
    /// The user was asked, and said no.
    Declined,
    /// The user was asked, and went away without an answer.
    Dismissed,
    /// The server asked back, and was not answered: a handler failed, or there is none, or nobody could answer that.
    Unanswered,
    /// The program asked for something that cannot be: two tools of one name, a schema that is none.
    Usage,
}

/// Whose fault an [`Error`] is: who has to change something so that it does not happen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// This program.
    Here,
    /// The program at the other end.
    Peer,
    /// Neither: the connection, the clock, or whoever cancelled.
    Circumstances,
}

/// What is known about a call that ended with an [`Error`]: whether the peer may have acted on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing reached the peer. The call may be made again without harm.
    NotSent,
    /// The peer answered it with an error, which says why. Most refuse before they begin; one that failed, or was shut down, on
    /// the way may have begun.
    Refused,
    /// The peer did it, and its answer cannot be used.
    Answered,
    /// It was sent, and nobody knows what became of it. So it is, too, if the peer asked back and had no answer to that: it has
    /// not done all of it, and what it did before it asked it does not say.
    Unknown,
}

/// The answers that a handler may give.
impl Error {
    /// An error answer of any code. For the codes of the protocol see [`code`].
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from(ErrorObject::new(code, message))
    }

    /// -32600: the request may not be made here and now.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// -32601: there is no such method.
    pub fn method_not_found(method: &str) -> Self {
        Self::from(ErrorObject::method_not_found(method))
    }

    /// -32602: the parameters do not fit.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// There is no such resource: -32002, or -32602 since 2026-07-28.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::from(ErrorObject::resource_not_found(uri))
    }

    /// -32603: this side failed. The peer reads the message.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// This error with `data` for programs at the other end.
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

/// The ends of a call or of a connection, for transports and for code that stands in for a peer.
impl Error {
    /// The peer answered `method` with an error.
    pub fn refused(method: impl fmt::Display, object: ErrorObject) -> Self {
        let message = format!("the peer refused {method}: {object}");
        Self::local(ErrorKind::Refused, Outcome::Refused, message).with_source(object)
    }

    /// The connection ended.
    pub fn closed(outcome: Outcome) -> Self {
        Self::local(ErrorKind::Closed, outcome, "the connection is closed")
    }

    /// A deadline passed.
    pub fn timed_out(outcome: Outcome) -> Self {
        Self::local(ErrorKind::TimedOut, outcome, "the time for it was up")
    }

    /// The server had not opened the connection when the time for it was up.
    pub(crate) fn not_opened_within(time: Duration) -> Self {
        let message = format!("the server has not opened the connection within {time:?}");
        Self::local(ErrorKind::TimedOut, Outcome::NotSent, message)
    }

    /// The call was cancelled.
    pub fn cancelled(outcome: Outcome) -> Self {
        Self::local(ErrorKind::Cancelled, outcome, "the call was cancelled")
    }

    /// The user was asked and said no. Where a tool returns it the model reads it: it is not an error of the protocol.
    pub fn declined() -> Self {
        Self::local(ErrorKind::Declined, Outcome::Answered, "the user declined")
    }

    /// The user was asked and went away. Where a tool returns it the model reads it: it is not an error of the protocol.
    pub fn dismissed() -> Self {
        Self::local(ErrorKind::Dismissed, Outcome::Answered, "the user dismissed the question without an answer")
    }

    /// A limit of this side was reached, so nothing was sent.
    pub fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Limit, Outcome::NotSent, message)
    }

    /// The peer answers, and would go on for ever.
    pub(crate) fn endless(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Limit, Outcome::Answered, message).by_peer()
    }

    /// The peer cannot do this, so nothing was sent.
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Unsupported, Outcome::NotSent, message)
    }

    /// The client did not declare what this needs, so nothing was sent. Clients of 2026-07-28 have a code for it.
    pub(crate) fn missing_capability(revision: Revision, message: String, required: &ClientCapabilities) -> Self {
        let mut object = ErrorObject::missing_capability(message, required);
        if !revision.is_stateless() {
            object.code = code::INTERNAL_ERROR;
        }
        let (kind, outcome) = (ErrorKind::Unsupported, Outcome::NotSent);
        Self(Box::new(Inner { kind, outcome, by_peer: false, object, source: None }))
    }

    /// The two sides have no revision in common, or the handshake failed.
    pub fn incompatible(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Incompatible, Outcome::NotSent, message)
    }

    /// A value could not be written as JSON, so nothing was sent.
    pub fn encode(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Encode, Outcome::NotSent, "a value could not be written as JSON").with_source(source)
    }

    /// The answer to `method` is not what the method's answer looks like.
    pub fn decode(method: impl fmt::Display, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = format!("the answer to {method} could not be read");
        Self::local(ErrorKind::Decode, Outcome::Answered, message).with_source(source)
    }

    /// What came in answer to `method` could not be read at all, so nobody knows whether the peer did it.
    pub fn unreadable(method: impl fmt::Display, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let message = format!("the answer to {method} could not be read");
        Self::local(ErrorKind::Decode, Outcome::Unknown, message).with_source(source)
    }

    /// A tool answered with something else than its output schema says. The message says where.
    pub fn invalid_output(tool: &str, why: impl fmt::Display) -> Self {
        let message = format!("the answer of the tool `{tool}` does not fit its output schema: {why}");
        Self::local(ErrorKind::InvalidOutput, Outcome::Answered, message)
    }

    /// A tool says something of itself that nobody can act by, so it was not called.
    pub(crate) fn uncallable(tool: &str, why: impl fmt::Display) -> Self {
        let message = format!("the tool `{tool}` was not called: {why}");
        Self::local(ErrorKind::Unsupported, Outcome::NotSent, message)
    }

    /// Something below the protocol failed.
    pub fn transport(outcome: Outcome, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Transport, outcome, "the connection failed").with_source(source)
    }

    /// A message could not be sent, and cannot be.
    pub fn unsendable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::local(ErrorKind::Unsendable, Outcome::NotSent, "the message cannot be sent").with_source(source)
    }

    /// The server could not be reached again, for this reason, which others who wait are told too.
    pub(crate) fn unreachable(why: Arc<Self>) -> Self {
        let kind = match why.kind() {
            kind @ (ErrorKind::Closed | ErrorKind::Incompatible | ErrorKind::Unsendable) => kind,
            _ => ErrorKind::Transport,
        };
        Self::local(kind, Outcome::NotSent, "the server could not be reached again").with_source(why)
    }

    /// The server asked back in place of a result, and was not answered. It waits for nothing, and what it did before it asked
    /// nobody knows.
    pub fn unanswered(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Unanswered, Outcome::Unknown, message)
    }

    /// The server asked back in a way that nobody could answer: without a question, with too many, or without end.
    pub(crate) fn unanswerable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::unanswered(message).by_peer()
    }

    /// The program asked for something that cannot be.
    pub fn usage(message: impl Into<Cow<'static, str>>) -> Self {
        Self::local(ErrorKind::Usage, Outcome::NotSent, message)
    }

    /// This error with what caused it. The peer is never shown it.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// This error, in words that say more of what it is about.
    pub(crate) fn saying(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.object.message = message.into();
        self
    }

    /// This error as that of an opening. Nobody's call was made, whatever became of the questions that opening takes; a server
    /// that refused them has refused.
    pub(crate) fn of_opening(mut self) -> Self {
        if self.kind() == ErrorKind::Closed {
            self.0.object.message = "the server closed the connection before it was open".into();
        }
        if self.outcome() == Outcome::Refused { self } else { self.with_outcome(Outcome::NotSent) }
    }

    /// This error with how the peer ended, if nothing else is known of its cause.
    pub(crate) fn explained_by(self, obituary: Option<Arc<str>>) -> Self {
        match obituary.filter(|_| self.0.source.is_none()) {
            Some(obituary) => self.with_source(&*obituary),
            None => self,
        }
    }

    /// This error, where nobody knows what became of what it is about.
    pub(crate) fn with_outcome_unknown(self) -> Self {
        self.with_outcome(Outcome::Unknown)
    }

    /// This error, where something else is known of what it is about.
    pub(crate) fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    fn by_peer(mut self) -> Self {
        self.0.by_peer = true;
        self
    }

    fn local(kind: ErrorKind, outcome: Outcome, message: impl Into<Cow<'static, str>>) -> Self {
        let object = ErrorObject::new(code::INTERNAL_ERROR, message);
        Self(Box::new(Inner { kind, outcome, by_peer: false, object, source: None }))
    }
}

/// What is known about it.
impl Error {
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is known about the call that ended with this.
    ///
    /// ```
    /// use steadfast::{Error, Outcome};
    /// assert_eq!(Error::closed(Outcome::Unknown).outcome(), Outcome::Unknown);
    /// assert_eq!(Error::unsupported("no roots").outcome(), Outcome::NotSent);
    /// ```
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self.0.kind {
            _ if self.0.by_peer => Fault::Peer,
            ErrorKind::Answer if self.0.object.code == code::INTERNAL_ERROR => Fault::Here,
            ErrorKind::Limit | ErrorKind::Encode | ErrorKind::Unsendable | ErrorKind::Usage | ErrorKind::Unanswered => {
                Fault::Here
            }
            ErrorKind::Answer
            | ErrorKind::Refused
            | ErrorKind::Unsupported
            | ErrorKind::Incompatible
            | ErrorKind::Decode
            | ErrorKind::InvalidOutput => Fault::Peer,
            ErrorKind::Closed
            | ErrorKind::TimedOut
            | ErrorKind::Cancelled
            | ErrorKind::Transport
            | ErrorKind::Declined
            | ErrorKind::Dismissed => Fault::Circumstances,
        }
    }

    /// What the peer is told if this error ends one of its requests.
    ///
    /// The code of somebody else's refusal is not passed on: a `-32601` about a call that a tool made says nothing about
    /// the call of the tool. It is part of the message instead.
    pub fn object(&self) -> &ErrorObject {
        &self.0.object
    }

    /// [`Error::object`], taken out.
    pub fn into_object(self) -> ErrorObject {
        self.0.object
    }

    /// The error that the peer answered a call with, if this is a refusal.
    pub fn refusal(&self) -> Option<&ErrorObject> {
        self.0.source.as_ref()?.downcast_ref()
    }
}

/// The error is an answer.
impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        let (kind, outcome) = (ErrorKind::Answer, Outcome::NotSent);
        Self(Box::new(Inner { kind, outcome, by_peer: false, object, source: None }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ErrorKind::Answer => self.0.object.fmt(formatter),
            _ => formatter.write_str(&self.0.object.message),
        }
    }
}

/// The message and its causes, one a line: this is what `main` prints when it returns an error.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_causes(self, formatter)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of a refusal is in the message already.
        if self.0.kind == ErrorKind::Refused {
            return None;
        }
        self.0.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

/// Writes an error, then each of its causes on a line of its own.
pub(crate) fn write_with_causes(error: &(dyn StdError + 'static), out: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(out, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(out, "\n  caused by: {error}")?;
        cause = error.source();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_on_the_wire_as_it_was_made() {
        let error = Error::new(7, "seven").with_data(8);
        assert_eq!(error.kind(), ErrorKind::Answer);
        assert_eq!(error.object(), &ErrorObject::new(7, "seven").with_data(8));
    }

    #[test]
    fn the_code_of_a_refusal_is_not_passed_on() {
        let error = Error::refused("roots/list", ErrorObject::method_not_found("roots/list"));
        assert_eq!(error.object().code, code::INTERNAL_ERROR);
        assert_eq!(error.refusal().map(|object| object.code), Some(code::METHOD_NOT_FOUND));
        assert_eq!(error.to_string(), "the peer refused roots/list: method not found: roots/list (-32601)");
    }

    #[test]
    fn a_source_is_never_shown_to_the_peer() {
        let error = Error::transport(Outcome::Unknown, std::io::Error::other("/secret/path"));
        let sent = serde_json::to_string(error.object()).unwrap();
        assert!(!sent.contains("secret"), "{sent}");
        assert!(format!("{error:?}").contains("caused by: /secret/path"));
    }

    #[test]
    fn codes_of_our_own_conditions_stay_out_of_the_reserved_range() {
        for error in [
            Error::closed(Outcome::Unknown),
            Error::timed_out(Outcome::Unknown),
            Error::cancelled(Outcome::NotSent),
            Error::limit("too many"),
            Error::unsupported("no"),
            Error::incompatible("no"),
            Error::usage("no"),
            Error::encode("no"),
            Error::decode("ping", "no"),
        ] {
            assert_eq!(error.object().code, code::INTERNAL_ERROR, "{error}");
        }
    }

    #[test]
    fn every_error_has_an_owner() {
        assert_eq!(Error::invalid_params("x").fault(), Fault::Peer);
        assert_eq!(Error::internal("x").fault(), Fault::Here);
        assert_eq!(Error::closed(Outcome::Unknown).fault(), Fault::Circumstances);
        assert_eq!(Error::usage("x").fault(), Fault::Here);
    }

    #[test]
    fn errors_are_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
