//! Who gets or refreshes tokens: one at a time. Those who wait for their turn take what came of the one before, good or bad, so that
//! nothing is done twice because many need it.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::Authorizer;
use crate::client::Error;

/// The right to get tokens. Dropping it gives it to the next.
pub(super) struct Turn {
    _guard: OwnedMutexGuard<()>,
    /// How many had ended when this caller began to wait.
    before: u64,
}

impl Authorizer {
    /// Waits until nobody else gets tokens.
    pub(super) async fn turn(&self) -> Turn {
        let before = self.held().ended;
        Turn { _guard: Arc::clone(&self.0.turn).lock_owned().await, before }
    }

    /// Whether somebody else ended a turn while this caller waited for its own.
    pub(super) fn others_ended(&self, turn: &Turn) -> bool {
        self.held().ended != turn.before
    }

    /// Whether somebody tried in vain while this caller waited for its turn.
    pub(super) fn failed_meanwhile(&self, turn: &Turn) -> Result<(), Error> {
        let held = self.held();
        held.failure.clone().filter(|_| held.ended != turn.before).map_or(Ok(()), Err)
    }

    /// Tells those who wait for this turn what came of it.
    pub(super) fn ended(&self, failure: Option<&Error>, turn: Turn) {
        if let Some(error) = failure {
            tracing::debug!(%error, "there is no token");
        }
        let mut held = self.held();
        held.ended = held.ended.wrapping_add(1);
        held.failure = failure.cloned();
        drop(held);
        drop(turn);
    }
}

/// A part of a turn on a task of its own, where it goes on though its caller is gone: a refresh token or a code that was sent is
/// used up, even if nobody waits for the answer any more.
pub(super) async fn apart<T: Send + 'static>(
    turn: Turn,
    part: impl Future<Output = T> + Send + 'static,
) -> Result<(Turn, T), Error> {
    let done = tokio::spawn(async move {
        let done = part.await;
        (turn, done)
    });
    done.await.map_err(|_| Error::Misuse("the runtime is shutting down"))
}
