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
use steadfast_proto::connection::CallEnd;

use crate::client::Client;
use crate::client::tasks::Tasks;
use crate::client::tasks::cancel;
use crate::client::tasks::registry::{PendingCancellation, TaskEntry};
use crate::runtime::connection::call_result::text_of;
use crate::runtime::{OnProgress, PendingCall};

/// See the [module](self). Awaited for how it ends; to be dropped when that was looked at.
pub(crate) struct InFlightRequest<R: Request> {
    client: Client,
    request: PendingCall,
    /// What it may become, and its place among what has.
    tasks: Option<(Tasks, TaskEntry)>,
    /// Set when the answer has left its place and may not have found another.
    reading: Option<PendingCancellation>,
    of: PhantomData<fn() -> R>,
}

impl<R: Request> InFlightRequest<R> {
    /// `tasks`: what it may become.
    pub(crate) fn new(client: Client, request: PendingCall, tasks: Option<Tasks>) -> Self {
        let followed = &client.inner.connection.opener.followed;
        let tasks = tasks.map(|tasks| (tasks, followed.enter_asking(Arc::clone(request.slot()), tasks)));
        Self { client, request, tasks, reading: None, of: PhantomData }
    }

    /// What is called with progress, for the next request.
    pub(crate) fn take_on_progress(&mut self) -> Option<OnProgress> {
        self.request.take_on_progress()
    }
}

impl<R: Request> Future for InFlightRequest<R> {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        std::task::ready!(self.request.poll_ended(cx));
        // Nobody finds the answer where it was from here on: whoever closes the client waits until this is dropped.
        self.reading = self.tasks.as_ref().and_then(|(_, entry)| entry.leave());
        self.request.take_end()
    }
}

/// A task must not go on for nobody.
impl<R: Request> Drop for InFlightRequest<R> {
    fn drop(&mut self) {
        if self.request.has_ended() {
            return;
        }
        let left = self.tasks.as_ref().and_then(|(tasks, entry)| Some((tasks, entry.leave()?)));
        if let Some(ending) = self.request.abandon()
            && let Some((tasks, cancelling)) = left
            && let Ok(text) = text_of(ending, R::METHOD.name())
            && let Some(task) = tasks.begun_by(&text)
        {
            cancel::cancel(&self.client, &task.task_id, cancelling);
        }
    }
}
