//! The permit to obtain or refresh tokens, held by one caller at a time. Callers that waited for it use the result of the one
//! before, success or failure, so that many concurrent requests cause one renewal.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::Authorizer;
use crate::client::Error;

/// The permit to obtain tokens. Dropping it releases it.
pub(super) struct TokenRenewalPermit {
    _guard: OwnedMutexGuard<()>,
    /// How many renewals had finished when this caller began to wait.
    finished_before: u64,
}

impl Authorizer {
    /// Waits for the permit.
    pub(super) async fn acquire_renewal_permit(&self) -> TokenRenewalPermit {
        let finished_before = self.state().finished_renewals;
        TokenRenewalPermit { _guard: Arc::clone(&self.0.renewal_lock).lock_owned().await, finished_before }
    }

    /// Whether another renewal finished while this caller waited for its permit.
    pub(super) fn others_finished(&self, permit: &TokenRenewalPermit) -> bool {
        self.state().finished_renewals != permit.finished_before
    }

    /// The failure of the last renewal, if it finished while this caller waited for its permit.
    pub(super) fn check_concurrent_failure(&self, permit: &TokenRenewalPermit) -> Result<(), Error> {
        let state = self.state();
        state.last_failure.clone().filter(|_| state.finished_renewals != permit.finished_before).map_or(Ok(()), Err)
    }

    /// Records the result for the callers that wait for the permit, and releases it.
    pub(super) fn finish(&self, failure: Option<&Error>, permit: TokenRenewalPermit) {
        if let Some(error) = failure {
            tracing::debug!(%error, "failed to obtain a token");
        }
        let mut state = self.state();
        state.finished_renewals = state.finished_renewals.wrapping_add(1);
        state.last_failure = failure.cloned();
        drop(state);
        drop(permit);
    }
}

/// Runs a part of a renewal on a task of its own, so that it completes even if its caller is dropped: a refresh token or a code
/// that was sent is used up, so its response must be stored.
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
