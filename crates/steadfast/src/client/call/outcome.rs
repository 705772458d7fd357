//! The outcome of a call, as an enum that the caller has to match.

use steadfast_model::request::Request;

use super::Call;
use crate::error::{Error, ErrorKind, Outcome};

/// How a call ended, and whether the server may have acted on it (law L10). A call outcome has to be matched: there is
/// no `?` that would hide whether the server may have acted on the call.
///
/// ```
/// use serde_json::json;
/// use steadfast::client::CallOutcome;
/// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
/// match client.call_tool("pay", json!({ "amount": 5 })).outcome().await {
///     CallOutcome::Completed(receipt) => println!("{receipt:?}"),
///     CallOutcome::Refused(error) | CallOutcome::Unusable(error) => return Err(error),
///     CallOutcome::NotSent(error) => println!("nothing was paid: {error}"),
///     CallOutcome::Cancelled(error) => println!("cancelled; {:?}", error.outcome()),
///     // Only the caller knows whether it may be sent again.
///     CallOutcome::Unknown(unknown) => println!("paid or not: {}", unknown.error()),
/// }
/// # Ok(()) }
/// ```
#[must_use = "this says whether the server may have acted on the call"]
pub enum CallOutcome<R: Request> {
    /// The server processed the call, and this is its result.
    Completed(R::Result),
    /// The server processed the call, but its result cannot be decoded or does not match the output schema of the tool.
    Unusable(Error),
    /// The server responded with an error: see [`Outcome::Refused`].
    Refused(Error),
    /// The call was not sent, so the server did not act on it.
    NotSent(Error),
    /// The call was cancelled. [`Error::outcome`] says whether the server may have acted on the cancelled call.
    Cancelled(Error),
    /// The call was sent, and whether the server acted on it is not known. The outcome is also unknown if the server
    /// asked for input and got no answer: the server may have acted on the call before it asked.
    Unknown(UnknownOutcome<R>),
}

/// A call that was sent, and whose outcome is not known.
#[must_use = "the server may or may not have acted on the call"]
pub struct UnknownOutcome<R: Request> {
    error: Error,
    call: Call<R>,
}

impl<R: Request> CallOutcome<R> {
    pub(crate) fn new(result: Result<R::Result, Error>, call: Option<Call<R>>) -> Self {
        let error = match result {
            Ok(result) => return Self::Completed(result),
            Err(error) => error,
        };
        match (error.outcome(), call) {
            _ if error.kind() == ErrorKind::Cancelled => Self::Cancelled(error),
            (Outcome::Unknown, Some(call)) => Self::Unknown(UnknownOutcome { error, call }),
            (Outcome::Refused, _) => Self::Refused(error),
            (Outcome::Answered, _) => Self::Unusable(error),
            // Without a call, no request was sent.
            (Outcome::NotSent | Outcome::Unknown, _) => Self::NotSent(error),
        }
    }

    /// Returns the result of the call, or its error, whose [`outcome`](Error::outcome) says whether the server may have
    /// acted on the call.
    pub fn into_result(self) -> Result<R::Result, Error> {
        match self {
            Self::Completed(result) => Ok(result),
            Self::Unknown(unknown) => Err(unknown.error),
            Self::Unusable(error) | Self::Refused(error) | Self::NotSent(error) | Self::Cancelled(error) => Err(error),
        }
    }
}

impl<R: Request> UnknownOutcome<R> {
    /// The error that says why the outcome of the call is not known.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the same call, to be started again. The server may act on the repeated call a second time.
    pub fn call_again(self) -> Call<R> {
        self.call
    }
}

impl<R: Request<Result: std::fmt::Debug>> std::fmt::Debug for CallOutcome<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Completed(result) => formatter.debug_tuple("Completed").field(result).finish(),
            Self::Unusable(error) => formatter.debug_tuple("Unusable").field(error).finish(),
            Self::Refused(error) => formatter.debug_tuple("Refused").field(error).finish(),
            Self::NotSent(error) => formatter.debug_tuple("NotSent").field(error).finish(),
            Self::Cancelled(error) => formatter.debug_tuple("Cancelled").field(error).finish(),
            Self::Unknown(unknown) => formatter.debug_tuple("Unknown").field(unknown).finish(),
        }
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
