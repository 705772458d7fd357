//! One request of a call, on its way.
//!
//! Whoever drops a call may do so when its answer has come and nobody has looked at it. If that answer is a task, the server
//! works on it, and no cancellation of the request ends that any more: the task is cancelled. If the answer comes later, the
//! driver sees to that.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use steadfast_model::request::Request;

use super::ending::text_of;
use super::followed::Place;
use super::tasks::Tasks;
use super::{Client, unwanted};
use crate::runtime::{CallEnding, OnProgress, PendingCall};

/// See the [module](self). Awaited for how it ends.
pub(super) struct Asking<R: Request> {
    client: Client,
    request: PendingCall,
    /// What it may become, and its place among what has.
    tasks: Option<(Tasks, Place)>,
    of: PhantomData<fn() -> R>,
}

impl<R: Request> Asking<R> {
    /// `tasks`: what it may become.
    pub(super) fn new(client: Client, request: PendingCall, tasks: Option<Tasks>) -> Self {
        let followed = &client.inner.line.opener.followed;
        let tasks = tasks.map(|tasks| (tasks, followed.enter_asking(Arc::clone(request.slot()), tasks)));
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
        let left = self.tasks.as_ref().and_then(|(tasks, place)| Some((tasks, place.leave()?)));
        if let Some(ending) = self.request.abandon()
            && let Some((tasks, cancelling)) = left
            && let Ok(text) = text_of(ending, R::METHOD.name())
            && let Some(task) = tasks.begun_by(&text)
        {
            unwanted::cancel(&self.client, &task.task_id, cancelling);
        }
    }
}
