//! Which lost or refused calls a client sends again.
//!
//! A client sends a lost call again if the call was not sent, or may run twice without harm (law L10). Since
//! 2026-07-28, a client also sends a tool call again that the server refused because it misses an HTTP header: the
//! server has changed the tool since the client listed it. After such a refusal the client lists the tools and sends
//! the call again: once, and only before the server has asked for input.

use steadfast_model::{Method, code};
use steadfast_proto::mutant;

use crate::client::Client;
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, CallLossScope};

/// The retries of one call of a client, and what decides whether the call may be sent again.
pub(crate) struct CallRetries {
    max_retries: u32,
    retries_left: u32,
    /// Whether the server may execute the call twice without harm.
    idempotent: bool,
    /// The server may have received the call in an earlier attempt.
    maybe_sent: bool,
    /// An attempt has failed because the server had forgotten the MCP session.
    session_lost: bool,
}

impl CallRetries {
    pub(crate) fn new(max_retries: u32, idempotent: bool) -> Self {
        Self { max_retries, retries_left: max_retries, idempotent, maybe_sent: false, session_lost: false }
    }

    /// Whether the client sends a call again that was lost in this way. If the client sends the call again, one of the
    /// call's retries is used up.
    pub(crate) fn allow_retry(&mut self, loss: CallLoss) -> bool {
        self.maybe_sent |= loss.sent;
        let second_session = loss.kind == CallLossScope::Session && std::mem::replace(&mut self.session_lost, true);
        let allowed =
            self.retries_left > 0 && (self.idempotent || !loss.sent || mutant!(RepeatHarmful)) && !second_session;
        if allowed {
            self.retries_left -= 1;
        }
        allowed
    }

    /// Whether the retry that was allowed last is the first retry of the call, and more retries are left.
    pub(crate) fn is_first_retry(&self) -> bool {
        self.retries_left > 0 && self.retries_left + 1 == self.max_retries
    }

    /// The outcome if the call ended now, between two attempts: unknown if the server may have received an attempt, else not sent.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.maybe_sent { Outcome::Unknown } else { Outcome::NotSent }
    }
}

/// Whether a call has listed the tools because of a header mismatch.
#[derive(Default)]
pub(crate) struct HeaderMismatchRetry {
    done: bool,
}

impl HeaderMismatchRetry {
    /// Whether to list the tools and send the call again, because its HTTP headers did not match. A call is sent
    /// again at most once for a mismatch of its HTTP headers.
    pub(crate) fn should_retry(&mut self, client: &Client, method: Method, error: &Error) -> bool {
        let mismatch = error.refusal().is_some_and(|refusal| refusal.code == code::HEADER_MISMATCH);
        let retry = mismatch && !self.done && client.inner.over_http && method == Method::CallTool;
        self.done |= retry;
        retry
    }
}

/// Lists the tools of the server, which updates the client's tool cache.
pub(crate) async fn list_tools(client: Client) {
    // If the list cannot be had, the second attempt of the call ends with the same refusal as the first.
    drop(client.tools().fresh().all().await);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION_LOST: CallLoss = CallLoss { sent: false, kind: CallLossScope::Connection };

    #[test]
    fn the_last_retry_is_not_the_first_one() {
        let mut attempts = CallRetries::new(3, false);
        let firsts = [(); 3].map(|()| attempts.allow_retry(CONNECTION_LOST) && attempts.is_first_retry());
        assert_eq!(firsts, [true, false, false]);
        let mut one = CallRetries::new(1, false);
        assert!(one.allow_retry(CONNECTION_LOST) && !one.is_first_retry(), "it is worth a probe");
    }

    #[test]
    fn a_call_that_was_not_sent_is_retried_until_no_retries_are_left() {
        let mut attempts = CallRetries::new(2, false);
        assert!(attempts.allow_retry(CONNECTION_LOST) && attempts.allow_retry(CONNECTION_LOST));
        assert!(!attempts.allow_retry(CONNECTION_LOST));
        assert_eq!(attempts.outcome(), Outcome::NotSent);
    }

    #[test]
    fn a_call_that_was_sent_is_retried_only_if_it_is_idempotent() {
        let sent = CallLoss { sent: true, ..CONNECTION_LOST };
        let (mut idempotent, mut other) = (CallRetries::new(2, true), CallRetries::new(2, false));
        assert!(idempotent.allow_retry(sent) && !other.allow_retry(sent));
        assert_eq!((idempotent.outcome(), other.outcome()), (Outcome::Unknown, Outcome::Unknown));
    }

    #[test]
    fn a_lost_session_is_replaced_once() {
        let lost = CallLoss { sent: false, kind: CallLossScope::Session };
        let mut attempts = CallRetries::new(5, false);
        assert!(attempts.allow_retry(lost) && !attempts.allow_retry(lost));
    }
}
