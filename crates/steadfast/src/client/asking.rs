//! One request of a call, on its way.
//!
//! Whoever drops a call may do so when its answer has come and nobody has looked at it. If that answer is a task, the server
//! works on it, and no cancellation of the request ends that any more: the task is cancelled. If the answer comes later, the
//! driver sees to that.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_model::request::Request;

use super::ending::text_of;
use super::tasks::Tasks;
use super::{Client, unwanted};
use crate::runtime::{CallEnding, OnProgress, PendingCall};

/// See the [module](self). Awaited for how it ends.
pub(super) struct Asking<R: Request> {
    client: Client,
    request: PendingCall,
    tasks: Option<Tasks>,
    of: PhantomData<fn() -> R>,
}

impl<R: Request> Asking<R> {
    /// `tasks`: what it may become.
    pub(super) fn new(client: Client, request: PendingCall, tasks: Option<Tasks>) -> Self {
        Self { client, request, tasks, of: PhantomData }
    }

    /// What is called with progress, for the next request.
    pub(super) fn take_on_progress(&mut self) -> Option<OnProgress> {
        self.request.take_on_progress()
    }
}

impl<R: Request> Future for Asking<R> {
    type Output = CallEnding;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnding> {
        Pin::new(&mut self.request).poll(cx)
    }
}

/// A task must not go on for nobody.
impl<R: Request> Drop for Asking<R> {
    fn drop(&mut self) {
        let Some(tasks) = self.tasks.filter(|_| !self.request.has_ended()) else { return };
        // Before it is known whether there is one: whoever closes the client waits for this.
        let cancelling = self.client.inner.line.followed.begin_cancelling();
        if let Some(ending) = self.request.abandon()
            && let Ok(text) = text_of(ending, R::METHOD.name())
            && let Some(task) = tasks.begun_by(&text)
        {
            unwanted::cancel(&self.client, &task.task_id, cancelling);
        }
    }
}
