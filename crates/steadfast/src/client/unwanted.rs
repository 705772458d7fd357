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

use super::Client;
use super::followed::Cancelling;
use super::tasks::{Tasks, are_fetched};
use crate::runtime::waiting::before;
use crate::runtime::{CallOptions, Mailbox, PendingCall, Runtime};

/// How long the server may take to hear of it.
const CANCELLING: Duration = Duration::from_secs(10);

/// How long it may take if its client waits for that.
const LEAVING: Duration = Duration::from_secs(2);

/// Has a task cancelled, over whichever connection there is.
pub(super) fn cancel(client: &Client, task_id: &str, cancelling: Cancelling) {
    if !takes_cancellations(&client.inner.line.link().peer) {
        return;
    }
    let call = client.call::<request::CancelTask>(TaskParams::new(task_id));
    let cancel = call.timeout(CANCELLING).total_timeout(CANCELLING).start();
    client.inner.runtime().spawn(Box::pin(async move {
        // Nobody is left to be told how it went.
        drop(cancel.await);
        drop(cancelling);
    }));
}

/// Has the task cancelled that a call which was given up turns out to have begun, if it has. Called on the driver's thread.
pub(super) fn cancel_late(
    result: &str,
    peer: &Peer,
    decoration: &Decoration,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
) {
    let tasks = if are_fetched(peer) { Tasks::Experiment } else { Tasks::Extension };
    let task = tasks.begun_by(result);
    if let Some(cancel) = task.and_then(|task| cancel_over(mailbox, peer, decoration, &task.task_id)) {
        runtime.spawn(Box::pin(async move { drop(cancel.await) }));
    }
}

/// Has all tasks cancelled that are followed, as their client is about to leave. Returns when the server has heard of these, and
/// of those before them, or has had the time to.
pub(super) async fn cancel_all(client: &Client) {
    if mutant!(LeaveTasks) {
        return;
    }
    let line = &client.inner.line;
    let (link, runtime) = (line.link(), client.inner.runtime());
    let cancel = |task_id: &String| cancel_over(&link.mailbox, &link.peer, &line.opener.decoration, task_id);
    let cancels: Vec<PendingCall> = line.followed.take_all().iter().filter_map(cancel).collect();
    let heard = async {
        for cancel in cancels {
            drop(cancel.await);
        }
        line.followed.wait_until_cancelled().await;
    };
    // If it is not heard, the server is not to be helped.
    let _ = before(&**runtime, Some(runtime.now() + LEAVING), heard).await;
}

/// Cancels a task over this connection, if the server lets it.
fn cancel_over(mailbox: &Arc<Mailbox>, peer: &Peer, decoration: &Decoration, task_id: &str) -> Option<PendingCall> {
    let params = takes_cancellations(peer).then(|| TaskParams::new(task_id))?;
    let text = era::params_text(peer.revision, &params, decoration).ok()?;
    let options = CallOptions { timeout: Some(CANCELLING), ..CallOptions::default() };
    Some(PendingCall::new(mailbox, Method::CancelTask, Some(text), options))
}

/// In 2025-11-25 a server says so if it does.
fn takes_cancellations(peer: &Peer) -> bool {
    !are_fetched(peer) || peer.server_capabilities.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some())
}
