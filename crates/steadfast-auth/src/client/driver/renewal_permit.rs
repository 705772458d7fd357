//! The permit to obtain or refresh tokens, which only one caller holds at a time. Callers that waited for the permit use the
//! tokens or the error of the previous holder, so that many concurrent requests cause only one token renewal.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::Authorizer;
use crate::client::Error;

/// The permit to renew the tokens of an authorizer, held by one caller at a time. Dropping a [`TokenRenewalPermit`]
/// releases the permit.
pub(super) struct TokenRenewalPermit {
    _guard: OwnedMutexGuard<()>,
    /// The number of token renewals that had finished when this caller began to wait for the permit.
    finished_before: u64,
}

impl Authorizer {
    /// Waits for the permit to renew the tokens of the authorizer.
    pub(super) async fn acquire_renewal_permit(&self) -> TokenRenewalPermit {
        let finished_before = self.state().finished_renewals;
        TokenRenewalPermit { _guard: Arc::clone(&self.0.renewal_lock).lock_owned().await, finished_before }
    }

    /// Whether another token renewal finished while this caller waited for the permit.
    pub(super) fn others_finished(&self, permit: &TokenRenewalPermit) -> bool {
        self.state().finished_renewals != permit.finished_before
    }

    /// Returns the error of the last token renewal, if that renewal finished while this caller waited for the permit.
    pub(super) fn check_concurrent_failure(&self, permit: &TokenRenewalPermit) -> Result<(), Error> {
        let state = self.state();
        state.last_failure.clone().filter(|_| state.finished_renewals != permit.finished_before).map_or(Ok(()), Err)
    }

    /// Records the result of a token renewal for the callers that wait for the permit, and releases the permit.
    pub(super) fn finish(&self, failure: Option<&Error>, permit: TokenRenewalPermit) {
        if let Some(error) = failure {
            tracing::debug!(%error, "failed to obtain an access token");
        }
        let mut state = self.state();
        state.finished_renewals = state.finished_renewals.wrapping_add(1);
        state.last_failure = failure.cloned();
        drop(state);
        drop(permit);
    }
}

/// Runs a part of a token renewal on its own tokio task, so that it completes even if the caller is dropped: a refresh token or
/// an authorization code that was sent is used up, so the tokens in the response must be stored.
pub(super) async fn run_detached<T: Send + 'static>(
    permit: TokenRenewalPermit,
    part: impl Future<Output = T> + Send + 'static,
) -> Result<(TokenRenewalPermit, T), Error> {
    let done = tokio::spawn(async move {
        let done = part.await;
        (permit, done)
    });
    done.await.map_err(|_| Error::Misuse("the login or token renewal was aborted: the tokio runtime is shutting down"))
}
