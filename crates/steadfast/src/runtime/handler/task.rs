//! The task around a handler: whatever the handler does, its request ends exactly once, and other requests are not affected.
//!
//! ```text
//!   WaitingForBudget --> Running --> (ResponseParked) --> (CleaningUp) --> Done
//!          |                |                |                 ^
//!          +----------------+----------------+--- cancelled ---+
//! ```
//!
//! A handler task skips the stage `ResponseParked` if the output budget has capacity, and the stage `CleaningUp` if
//! there are no shields and no cleanups.
//!
//! The handler task waits for free bytes in the output budget, polls the handler, catches its panics, encodes its
//! response on the thread on which the handler ran, drops the handler when it is cancelled, waits for its shields, runs
//! its cleanups, and tells the driver when all of that is done. In protocol revisions in which a server cannot send
//! requests to the client, a handler that waits only for input from the client is dropped: its request ends with a
//! result that asks for the input, and the handler runs again from its start when the client retries the request with
//! that input.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::encode::EncodedResponse;
use steadfast_proto::mutant;

use super::catch_panic::{Panic, call_catching_panics, drop_catching_panics, poll_catching_panics};
use super::execution::HandlerExecution;
use super::input_rounds::HandlerInputs;
use super::launch::HandlerJob;
use super::output_budget::{OutputBudgetQueuePosition, OutputBudgetWaitReason};
use super::prepared::HandlerOutputEncoder;
use super::respond::{OutputBudgetParkedResponse, post, post_response};
use super::suspend::{HandlerPoll, HandlerSuspendDetector};
use crate::runtime::connection::mailbox::DriverCommand;
use crate::runtime::{FirstPollHistory, RuntimeTask, Timer, TokioRuntime};

pub(super) struct HandlerTask<E: HandlerOutputEncoder> {
    pub(super) execution: Arc<HandlerExecution>,
    pub(super) stage: HandlerStage<E::Output>,
    pub(super) encoder: Option<E>,
    /// How long a cooperative handler may go on after it was cancelled.
    grace: Option<Duration>,
    /// The timer that runs during the grace period of a cooperative handler that was cancelled.
    grace_timer: Option<Box<dyn Timer>>,
    /// The position of this handler task in the queue for the output budget.
    budget_queue: OutputBudgetQueuePosition,
    suspend_detector: HandlerSuspendDetector,
    /// The history of the handler's first polls. `None` after the first poll of this handler.
    pub(super) history: Option<Arc<FirstPollHistory>>,
    /// Whether the watchdog of the workers watches the polls of the handler. False while the thread of an I/O loop polls it.
    pub(super) is_watched: bool,
}

pub(super) enum HandlerStage<T> {
    /// The handler has not been started: the output budget is used up.
    WaitingForBudget(HandlerJob<T>),
    Running(Pin<Box<dyn Future<Output = T> + Send>>),
    /// The handler has returned, and its response waits for the output budget.
    ResponseParked(OutputBudgetParkedResponse),
    /// The task waits for the handler's shields and runs its cleanups, one after the other.
    CleaningUp(Option<RuntimeTask>),
    Done,
}

// Nothing in it is pinned in place: the futures are boxed.
impl<E: HandlerOutputEncoder> Unpin for HandlerTask<E> {}

impl<E: HandlerOutputEncoder> Future for HandlerTask<E> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        let execution = Arc::clone(&task.execution);
        execution.wake_on_change(cx.waker());
        loop {
            if execution.is_abandoned() {
                let stage = std::mem::replace(&mut task.stage, HandlerStage::Done);
                drop_catching_panics(stage);
                end_input_rounds(&execution);
                execution.close();
                return Poll::Ready(());
            }
            let stage = std::mem::replace(&mut task.stage, HandlerStage::Done);
            task.stage = match stage {
                HandlerStage::WaitingForBudget(job) if execution.stop_reason().is_some() => {
                    drop_catching_panics(job);
                    HandlerStage::CleaningUp(None)
                }
                HandlerStage::WaitingForBudget(job) => {
                    if execution
                        .mailbox
                        .budget()
                        .poll(OutputBudgetWaitReason::Start, &mut task.budget_queue, cx)
                        .is_pending()
                    {
                        task.stage = HandlerStage::WaitingForBudget(job);
                        return Poll::Pending;
                    }
                    match (job, task.encoder.take()) {
                        (HandlerJob::Future(future), encoder) => {
                            task.encoder = encoder;
                            match open_input_rounds(&execution) {
                                Ok(()) => HandlerStage::Running(future),
                                Err(error_response) => {
                                    drop_catching_panics(future);
                                    task.deliver(error_response)
                                }
                            }
                        }
                        (HandlerJob::Blocking(function), Some(encoder)) => {
                            let stage = HandlerStage::WaitingForBudget(HandlerJob::Blocking(function));
                            let execution = Arc::clone(&execution);
                            Self::new(execution, stage, encoder, None, task.history.take()).start_elsewhere();
                            HandlerStage::Done
                        }
                        (HandlerJob::Blocking(_), None) => HandlerStage::CleaningUp(None),
                    }
                }
                HandlerStage::Running(future) if task.must_stop(cx) => {
                    drop_catching_panics(future);
                    end_input_rounds(&execution);
                    HandlerStage::CleaningUp(None)
                }
                HandlerStage::Running(mut future) => match task.poll_handler(future.as_mut(), cx) {
                    Ok(HandlerPoll::Ready(value)) => {
                        drop_catching_panics(future);
                        end_input_rounds(&execution);
                        task.respond(value)
                    }
                    Ok(HandlerPoll::Pending) => {
                        task.stage = HandlerStage::Running(future);
                        return Poll::Pending;
                    }
                    Ok(HandlerPoll::Suspend) => task.suspend(future),
                    Err(Panic) => {
                        drop_catching_panics(future);
                        end_input_rounds(&execution);
                        task.respond_to_panic()
                    }
                },
                HandlerStage::ResponseParked(_) if execution.stop_reason().is_some() => HandlerStage::CleaningUp(None),
                HandlerStage::ResponseParked(mut parked) => {
                    if execution
                        .mailbox
                        .budget()
                        .poll(OutputBudgetWaitReason::Respond, &mut task.budget_queue, cx)
                        .is_pending()
                    {
                        task.stage = HandlerStage::ResponseParked(parked);
                        return Poll::Pending;
                    }
                    parked
                        .response
                        .take()
                        .map_or(HandlerStage::CleaningUp(None), |response| post_response(&execution, response))
                }
                HandlerStage::CleaningUp(cleanup) => {
                    if let Some(pending) = task.poll_cleanup(cleanup, cx) {
                        task.stage = pending;
                        return Poll::Pending;
                    }
                    post(&execution, DriverCommand::EndExecution { key: execution.key });
                    HandlerStage::Done
                }
                HandlerStage::Done => return Poll::Ready(()),
            };
        }
    }
}

impl<E: HandlerOutputEncoder> HandlerTask<E> {
    pub(super) fn new(
        execution: Arc<HandlerExecution>,
        stage: HandlerStage<E::Output>,
        encoder: E,
        grace: Option<Duration>,
        history: Option<Arc<FirstPollHistory>>,
    ) -> Self {
        Self {
            execution,
            stage,
            encoder: Some(encoder),
            grace,
            grace_timer: None,
            budget_queue: OutputBudgetQueuePosition::default(),
            suspend_detector: HandlerSuspendDetector::default(),
            history,
            is_watched: true,
        }
    }

    /// Spawns the handler task on the worker threads.
    pub(super) fn spawn(self) {
        let runtime = Arc::clone(&self.execution.runtime);
        match runtime.as_tokio() {
            Some(tokio) => tokio.spawn_task(self),
            None => runtime.spawn(Box::pin(self)),
        }
    }

    /// Whether the handler has to be dropped now, because it was cancelled and its grace period, if it has one, is
    /// over.
    fn must_stop(&mut self, cx: &mut Context<'_>) -> bool {
        if self.execution.stop_reason().is_none() || mutant!(IgnoreStop) {
            return false;
        }
        let Some(grace) = self.grace else { return true };
        let runtime = &self.execution.runtime;
        let timer = self.grace_timer.get_or_insert_with(|| {
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + grace));
            timer
        });
        timer.poll(cx).is_ready()
    }

    /// Calls a handler that is a plain function.
    pub(super) fn call_blocking(&mut self, function: Box<dyn FnOnce() -> E::Output + Send>) -> HandlerStage<E::Output> {
        if let Err(error_response) = open_input_rounds(&self.execution) {
            drop_catching_panics(function);
            return self.deliver(error_response);
        }
        if let Some(input_rounds) = self.execution.input_rounds() {
            input_rounds.set_blocking();
        }
        let measured = self.measure_first_poll();
        let returned = call_catching_panics(function);
        measured.end(&self.execution, true);
        end_input_rounds(&self.execution);
        match returned {
            Ok(value) => self.respond(value),
            Err(Panic) => self.respond_to_panic(),
        }
    }

    /// Measures the first poll of the handler, for its history.
    fn measure_first_poll(&mut self) -> FirstPollMeasurement {
        let history = self.history.take();
        FirstPollMeasurement(history.map(|history| (history, self.execution.runtime.now())))
    }

    /// Polls the handler, and detects whether it waits only for input from its client.
    fn poll_handler(
        &mut self,
        mut future: Pin<&mut (dyn Future<Output = E::Output> + Send)>,
        cx: &mut Context<'_>,
    ) -> Result<HandlerPoll<E::Output>, Panic> {
        let measured = self.measure_first_poll();
        let execution = &self.execution;
        let watchdog = execution.runtime.as_tokio().filter(|_| self.is_watched);
        let mut poll = |cx: &mut Context<'_>| {
            let _watch = watchdog.map(TokioRuntime::watch_poll);
            poll_catching_panics(future.as_mut(), cx)
        };
        let polled = match execution.input_rounds() {
            Some(input_rounds) => self.suspend_detector.poll(input_rounds, &*execution.runtime, cx, poll),
            None => poll(cx).map(|poll| match poll {
                Poll::Ready(value) => HandlerPoll::Ready(value),
                Poll::Pending => HandlerPoll::Pending,
            }),
        };
        measured.end(execution, matches!(polled, Ok(HandlerPoll::Ready(_))));
        polled
    }

    /// Drops a handler that waits only for input from its client. The request ends with a response that asks for the
    /// input, and the handler runs again from its start when the client retries the request with that input. A handler
    /// that is dropped to wait for input is not cancelled, so its cleanups do not run.
    fn suspend(&mut self, future: Pin<Box<dyn Future<Output = E::Output> + Send>>) -> HandlerStage<E::Output> {
        // Before the handler is dropped: dropping an input request withdraws it.
        let response = self.execution.input_rounds().map(HandlerInputs::suspend);
        drop_catching_panics(future);
        match response.filter(|_| self.execution.stop_reason().is_none()) {
            Some(response) => self.deliver(response),
            None => HandlerStage::CleaningUp(None),
        }
    }

    /// Waits for the handler's shields, then runs its cleanups. Returns `None` when no shield and no cleanup is left.
    fn poll_cleanup(&mut self, cleanup: Option<RuntimeTask>, cx: &mut Context<'_>) -> Option<HandlerStage<E::Output>> {
        let mut cleanup = cleanup;
        loop {
            // A cleanup would undo what a shield is still doing.
            if cleanup.is_none() && self.execution.has_shields() {
                return Some(HandlerStage::CleaningUp(None));
            }
            if self.execution.stop_reason().is_none() || mutant!(SkipCleanups) {
                self.execution.drop_cleanups();
            }
            let Some(mut task) = cleanup.take().or_else(|| self.execution.pop_cleanup()) else {
                if self.execution.try_end() {
                    return None;
                }
                continue;
            };
            let watchdog = self.execution.runtime.as_tokio().filter(|_| self.is_watched);
            let watch = watchdog.map(TokioRuntime::watch_poll);
            if let Ok(Poll::Pending) = poll_catching_panics(task.as_mut(), cx) {
                return Some(HandlerStage::CleaningUp(Some(task)));
            }
            drop_catching_panics(task);
            drop(watch);
        }
    }
}

/// A handler task that is dropped with its runtime, or unwound by a log subscriber that panics, still tells the driver
/// that the execution of the request has ended.
impl<E: HandlerOutputEncoder> Drop for HandlerTask<E> {
    fn drop(&mut self) {
        self.execution.mailbox.budget().leave_queue(&mut self.budget_queue);
        let stage = std::mem::replace(&mut self.stage, HandlerStage::Done);
        if matches!(stage, HandlerStage::Done) {
            return;
        }
        drop_catching_panics(stage);
        end_input_rounds(&self.execution);
        self.execution.close();
        post(&self.execution, DriverCommand::EndExecution { key: self.execution.key });
    }
}

/// Reads the input that came with the request, before its handler runs. `Err` is the response to the request if its
/// input cannot be read.
fn open_input_rounds(execution: &HandlerExecution) -> Result<(), EncodedResponse> {
    let opened = execution.input_rounds().map_or(Ok(()), HandlerInputs::open);
    opened.map_err(|error| EncodedResponse::error(&execution.id, &error))
}

/// Called when the handler is gone: tasks that the handler spawned and that still wait for input get an error.
fn end_input_rounds(execution: &HandlerExecution) {
    if let Some(input_rounds) = execution.input_rounds() {
        input_rounds.end();
    }
}

/// The history of a handler that is being polled for the first time, and when the poll began.
struct FirstPollMeasurement(Option<(Arc<FirstPollHistory>, Moment)>);

impl FirstPollMeasurement {
    fn end(self, execution: &HandlerExecution, ready: bool) {
        if let Some((history, began)) = self.0 {
            history.record(execution.runtime.now().since(began), ready);
        }
    }
}
