//! Cancels MCP tasks whose results the client no longer awaits: without a `tasks/cancel`, the server would go on
//! working.
//!
//! A client cancels an MCP task when the caller drops the call that became the task, when a call was cancelled before
//! the response that created its task was read, and when the client is closed.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{TaskParams, request};
use steadfast_proto::connection::PeerInfo;
use steadfast_proto::mutant;

use super::registry::{FollowedTaskRegistry, TaskCancellationCountGuard};
use super::{TaskProtocol, has_result_request};
use crate::client::Client;
use crate::client::connection::reconnecting::ConnectionShutdownGuard;
use crate::client::dispatch::ClientOutboundRequestSender;
use crate::runtime::timeout::timeout_at;
use crate::runtime::{OutboundCallOptions, Runtime};

/// How long the client tries to cancel one MCP task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the close of a client waits until its MCP tasks are cancelled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Cancels an MCP task, over the current connection of the client.
pub(crate) fn cancel(client: &Client, task_id: &str, cancellation: TaskCancellationCountGuard) {
    if !supports_task_cancel(&client.inner.connection.live().peer) {
        return;
    }
    let call = client.call::<request::CancelTask>(TaskParams::new(task_id));
    let call = call.timeout(CANCEL_TIMEOUT).total_timeout(CANCEL_TIMEOUT);
    send_when_permitted(client.inner.runtime(), cancellation, || call.start());
}

/// Cancels the MCP task that the late response to a cancelled call has created, if it has created one. The late
/// response is decoded in a spawned task, because this function is called on the driver's thread.
pub(crate) fn cancel_late(
    response: String,
    peer: &Arc<PeerInfo>,
    sender: ClientOutboundRequestSender,
    runtime: &Arc<dyn Runtime>,
    registry: &Arc<FollowedTaskRegistry>,
) {
    if !supports_task_cancel(peer) {
        return;
    }
    let kind = if has_result_request(peer) { TaskProtocol::Experimental } else { TaskProtocol::Extension };
    let (cancellation, workers) = (registry.begin_cancellation(), Arc::clone(runtime));
    runtime.spawn(Box::pin(async move {
        if let Some(task) = kind.created_task(&response) {
            send_when_permitted(&workers, cancellation, move || send_cancel(&sender, &task.task_id));
        }
    }));
}

/// Cancels all MCP tasks of a client that is being closed. The last connection of the client is shut down when the
/// server has responded to all cancellations of tasks, or the timeout is over, even if the future of `Client::close` is
/// dropped.
pub(crate) fn cancel_all(client: &Client, last_connection: ConnectionShutdownGuard) {
    let connection = Arc::clone(&client.inner.connection);
    let runtime = Arc::clone(client.inner.runtime());
    let registry = Arc::clone(&connection.opener.task_registry);
    if mutant!(KeepTasksAtClose) {
        return;
    }
    let live = connection.live();
    for (task_id, cancellation) in registry.claim_all() {
        if supports_task_cancel(&live.peer) {
            let sender = live.sender.clone();
            send_when_permitted(&runtime, cancellation, move || send_cancel(&sender, &task_id));
        }
    }
    if !registry.is_cancelling() {
        return;
    }
    let deadline = runtime.now() + CLOSE_TIMEOUT;
    let clock = Arc::clone(&runtime);
    runtime.spawn_io(Box::pin(async move {
        // After the timeout the server has to notice the close itself.
        let _ = timeout_at(&*clock, Some(deadline), registry.wait_until_cancelled()).await;
        drop(last_connection);
    }));
}

/// Sends `tasks/cancel`; the returned future waits for the response. Does nothing if the task id cannot be encoded.
fn send_cancel(sender: &ClientOutboundRequestSender, task_id: &str) -> impl Future<Output = ()> + Send + use<> {
    let options = OutboundCallOptions { timeout: Some(CANCEL_TIMEOUT), ..OutboundCallOptions::default() };
    let request = sender.send::<request::CancelTask>(&TaskParams::new(task_id), options);
    async move {
        if let Ok(request) = request {
            drop(request.await);
        }
    }
}

/// Sends a `tasks/cancel` request at once or, if the limit of concurrent calls is reached, when another cancellation
/// has finished. The connection refuses calls beyond its limit of concurrent calls, so a cancellation that is sent too
/// early would be lost.
fn send_when_permitted<F: Future<Output: Send> + Send + 'static>(
    runtime: &Arc<dyn Runtime>,
    cancellation: TaskCancellationCountGuard,
    send: impl FnOnce() -> F + Send + 'static,
) {
    let sent = match cancellation.try_permit() {
        Some(permit) => Ok((permit, send())),
        None => Err(send),
    };
    let (clock, deadline) = (Arc::clone(runtime), runtime.now() + CANCEL_TIMEOUT);
    runtime.spawn(Box::pin(async move {
        let responded = async {
            let (permit, response) = match sent {
                Ok((permit, response)) => (Some(permit), response),
                Err(send) => (cancellation.permit().await, send()),
            };
            // The response does not matter.
            drop(response.await);
            drop(permit);
        };
        let _ = timeout_at(&*clock, Some(deadline), responded).await;
        drop(cancellation);
    }));
}

/// Whether the server handles `tasks/cancel`, which is a capability of the server in 2025-11-25.
pub(crate) fn supports_task_cancel(peer: &PeerInfo) -> bool {
    !has_result_request(peer) || peer.server_capabilities.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some())
}
