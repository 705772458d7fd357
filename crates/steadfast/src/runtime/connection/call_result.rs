//! What a call came to: its result, or an error that says what is known.

use steadfast_model::AnyResult;
use steadfast_model::request::Request;
use steadfast_proto::connection::{CallEnd, CallRefused};

use crate::error::{Error, Outcome};

/// What a call came to, where nothing but the result will do.
pub(crate) fn result_of<R: Request>(ending: CallEnd) -> Result<R::Result, Error> {
    complete::<R>(answer_of::<R>(ending)?)
}

/// What a call was answered with.
pub(crate) fn answer_of<R: Request>(ending: CallEnd) -> Result<AnyResult<R::Result>, Error> {
    let text = text_of(ending, R::METHOD.name())?;
    AnyResult::from_json(&text).map_err(|error| Error::decode(R::METHOD, error))
}

/// The result, if that is what it is. Results of 2026-07-28 say what kind they are, and a kind that is not known must not be
/// taken for another.
pub(crate) fn complete<R: Request>(answer: AnyResult<R::Result>) -> Result<R::Result, Error> {
    match answer {
        AnyResult::Complete(result) => Ok(result),
        _ => Err(Error::unreadable(R::METHOD, "a result of a kind that this client does not take")),
    }
}

/// The text of the result.
pub(crate) fn text_of(ending: CallEnd, method: &str) -> Result<Box<str>, Error> {
    let known = |sent: bool| if sent { Outcome::Unknown } else { Outcome::NotSent };
    let stage = |sent: bool| if sent { "answered" } else { "sent" };
    match ending {
        CallEnd::Answered(text) => Ok(text),
        CallEnd::Refused(object) => Err(Error::refused(method, object)),
        CallEnd::Unreadable(why) => Err(Error::unreadable(method, why)),
        CallEnd::Cancelled { sent } => {
            Err(Error::cancelled(known(sent)).with_message(format!("{method} was cancelled")))
        }
        CallEnd::TimedOut { sent } => {
            Err(Error::timed_out(known(sent)).with_message(format!("{method} was not {} in time", stage(sent))))
        }
        CallEnd::Closed { sent } => {
            let message = format!("the connection closed before {method} was {}", stage(sent));
            Err(Error::closed(known(sent)).with_message(message))
        }
        CallEnd::Lost { sent, why } => Err(Error::transport(known(sent), why)),
        CallEnd::SessionLost => {
            Err(Error::transport(Outcome::NotSent, "the server does not know the session any more"))
        }
        CallEnd::Unsendable(why) => Err(Error::unsendable(why)),
        CallEnd::EndedByPeer => {
            Err(Error::cancelled(Outcome::Answered).with_message(format!("the peer ended {method}")))
        }
        CallEnd::NotMade(CallRefused::TooMany) => {
            let why = "too many calls wait for an answer (see `Limits::calls`)";
            Err(Error::limit(format!("{method} was not sent: {why}")))
        }
        CallEnd::NotMade(CallRefused::NotInRevision) => {
            Err(Error::unsupported(format!("the revision that the peer speaks has no {method} from this side")))
        }
        CallEnd::NotMade(CallRefused::MissingCapability(capability)) => {
            Err(Error::unsupported(format!("the peer did not declare {capability:?}, which {method} needs")))
        }
        CallEnd::NotMade(_) => {
            Err(Error::closed(Outcome::NotSent)
                .with_message(format!("{method} was not sent: the connection is closed")))
        }
    }
}

/// How the way to the server failed a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallLoss {
    /// Whether the server may have the call.
    pub(crate) sent: bool,
    pub(crate) of: LossKind,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
    /// What carried this call; others may still arrive.
    Call,
    /// The connection.
    Connection,
    /// The connection, because the server has forgotten it.
    Session,
}

impl CallLoss {
    /// Set if it was the way that failed, and neither side has said anything of the call.
    pub(crate) fn of(ending: &CallEnd) -> Option<Self> {
        match ending {
            CallEnd::Closed { sent } => Some(Self { sent: *sent, of: LossKind::Connection }),
            CallEnd::Lost { sent, .. } => Some(Self { sent: *sent, of: LossKind::Call }),
            CallEnd::SessionLost => Some(Self { sent: false, of: LossKind::Session }),
            CallEnd::NotMade(CallRefused::Closed) => Some(Self { sent: false, of: LossKind::Connection }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_which_call_it_ended() {
        let ends = [
            CallEnd::Cancelled { sent: true },
            CallEnd::TimedOut { sent: true },
            CallEnd::Closed { sent: true },
            CallEnd::Closed { sent: false },
            CallEnd::EndedByPeer,
            CallEnd::NotMade(CallRefused::TooMany),
            CallEnd::NotMade(CallRefused::Closed),
        ];
        let said: Vec<String> =
            ends.into_iter().map(|ending| text_of(ending, "tools/call").unwrap_err().to_string()).collect();
        assert_eq!(
            said,
            [
                "tools/call was cancelled",
                "tools/call was not answered in time",
                "the connection closed before tools/call was answered",
                "the connection closed before tools/call was sent",
                "the peer ended tools/call",
                "tools/call was not sent: too many calls wait for an answer (see `Limits::calls`)",
                "tools/call was not sent: the connection is closed",
            ]
        );
    }
}
