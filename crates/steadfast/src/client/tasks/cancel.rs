//! Tasks that nobody waits for any more: their servers are told, or they would go on for nobody.
//!
//! A task is unwanted when whoever follows it goes away, when the call that it belongs to was given up before it was heard of,
//! and when its client is closed.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::era::{self, Decoration};
use steadfast_model::{Method, TaskParams, request};
use steadfast_proto::connection::Peer;
use steadfast_proto::mutant;

use super::registry::{PendingCancellation, TaskRegistry};
use super::{Tasks, are_fetched};
use crate::client::Client;
use crate::client::connection::reconnecting::LastConnection;
use crate::runtime::timeout::timeout_at;
use crate::runtime::{CallOptions, Mailbox, PendingCall, Runtime};

/// How long the server may take to hear of it.
const CANCELLING: Duration = Duration::from_secs(10);

/// How long it may take if its client waits for that.
const LEAVING: Duration = Duration::from_secs(2);

/// Has a task cancelled, over whichever connection there is.
pub(crate) fn cancel(client: &Client, task_id: &str, cancelling: PendingCancellation) {
    if !takes_cancellations(&client.inner.connection.live().peer) {
        return;
    }
    let call = client.call::<request::CancelTask>(TaskParams::new(task_id));
    let call = call.timeout(CANCELLING).total_timeout(CANCELLING);
    in_turn(client.inner.runtime(), cancelling, || call.start());
}

/// Has the task cancelled that a call which was given up turns out to have begun, if it has. Called on the driver's thread, which
/// does not wait until the result is read.
pub(crate) fn cancel_late(
    result: String,
    peer: &Arc<Peer>,
    decoration: &Decoration,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
    followed: &Arc<TaskRegistry>,
) {
    if !takes_cancellations(peer) {
        return;
    }
    let connector =
        TaskCanceller { mailbox: Arc::clone(mailbox), peer: Arc::clone(peer), decoration: decoration.clone() };
    let (cancelling, workers) = (followed.begin_cancelling(), Arc::clone(runtime));
    runtime.spawn(Box::pin(async move {
        let tasks = if are_fetched(&connector.peer) { Tasks::Experiment } else { Tasks::Extension };
        if let Some(task) = tasks.begun_by(&result) {
            in_turn(&workers, cancelling, move || connector.cancel(&task.task_id));
        }
    }));
}

/// Has all tasks cancelled that there are, as their client is about to leave. Its last link is let go when the server has heard
/// of these, and of those before them, or has had the time to, whether anybody waits for that or not.
pub(crate) fn cancel_all(client: &Client, last: LastConnection) {
    let connection = Arc::clone(&client.inner.connection);
    let runtime = Arc::clone(client.inner.runtime());
    let followed = Arc::clone(&connection.opener.followed);
    if mutant!(LeaveTasks) {
        return;
    }
    let live = connection.live();
    for (task_id, cancelling) in followed.take_all() {
        let (mailbox, peer) = (Arc::clone(&live.mailbox), Arc::clone(&live.peer));
        let connector = TaskCanceller { mailbox, peer, decoration: connection.opener.decoration.clone() };
        if takes_cancellations(&connector.peer) {
            in_turn(&runtime, cancelling, move || connector.cancel(&task_id));
        }
    }
    if !followed.is_cancelling() {
        return;
    }
    let until = runtime.now() + LEAVING;
    let clock = Arc::clone(&runtime);
    runtime.spawn_io(Box::pin(async move {
        // If it is not heard, the server is not to be helped.
        let _ = timeout_at(&*clock, Some(until), followed.wait_until_cancelled()).await;
        drop(last);
    }));
}

/// One connection, as the way to cancel tasks.
struct TaskCanceller {
    mailbox: Arc<Mailbox>,
    peer: Arc<Peer>,
    decoration: Decoration,
}

impl TaskCanceller {
    /// Begins to cancel a task. Nothing is left to be done if the name of it cannot be written.
    fn cancel(&self, task_id: &str) -> impl Future<Output = ()> + Send + use<> {
        let text = era::params_text(self.peer.revision, &TaskParams::new(task_id), &self.decoration);
        let options = CallOptions { timeout: Some(CANCELLING), ..CallOptions::default() };
        let cancel = text.map(|text| PendingCall::new(&self.mailbox, Method::CancelTask, Some(text), options));
        async move {
            if let Ok(cancel) = cancel {
                drop(cancel.await);
            }
        }
    }
}

/// Begins a cancellation when it is its turn: at once, unless very many are on their way. There is room for so many calls that
/// take something back, and one more would be refused.
fn in_turn<F: Future<Output: Send> + Send + 'static>(
    runtime: &Arc<dyn Runtime>,
    cancelling: PendingCancellation,
    begin: impl FnOnce() -> F + Send + 'static,
) {
    let begun = match cancelling.turn() {
        Some(turn) => Ok((turn, begin())),
        None => Err(begin),
    };
    let (clock, until) = (Arc::clone(runtime), runtime.now() + CANCELLING);
    runtime.spawn(Box::pin(async move {
        let heard = async {
            let (turn, cancel) = match begun {
                Ok((turn, cancel)) => (Some(turn), cancel),
                Err(begin) => (cancelling.wait_for_turn().await, begin()),
            };
            // Nobody is left to be told how it went.
            drop(cancel.await);
            drop(turn);
        };
        let _ = timeout_at(&*clock, Some(until), heard).await;
        drop(cancelling);
    }));
}

/// In 2025-11-25 a server says so if it does.
pub(crate) fn takes_cancellations(peer: &Peer) -> bool {
    !are_fetched(peer) || peer.server_capabilities.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some())
}
