//! One request of a call, in flight.
//!
//! A caller may drop a call after its response has arrived and before it was read. If the response is a task, the
//! server works on that task, and cancelling the request would not stop it: the task is cancelled instead. If the
//! response arrives after the drop, the driver passes it to [`cancel_late`](cancel::cancel_late).

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use steadfast_model::request::Request;
use steadfast_proto::connection::CallEnd;

use crate::client::Client;
use crate::client::tasks::TaskProtocol;
use crate::client::tasks::cancel;
use crate::client::tasks::registry::{TaskCancellationGuard, TaskRegistration};
use crate::runtime::connection::call_result::text_of;
use crate::runtime::{OnProgress, PendingCall};

/// See the [module](self). A future of how the request ends; keep it until that end was handled.
pub(crate) struct InFlightRequest<R: Request> {
    client: Client,
    request: PendingCall,
    /// The kind of task that the request may become, and its entry in the registry.
    task: Option<(TaskProtocol, TaskRegistration)>,
    /// Held from when the response was taken until this is dropped. In between, a task in the response is in no
    /// registry, and a client that is being closed waits for this.
    unread_task: Option<TaskCancellationGuard>,
    request_type: PhantomData<fn() -> R>,
}

impl<R: Request> InFlightRequest<R> {
    /// `kind`: the kind of task that the request may become.
    pub(crate) fn new(client: Client, request: PendingCall, kind: Option<TaskProtocol>) -> Self {
        let registry = &client.inner.connection.opener.task_registry;
        let task = kind.map(|kind| (kind, registry.register_call(Arc::clone(request.slot()), kind)));
        Self { client, request, task, unread_task: None, request_type: PhantomData }
    }

    /// Takes the progress callback, for the next request of the call.
    pub(crate) fn take_on_progress(&mut self) -> Option<OnProgress> {
        self.request.take_on_progress()
    }
}

impl<R: Request> Future for InFlightRequest<R> {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        std::task::ready!(self.request.poll_ended(cx));
        self.unread_task = self.task.as_ref().and_then(|(_, entry)| entry.remove());
        self.request.take_end()
    }
}

/// Cancels the task that an unread response started.
impl<R: Request> Drop for InFlightRequest<R> {
    fn drop(&mut self) {
        if self.request.has_ended() {
            return;
        }
        let removed = self.task.as_ref().and_then(|(kind, entry)| Some((kind, entry.remove()?)));
        if let Some(end) = self.request.abandon()
            && let Some((kind, cancellation)) = removed
            && let Ok(text) = text_of(end, R::METHOD.name())
            && let Some(task) = kind.created_task(&text)
        {
            cancel::cancel(&self.client, &task.task_id, cancellation);
        }
    }
}
