//! What became of a call, as something that a caller has to look at.

use steadfast_model::request::Request;

use super::Call;
use crate::error::{Error, ErrorKind, Outcome};

/// What became of a call (law L10). It has to be matched: there is no `?` that forgets the difference.
///
/// ```
/// use serde_json::json;
/// use steadfast::client::CallOutcome;
/// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
/// match client.call_tool("pay", json!({ "amount": 5 })).outcome().await {
///     CallOutcome::Answered(receipt) => println!("{receipt:?}"),
///     CallOutcome::Refused(error) | CallOutcome::Unusable(error) => return Err(error),
///     CallOutcome::NotSent(error) => println!("nothing was paid: {error}"),
///     CallOutcome::Cancelled(error) => println!("cancelled; {:?}", error.outcome()),
///     // Nobody but the caller can say whether it may be made again.
///     CallOutcome::Unknown(unknown) => println!("paid or not: {}", unknown.error()),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "whether the server did it is what this says"]
pub enum CallOutcome<R: Request> {
    /// The server did it, and this is its result.
    Answered(R::Result),
    /// The server did it, and its answer cannot be used.
    Unusable(Error),
    /// The server answered with an error: see [`Outcome::Refused`].
    Refused(Error),
    /// Nothing reached the server.
    NotSent(Error),
    /// It was cancelled. The error's outcome says whether the server may have acted on it.
    Cancelled(Error),
    /// It was sent, and nobody knows what became of it. Also if the server asked back and was not answered: what it did before
    /// that nobody knows.
    Unknown(UnknownOutcome<R>),
}

/// A call of which nobody knows what became of it.
#[must_use = "the server may have done it, or not"]
pub struct UnknownOutcome<R: Request> {
    error: Error,
    call: Call<R>,
}

impl<R: Request> CallOutcome<R> {
    pub(crate) fn of(ended: Result<R::Result, Error>, call: Option<Call<R>>) -> Self {
        let error = match ended {
            Ok(result) => return Self::Answered(result),
            Err(error) => error,
        };
        match (error.outcome(), call) {
            _ if error.kind() == ErrorKind::Cancelled => Self::Cancelled(error),
            (Outcome::Unknown, Some(call)) => Self::Unknown(UnknownOutcome { error, call }),
            (Outcome::Refused, _) => Self::Refused(error),
            (Outcome::Answered, _) => Self::Unusable(error),
            // Without a call there was nothing to send.
            (Outcome::NotSent | Outcome::Unknown, _) => Self::NotSent(error),
        }
    }

    /// The result, or the error that says what is known.
    pub fn into_result(self) -> Result<R::Result, Error> {
        match self {
            Self::Answered(result) => Ok(result),
            Self::Unknown(unknown) => Err(unknown.error),
            Self::Unusable(error) | Self::Refused(error) | Self::NotSent(error) | Self::Cancelled(error) => Err(error),
        }
    }
}

impl<R: Request> UnknownOutcome<R> {
    /// Why it is not known.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The same call, to be made again because the caller says so: the server may do it a second time.
    pub fn call_again(self) -> Call<R> {
        self.call
    }
}

impl<R: Request> std::fmt::Debug for UnknownOutcome<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UnknownOutcome")
            .field("method", &R::METHOD)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
