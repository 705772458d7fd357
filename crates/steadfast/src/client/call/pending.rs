//! A started call, as a future. The states of a call and their transitions are drawn in the docs of [`call`](super).

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use steadfast_model::request::Request;
use steadfast_proto::connection::CallEnd;

use super::canceller::Canceller;
use super::flow::{CallControlFlow, CallFlow, CallStep, CallStepResult};
use super::outcome::CallOutcome;
use crate::client::Client;
use crate::client::tasks::TaskProtocol;
use crate::client::tasks::cancel;
use crate::client::tasks::registry::{FollowedTaskRegistration, TaskCancellationCountGuard};
use crate::error::Error;
use crate::runtime::connection::call_result::text_of;
use crate::runtime::{OnProgress, PendingCall};

/// A started call that waits for its result. Everything that the call does after its first request is done while this
/// future is polled.
#[must_use = "dropping this cancels the call"]
pub struct CallResultFuture<R: Request> {
    state: StartedCallState<R>,
    canceller: Canceller,
}

enum StartedCallState<R: Request> {
    /// No request could be sent for the call. A call whose parameters were wrong has no [`CallFlow`], because it
    /// cannot be repeated.
    Failed(Error, Option<Box<CallFlow<R>>>),
    /// The response to the call was found in the cache.
    Cached(Arc<str>, Box<CallFlow<R>>),
    /// A request was sent and waits for its response: for most calls the only state before the end.
    InFlight(SentCallRequest<R>, Box<CallFlow<R>>),
    /// No request is in flight: the call reconnects, answers input requests or polls an MCP task before it goes on.
    Continuing(CallStepFuture<R>),
    Ended,
}

/// A step of a call between two of its requests. The step of a call is boxed, since few calls need one and it would
/// enlarge all other calls.
type CallStepFuture<R> = Pin<Box<dyn Future<Output = (Result<CallStepResult<R>, Error>, Box<CallFlow<R>>)> + Send>>;

/// How a call ended, and the flow that is needed to repeat the call; `None` if the call cannot be repeated.
pub(crate) type ClientCallResultAndFlow<R> = (Result<<R as Request>::Result, Error>, Option<Box<CallFlow<R>>>);

impl<R: Request> CallResultFuture<R> {
    /// Takes the response to the call from the cache, or sends the first request of the call.
    pub(crate) fn start(mut flow: Box<CallFlow<R>>) -> Self {
        let canceller = flow.canceller();
        if let Some(response) = flow.cached_response() {
            return Self { state: StartedCallState::Cached(response, flow), canceller };
        }
        let state = match flow.send_request() {
            Ok(request) => StartedCallState::InFlight(request, flow),
            Err(error) => StartedCallState::Failed(error, Some(flow)),
        };
        Self { state, canceller }
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self { state: StartedCallState::Failed(error, None), canceller: Canceller::new() }
    }

    /// A handle that cancels this call from another task.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the end of the call, as a [`CallOutcome`]: an enum that has to be matched.
    pub async fn outcome(mut self) -> CallOutcome<R> {
        outcome_of(std::future::poll_fn(|cx| self.poll_end(cx)).await)
    }

    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<ClientCallResultAndFlow<R>> {
        loop {
            match &mut self.state {
                StartedCallState::Failed(..) => {
                    let StartedCallState::Failed(error, flow) = self.take_state() else { return Poll::Pending };
                    return Poll::Ready((Err(error), flow));
                }
                StartedCallState::Cached(..) => {
                    let StartedCallState::Cached(text, mut flow) = self.take_state() else { return Poll::Pending };
                    let decision = flow.handle_response(&text);
                    if let Some(ended) = self.apply(decision, flow) {
                        return Poll::Ready(ended);
                    }
                }
                StartedCallState::InFlight(request, _) => {
                    let end = std::task::ready!(Pin::new(request).poll(cx));
                    let StartedCallState::InFlight(mut request, mut flow) = self.take_state() else {
                        return Poll::Pending;
                    };
                    flow.restore_progress_callback(&mut request);
                    let decision = flow.handle_end(end);
                    // Not before: until the flow has registered the task in the response, the request counts for it.
                    drop(request);
                    if let Some(ended) = self.apply(decision, flow) {
                        return Poll::Ready(ended);
                    }
                }
                StartedCallState::Continuing(step) => {
                    let (result, flow) = std::task::ready!(step.as_mut().poll(cx));
                    match result {
                        Ok(CallStepResult::RequestSent(request)) => {
                            self.state = StartedCallState::InFlight(request, flow);
                        }
                        Ok(CallStepResult::TaskResult(result)) => {
                            self.state = StartedCallState::Ended;
                            return Poll::Ready((flow.decode_task_result(result), Some(flow)));
                        }
                        Err(error) => {
                            self.state = StartedCallState::Ended;
                            return Poll::Ready((Err(error), Some(flow)));
                        }
                    }
                }
                // Polled after its end, as no future should be: it stays pending, rather than panic.
                StartedCallState::Ended => return Poll::Pending,
            }
        }
    }

    /// Returns the end of the call, or `None` if the call is in the state `Continuing` now.
    fn apply(&mut self, decision: CallControlFlow<R>, flow: Box<CallFlow<R>>) -> Option<ClientCallResultAndFlow<R>> {
        match decision {
            CallControlFlow::End(result) => Some((result, Some(flow))),
            CallControlFlow::Continue(step) => {
                self.state = StartedCallState::Continuing(run(flow, step));
                None
            }
        }
    }

    /// Takes the state of the call, and leaves `Ended` in its place.
    fn take_state(&mut self) -> StartedCallState<R> {
        std::mem::replace(&mut self.state, StartedCallState::Ended)
    }
}

fn run<R: Request>(mut flow: Box<CallFlow<R>>, step: CallStep) -> CallStepFuture<R> {
    Box::pin(async move {
        let result = flow.run_step(step).await;
        (result, flow)
    })
}

/// Converts the end of a call into the [`CallOutcome`] for its caller: whether the server may have acted on it, with the call to
/// send again if that is unknown.
pub(crate) fn outcome_of<R: Request>((result, flow): ClientCallResultAndFlow<R>) -> CallOutcome<R> {
    CallOutcome::new(result, flow.map(|flow| flow.into_call()))
}

// No field is structurally pinned.
impl<R: Request> Unpin for CallResultFuture<R> {}

impl<R: Request> Future for CallResultFuture<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_end(cx).map(|(result, _)| result)
    }
}

impl<R: Request> std::fmt::Debug for CallResultFuture<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CallResultFuture").field("method", &R::METHOD).finish_non_exhaustive()
    }
}

/// One request of a call, as a future that completes when the request has ended. Keep the future until the end of the
/// request was handled.
///
/// A caller may drop a call after its response has arrived and before the response was read. If the response is an MCP
/// task, the server works on that task, and cancelling the request would not stop the work: the client cancels the task
/// instead. If the response arrives after the caller has dropped the call, the driver passes it to
/// [`cancel_late`](cancel::cancel_late).
pub(crate) struct SentCallRequest<R: Request> {
    client: Client,
    request: PendingCall,
    /// The kind of MCP task that the request may become, and the entry of the request in the task registry.
    task: Option<(TaskProtocol, FollowedTaskRegistration)>,
    /// A guard that is held from when the response was taken until this request is dropped. While the guard is held,
    /// an MCP task in the response is not in the client's task registry, and the close of the client waits for the
    /// guard.
    unread_task: Option<TaskCancellationCountGuard>,
    request_type: PhantomData<fn() -> R>,
}

impl<R: Request> SentCallRequest<R> {
    /// `kind`: the kind of MCP task that the request may become.
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

impl<R: Request> Future for SentCallRequest<R> {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        std::task::ready!(self.request.poll_ended(cx));
        self.unread_task = self.task.as_ref().and_then(|(_, entry)| entry.remove());
        self.request.take_end()
    }
}

/// Cancels the MCP task that an unread response has created.
impl<R: Request> Drop for SentCallRequest<R> {
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
