//! Turns the end of a call into its result, or into an error that says whether the peer may have acted on the request.

use steadfast_model::DeferrableResult;
use steadfast_model::request::Request;
use steadfast_proto::connection::{CallEnd, NotSentReason};

use crate::error::{Error, Outcome};

/// Returns the decoded result of a call. A result whose `resultType` is not "complete" is an error.
pub(crate) fn result_of<R: Request>(ending: CallEnd) -> Result<R::Result, Error> {
    complete::<R>(answer_of::<R>(ending)?)
}

/// Decodes the result of a call, whatever its `resultType`: complete, input required, or a task.
pub(crate) fn answer_of<R: Request>(ending: CallEnd) -> Result<DeferrableResult<R::Result>, Error> {
    let text = text_of(ending, R::METHOD.name())?;
    DeferrableResult::from_json(&text).map_err(|error| Error::decode(R::METHOD, error))
}

/// Returns the result of a call if it is complete, otherwise an error. Results of revision 2026-07-28 name their
/// `resultType`, and an unknown type must not be taken for a complete result.
pub(crate) fn complete<R: Request>(answer: DeferrableResult<R::Result>) -> Result<R::Result, Error> {
    match answer {
        DeferrableResult::Complete(result) => Ok(result),
        _ => Err(Error::unreadable(R::METHOD, "only a complete result is supported for this request")),
    }
}

/// The JSON text of the result of a call.
pub(crate) fn text_of(end: CallEnd, method: &str) -> Result<Box<str>, Error> {
    let outcome = |sent: bool| if sent { Outcome::Unknown } else { Outcome::NotSent };
    let stage = |sent: bool| if sent { "had a response" } else { "was sent" };
    match end {
        CallEnd::Answered(text) => Ok(text),
        CallEnd::Refused(object) => Err(Error::refused(method, object)),
        CallEnd::Unreadable(why) => Err(Error::unreadable(method, why)),
        CallEnd::Cancelled { sent } => {
            Err(Error::cancelled(outcome(sent)).with_message(format!("{method} was cancelled")))
        }
        CallEnd::TimedOut { sent } => {
            let message = format!("request timed out before {method} {}", stage(sent));
            Err(Error::timed_out(outcome(sent)).with_message(message))
        }
        CallEnd::Closed { sent } => {
            let message = format!("connection closed before {method} {}", stage(sent));
            Err(Error::closed(outcome(sent)).with_message(message))
        }
        CallEnd::Lost { sent, why } => Err(Error::transport(outcome(sent), why)),
        CallEnd::SessionLost => {
            Err(Error::transport(Outcome::NotSent, "session not found: the session has expired or was deleted"))
        }
        CallEnd::Unsendable(why) => Err(Error::unsendable(why)),
        CallEnd::EndedByPeer => {
            Err(Error::cancelled(Outcome::Answered).with_message(format!("{method} was ended by the peer")))
        }
        CallEnd::NotSent(NotSentReason::TooMany) => {
            let why = "call limit reached (see `Limits::calls`)";
            Err(Error::limit(format!("{method} was not sent: {why}")))
        }
        CallEnd::NotSent(NotSentReason::NotInRevision) => {
            Err(Error::unsupported(format!("{method} cannot be sent: the negotiated revision does not have it")))
        }
        CallEnd::NotSent(NotSentReason::MissingCapability(capability)) => Err(Error::unsupported(format!(
            "{method} needs the capability {capability:?}, which the peer did not declare"
        ))),
        CallEnd::NotSent(_) => {
            Err(Error::closed(Outcome::NotSent)
                .with_message(format!("{method} was not sent: the connection is closed")))
        }
    }
}

/// A call that ended because its transport failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallLoss {
    /// Whether the server may have received the request.
    pub(crate) sent: bool,
    pub(crate) kind: CallLossScope,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallLossScope {
    /// The HTTP request or stream of one call failed; other calls of the same connection may still work.
    Call,
    /// The connection.
    Connection,
    /// The connection was lost, because the server does not know its MCP session any more.
    Session,
}

impl CallLoss {
    /// Returns how a call was lost if its transport failed, and `None` if the client or the server ended the call.
    pub(crate) fn from_end(end: &CallEnd) -> Option<Self> {
        match end {
            CallEnd::Closed { sent } => Some(Self { sent: *sent, kind: CallLossScope::Connection }),
            CallEnd::Lost { sent, .. } => Some(Self { sent: *sent, kind: CallLossScope::Call }),
            CallEnd::SessionLost => Some(Self { sent: false, kind: CallLossScope::Session }),
            CallEnd::NotSent(NotSentReason::Closed) => Some(Self { sent: false, kind: CallLossScope::Connection }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_method_of_its_call() {
        let ends = [
            CallEnd::Cancelled { sent: true },
            CallEnd::TimedOut { sent: true },
            CallEnd::Closed { sent: true },
            CallEnd::Closed { sent: false },
            CallEnd::EndedByPeer,
            CallEnd::NotSent(NotSentReason::TooMany),
            CallEnd::NotSent(NotSentReason::Closed),
        ];
        let messages: Vec<String> =
            ends.into_iter().map(|end| text_of(end, "tools/call").unwrap_err().to_string()).collect();
        assert_eq!(
            messages,
            [
                "tools/call was cancelled",
                "request timed out before tools/call had a response",
                "connection closed before tools/call had a response",
                "connection closed before tools/call was sent",
                "tools/call was ended by the peer",
                "tools/call was not sent: call limit reached (see `Limits::calls`)",
                "tools/call was not sent: the connection is closed",
            ]
        );
    }
}
