//! Starts handlers: futures on the workers, plain functions on a thread that they may block.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::encode::EncodedResponse;

use super::execution::Execution;
use super::output_budget::BudgetUse;
use super::task::{HandlerStage, HandlerTask};

/// A handler that can be started.
pub(crate) enum Job<T> {
    /// To be polled on the workers.
    Future(Pin<Box<dyn Future<Output = T> + Send>>),
    /// To be called on a thread that it may block.
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

/// Starts a handler in a task of its own; `encode` turns its return value into a response. A handler is dropped as soon as it
/// is cancelled, unless `grace` is set: then it is cooperative, and is dropped only if it still runs after that time.
pub(super) fn launch<T, E>(execution: Arc<Execution>, job: Job<T>, encode: E, grace: Option<Duration>)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> EncodedResponse + Send + 'static,
{
    match job {
        // A plain function needs no worker, unless it has to wait for something.
        Job::Blocking(function) => launch_blocking(execution, function, encode),
        Job::Future(_) => HandlerTask::new(execution, HandlerStage::WaitingForBudget(job), encode, grace).spawn(),
    }
}

/// Runs a plain function on a thread that it may block.
pub(super) fn launch_blocking<T, E>(execution: Arc<Execution>, function: Box<dyn FnOnce() -> T + Send>, encode: E)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> EncodedResponse + Send + 'static,
{
    let runtime = Arc::clone(&execution.runtime);
    // If no thread can be started the task is dropped without having run, and its destructor ends the request.
    let task = HandlerTask::new(execution, HandlerStage::WaitingForBudget(Job::Blocking(function)), encode, None);
    runtime.spawn_thread(Box::new(move || run_blocking(task)));
}

/// Runs as much of the task as needs no waiting. The rest is spawned on the workers.
fn run_blocking<T, E>(mut task: HandlerTask<T, E>)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> EncodedResponse + Send + 'static,
{
    let ready =
        task.execution.stop_reason().is_none() && task.execution.mailbox.budget().has_capacity_to(BudgetUse::Start);
    if let (HandlerStage::WaitingForBudget(_), true) = (&task.stage, ready)
        && let HandlerStage::WaitingForBudget(Job::Blocking(function)) =
            std::mem::replace(&mut task.stage, HandlerStage::CleaningUp(None))
    {
        task.stage = task.call_blocking(function);
    }
    if !matches!(task.stage, HandlerStage::Done) {
        task.spawn();
    }
}
