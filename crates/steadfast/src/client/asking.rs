//! One request of a call, on its way.
//!
//! Whoever drops a call may do so when its answer has come and nobody has looked at it. If that answer is a task, the server
//! works on it, and no cancellation of the request ends that any more: the task is cancelled.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast_model::AnyResult;
use steadfast_model::request::Request;

use super::ending::answer_of;
use super::{Client, tasks};
use crate::runtime::{CallEnding, OnProgress, PendingCall};

/// See the [module](self). Awaited for how it ends.
pub(super) struct Asking<R: Request> {
    client: Client,
    request: PendingCall,
    of: PhantomData<fn() -> R>,
}

impl<R: Request> Asking<R> {
    pub(super) fn new(client: Client, request: PendingCall) -> Self {
        Self { client, request, of: PhantomData }
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
        if let Some(ending) = self.request.take_unread()
            && tasks::are_taken(&self.client)
            && let Ok(AnyResult::Task(created)) = answer_of::<R>(ending)
        {
            tasks::cancel(&self.client, &created.task.task_id);
        }
    }
}
