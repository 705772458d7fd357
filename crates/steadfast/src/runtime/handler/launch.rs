//! Starts the handlers of requests: on the thread of an I/O loop, as tasks on the workers, or on a blocking thread.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use steadfast_proto::mutant;
use tokio::runtime::Handle;

use super::output_budget::OutputBudgetWaitReason;
use super::prepared::HandlerOutputEncoder;
use super::task::{HandlerStage, HandlerTask};
use crate::runtime::TokioRuntime;
use crate::runtime::threads::io_loop::QueuedHandler;

/// A handler that can be started.
pub(crate) enum HandlerJob<T> {
    /// An async handler: to be polled on the worker threads.
    Future(Pin<Box<dyn Future<Output = T> + Send>>),
    /// A blocking handler: to be called on a thread that it may block.
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

impl<T> HandlerJob<T> {
    /// Runs the handler in the caller's task, without a request, for tests of the handler.
    #[cfg(feature = "server")]
    pub(crate) async fn run(self) -> T {
        match self {
            Self::Future(future) => future.await,
            Self::Blocking(function) => function(),
        }
    }
}

/// Starts a handler that was not started yet, from the thread of its driver. A handler whose first poll is expected
/// to be quick is polled on the thread of the I/O loop; other handlers are polled on a worker, or on a blocking
/// thread if they are plain functions.
pub(super) fn launch<E: HandlerOutputEncoder>(task: HandlerTask<E>) {
    let runtime = Arc::clone(&task.execution.runtime);
    let tokio = runtime.as_tokio();
    let Some((tokio, io_loop)) = tokio.and_then(|tokio| Some((tokio, tokio.io_loop()?))) else {
        return launch_without_tokio(task);
    };
    match task.history.clone().filter(|history| history.is_quick() && !tokio.is_shut_down()) {
        Some(history) => io_loop.poll_soon(history, Box::new(task)),
        None if task.is_blocking() => task.start_elsewhere(),
        None => io_loop.hand_off(tokio.handle(), Box::pin(task)),
    }
}

/// Starts a handler on another runtime than tokio, as in a simulator, or without an I/O loop.
fn launch_without_tokio<E: HandlerOutputEncoder>(mut task: HandlerTask<E>) {
    let runtime = Arc::clone(&task.execution.runtime);
    if task.history.is_none() || task.is_blocking() || runtime.as_tokio().is_some() {
        return task.start_elsewhere();
    }
    if mutant!(PollHandlerInDriver) && Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return;
    }
    runtime.spawn_quick(Box::pin(task));
}

impl<E: HandlerOutputEncoder> HandlerTask<E> {
    /// Starts the handler on a worker or, if it is a plain function, on a thread that it may block.
    pub(super) fn start_elsewhere(self) {
        if self.is_blocking() {
            let runtime = Arc::clone(&self.execution.runtime);
            // If no thread can be started the task is dropped without having run, and its destructor ends the request.
            return runtime.spawn_thread(Box::new(move || run_blocking(self)));
        }
        self.spawn();
    }

    /// Whether the handler is a plain function that was not called yet.
    fn is_blocking(&self) -> bool {
        matches!(self.stage, HandlerStage::WaitingForBudget(HandlerJob::Blocking(_)))
    }
}

impl<E: HandlerOutputEncoder> QueuedHandler for HandlerTask<E> {
    fn poll_on_io_loop(mut self: Box<Self>) {
        if self.is_blocking() {
            return run_blocking(*self);
        }
        let runtime = Arc::clone(&self.execution.runtime);
        let Some(tokio) = runtime.as_tokio() else { return self.start_elsewhere() };
        self.is_watched = false;
        let polled = tokio.poll_in_context(&mut *self);
        self.is_watched = true;
        if polled.is_pending() {
            self.spawn();
        }
    }

    fn poll_on_worker(mut self: Box<Self>) {
        if self.is_blocking() {
            return self.start_elsewhere();
        }
        if Pin::new(&mut *self).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.spawn();
        }
    }

    fn spawn(self: Box<Self>) {
        self.start_elsewhere();
    }

    fn user_runtime(&self) -> Option<&Handle> {
        self.execution.runtime.as_tokio().map(TokioRuntime::handle)
    }
}

/// Calls a blocking handler on this thread, unless it has to wait for output budget. The rest of the handler task is
/// spawned on the worker threads.
pub(super) fn run_blocking<E: HandlerOutputEncoder>(mut task: HandlerTask<E>) {
    let ready = task.execution.stop_reason().is_none()
        && task.execution.mailbox.budget().has_capacity_to(OutputBudgetWaitReason::Start);
    if let (HandlerStage::WaitingForBudget(_), true) = (&task.stage, ready)
        && let HandlerStage::WaitingForBudget(HandlerJob::Blocking(function)) =
            std::mem::replace(&mut task.stage, HandlerStage::CleaningUp(None))
    {
        task.stage = task.call_blocking(function);
    }
    if !matches!(task.stage, HandlerStage::Done) {
        task.spawn();
    }
}
