//! Starts the handlers of requests: async handlers as tasks on the worker threads, plain functions on a blocking thread.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::execution::HandlerExecution;
use super::output_budget::OutputBudgetWaitReason;
use super::prepared::HandlerOutputEncoder;
use super::task::{HandlerStage, HandlerTask};

/// A handler that can be started.
pub(crate) enum HandlerJob<T> {
    /// To be polled on the workers.
    Future(Pin<Box<dyn Future<Output = T> + Send>>),
    /// A blocking handler: to be called on a thread that it may block.
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

impl<T> HandlerJob<T> {
    /// Runs the handler here, without a request: for tests of a handler.
    #[cfg(feature = "server")]
    pub(crate) async fn run(self) -> T {
        match self {
            Self::Future(future) => future.await,
            Self::Blocking(function) => function(),
        }
    }
}

/// Starts a handler in a task of its own; `encoder` turns its return value into a response. A handler is dropped as soon as it
/// is cancelled, unless `grace` is set: then it is cooperative, and is dropped only if it still runs after that time.
pub(super) fn launch<E: HandlerOutputEncoder>(
    execution: Arc<HandlerExecution>,
    job: HandlerJob<E::Output>,
    encoder: E,
    grace: Option<Duration>,
) {
    match job {
        // A plain function needs no worker, unless it has to wait for something.
        HandlerJob::Blocking(function) => launch_blocking(execution, function, encoder),
        HandlerJob::Future(_) => {
            HandlerTask::new(execution, HandlerStage::WaitingForBudget(job), encoder, grace).spawn();
        }
    }
}

/// Runs a plain function on a thread that it may block.
pub(super) fn launch_blocking<E: HandlerOutputEncoder>(
    execution: Arc<HandlerExecution>,
    function: Box<dyn FnOnce() -> E::Output + Send>,
    encoder: E,
) {
    let runtime = Arc::clone(&execution.runtime);
    // If no thread can be started the task is dropped without having run, and its destructor ends the request.
    let task =
        HandlerTask::new(execution, HandlerStage::WaitingForBudget(HandlerJob::Blocking(function)), encoder, None);
    runtime.spawn_thread(Box::new(move || run_blocking(task)));
}

/// Runs as much of the task as needs no waiting. The rest is spawned on the workers.
fn run_blocking<E: HandlerOutputEncoder>(mut task: HandlerTask<E>) {
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
