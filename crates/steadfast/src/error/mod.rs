//! The error type: what went wrong, whose fault it is, and which JSON-RPC error the peer gets.
//!
//! [`Error`] is the one error type of the crate: a call to a peer fails with it, serving fails with it, and a handler
//! returns it to answer with a JSON-RPC error. A failure of a tool that a model should read is not an [`Error`] but a
//! [`ToolError`](crate::ToolError).
//!
//! [`Error::object`] is the only place where an error becomes the JSON-RPC error that is sent to the peer. The source
//! of an error is never sent: an error that was not written for the peer is sent as an internal error with a plain
//! message.

mod constructors;
mod kind;

use std::error::Error as StdError;
use std::fmt;

use steadfast_model::{ErrorObject, code};

pub use kind::{ErrorKind, FaultParty, Outcome};

type ErrorSource = Box<dyn StdError + Send + Sync>;

/// The member of an error's `data` with the HTTP status, if the server answered a call with an HTTP status and no
/// JSON-RPC error.
pub(crate) const HTTP_STATUS: &str = "httpStatus";

/// A failure of the protocol, of the peer or of the connection.
///
/// Inside a tool, an `Error` that goes through `?` becomes a JSON-RPC error, whereas any other error becomes a result
/// that a model can read:
///
/// ```
/// use steadfast::Error;
///
/// async fn read(path: String) -> steadfast::ToolResult<String> {
///     if path.starts_with("/etc") {
///         return Err(Error::invalid_params("only files of the workspace").into()); // a JSON-RPC error
///     }
///     Ok(std::fs::read_to_string(path)?) // a failure of the tool
/// }
/// ```
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    outcome: Outcome,
    /// The peer is at fault for this error, whatever its kind.
    peer_fault: bool,
    object: ErrorObject,
    source: Option<ErrorSource>,
}

/// Methods that tell the kind of an error, its outcome, whose fault it is, and its JSON-RPC form.
impl Error {
    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the peer may have acted on the call that ended with this error, as far as is known.
    ///
    /// ```
    /// use steadfast::{Error, Outcome};
    /// assert_eq!(Error::closed(Outcome::Unknown).outcome(), Outcome::Unknown);
    /// assert_eq!(Error::usage("no such tool").outcome(), Outcome::NotSent);
    /// ```
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Whose fault this error is.
    pub fn fault(&self) -> FaultParty {
        match self.0.kind {
            _ if self.0.peer_fault => FaultParty::Peer,
            ErrorKind::Handler if self.0.object.code == code::INTERNAL_ERROR => FaultParty::Local,
            ErrorKind::Limit | ErrorKind::Encode | ErrorKind::Unsendable | ErrorKind::Usage | ErrorKind::Unanswered => {
                FaultParty::Local
            }
            ErrorKind::Handler
            | ErrorKind::Refused
            | ErrorKind::Unsupported
            | ErrorKind::Incompatible
            | ErrorKind::Decode
            | ErrorKind::InvalidOutput => FaultParty::Peer,
            ErrorKind::Closed
            | ErrorKind::TimedOut
            | ErrorKind::Cancelled
            | ErrorKind::Transport
            | ErrorKind::Declined
            | ErrorKind::Dismissed => FaultParty::Environment,
        }
    }

    /// The JSON-RPC error that the peer gets if this error ends one of its requests.
    ///
    /// If a tool made a call of its own, and that peer answered with an error, the code of the peer's error is not
    /// passed on: `-32601` for a call that a tool made says nothing about the call of the tool. The code of the peer's
    /// error is part of the message instead.
    pub fn object(&self) -> &ErrorObject {
        &self.0.object
    }

    /// Converts this error into the JSON-RPC error that [`Error::object`] returns by reference.
    pub fn into_object(self) -> ErrorObject {
        self.0.object
    }

    /// The JSON-RPC error with which the peer answered a call, if this error is such a refusal
    /// ([`ErrorKind::Refused`]).
    pub fn refusal(&self) -> Option<&ErrorObject> {
        self.0.source.as_ref()?.downcast_ref()
    }
}

/// Converts a JSON-RPC error object into an error that a handler returns as its response.
impl From<ErrorObject> for Error {
    fn from(object: ErrorObject) -> Self {
        let (kind, outcome) = (ErrorKind::Handler, Outcome::NotSent);
        Self(Box::new(ErrorInner { kind, outcome, peer_fault: false, object, source: None }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            ErrorKind::Handler => self.0.object.fmt(formatter),
            _ => formatter.write_str(&self.0.object.message),
        }
    }
}

/// Writes the error message and its causes, one per line: this is what `main` prints when it returns an error.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_with_causes(self, formatter)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The message has the text of the peer's error already.
        if self.0.kind == ErrorKind::Refused {
            return None;
        }
        self.0.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

/// Writes an error, then each of its causes on its own line.
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
    fn an_error_of_a_handler_goes_on_the_wire_as_it_is() {
        let error = Error::new(7, "seven").with_data(8);
        assert_eq!(error.kind(), ErrorKind::Handler);
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
    fn every_error_has_a_fault() {
        assert_eq!(Error::invalid_params("x").fault(), FaultParty::Peer);
        assert_eq!(Error::internal("x").fault(), FaultParty::Local);
        assert_eq!(Error::closed(Outcome::Unknown).fault(), FaultParty::Environment);
        assert_eq!(Error::usage("x").fault(), FaultParty::Local);
    }

    #[test]
    fn errors_are_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
