//! The fence around a handler: whatever it does, its request has one end and everyone else goes on.
//!
//! It waits for room, polls the handler, catches its panics, encodes its answer where the handler ran, drops it when it is
//! to stop, runs its cleanups, waits for its shields, and says when all of it is over. One that waits for nothing but its
//! client's answers is suspended, where the client cannot be called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_model::ErrorObject;
use steadfast_proto::encode::Answer;
use steadfast_proto::mutant;

use super::execution::Execution;
use super::output_budget::BudgetQueueEntry;
use super::suspend::{HandlerPoll, SuspendDetector};
use crate::runtime::connection::mailbox::DriverCommand;
use crate::runtime::{Task, Timer};

/// What a handler is, to the fence.
pub(crate) enum Job<T> {
    /// To be polled on the workers.
    Future(Pin<Box<dyn Future<Output = T> + Send>>),
    /// To be called on a thread that may block.
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

/// Starts a handler behind its fence. `grace` is set for one that is not dropped when it is to stop, and says how long it
/// may go on.
pub(crate) fn launch<T, E>(execution: Arc<Execution>, job: Job<T>, encode: E, grace: Option<Duration>)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
{
    match job {
        // A plain function needs no worker, unless there is something to wait for.
        Job::Blocking(function) => start_thread(execution, function, encode),
        Job::Future(_) => HandlerTask::new(execution, Stage::Gate(job), encode, grace).spawn(),
    }
}

/// Polls a future and keeps its panic from going further.
pub(crate) fn poll_quietly<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Result<Poll<F::Output>, Panic> {
    catch_unwind(AssertUnwindSafe(|| future.poll(cx))).map_err(Panic::new)
}

/// Drops a value whose destructor may panic.
pub(crate) fn drop_quietly<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(Panic::new);
}

/// A panic that was caught. Its payload may panic again when it is dropped, so it is forgotten if it is not plain text.
pub(crate) struct Panic;

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        if !payload.is::<&'static str>() && !payload.is::<String>() {
            std::mem::forget(payload);
        }
        Self
    }
}

struct HandlerTask<T, E> {
    execution: Arc<Execution>,
    stage: Stage<T>,
    encode: Option<E>,
    grace: Option<Duration>,
    timer: Option<Box<dyn Timer>>,
    /// In the queue for room.
    place: BudgetQueueEntry,
    lull: SuspendDetector,
}

enum Stage<T> {
    /// Waiting for room to begin.
    Gate(Job<T>),
    Running(Pin<Box<dyn Future<Output = T> + Send>>),
    /// Done, and waiting for room to be posted.
    Parked(ParkedAnswer),
    /// Waiting for shields and running cleanups.
    Ending(Option<Task>),
    Over,
}

/// An answer that waits for room, and is counted while it does.
struct ParkedAnswer {
    answer: Option<Answer>,
    bytes: usize,
    execution: Arc<Execution>,
}

impl Drop for ParkedAnswer {
    fn drop(&mut self) {
        self.execution.mailbox.budget().unpark(self.bytes);
    }
}

// Nothing in it is pinned in place: the futures are boxed.
impl<T, E> Unpin for HandlerTask<T, E> {}

impl<T, E> Future for HandlerTask<T, E>
where
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
    T: Send + 'static,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        let execution = Arc::clone(&task.execution);
        execution.watch(cx.waker());
        loop {
            if execution.is_abandoned() {
                let stage = std::mem::replace(&mut task.stage, Stage::Over);
                drop_quietly(stage);
                stop_asking(&execution);
                execution.release();
                return Poll::Ready(());
            }
            let stage = std::mem::replace(&mut task.stage, Stage::Over);
            task.stage = match stage {
                Stage::Gate(job) if execution.stopping().is_some() => {
                    drop_quietly(job);
                    Stage::Ending(None)
                }
                Stage::Gate(job) => {
                    if execution.mailbox.budget().poll(&mut task.place, cx).is_pending() {
                        task.stage = Stage::Gate(job);
                        return Poll::Pending;
                    }
                    match (job, task.encode.take()) {
                        (Job::Future(future), encode) => {
                            task.encode = encode;
                            match open(&execution) {
                                Ok(()) => Stage::Running(future),
                                Err(refusal) => {
                                    drop_quietly(future);
                                    task.deliver(refusal)
                                }
                            }
                        }
                        (Job::Blocking(function), Some(encode)) => {
                            start_thread(Arc::clone(&execution), function, encode);
                            Stage::Over
                        }
                        (Job::Blocking(_), None) => Stage::Ending(None),
                    }
                }
                Stage::Running(future) if task.must_stop(cx) => {
                    drop_quietly(future);
                    stop_asking(&execution);
                    Stage::Ending(None)
                }
                Stage::Running(mut future) => match task.turn(future.as_mut(), cx) {
                    Ok(HandlerPoll::Ready(value)) => {
                        drop_quietly(future);
                        stop_asking(&execution);
                        task.answer(value)
                    }
                    Ok(HandlerPoll::Pending) => {
                        task.stage = Stage::Running(future);
                        return Poll::Pending;
                    }
                    Ok(HandlerPoll::Suspend) => task.suspend(future),
                    Err(Panic) => {
                        drop_quietly(future);
                        stop_asking(&execution);
                        task.answer_panic()
                    }
                },
                Stage::Parked(_) if execution.stopping().is_some() => Stage::Ending(None),
                Stage::Parked(mut parked) => {
                    if execution.mailbox.budget().poll(&mut task.place, cx).is_pending() {
                        task.stage = Stage::Parked(parked);
                        return Poll::Pending;
                    }
                    parked.answer.take().map_or(Stage::Ending(None), |answer| finish(&execution, answer))
                }
                Stage::Ending(cleanup) => {
                    if let Some(ending) = task.end(cleanup, cx) {
                        task.stage = ending;
                        return Poll::Pending;
                    }
                    post(&execution, DriverCommand::Ended { key: execution.key });
                    Stage::Over
                }
                Stage::Over => return Poll::Ready(()),
            };
        }
    }
}

impl<T, E> HandlerTask<T, E>
where
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
    T: Send + 'static,
{
    fn new(execution: Arc<Execution>, stage: Stage<T>, encode: E, grace: Option<Duration>) -> Self {
        Self {
            execution,
            stage,
            encode: Some(encode),
            grace,
            timer: None,
            place: BudgetQueueEntry::default(),
            lull: SuspendDetector::default(),
        }
    }

    /// Has it polled to its end on the workers.
    fn spawn(self) {
        let runtime = Arc::clone(&self.execution.runtime);
        match runtime.as_tokio() {
            Some(tokio) => tokio.spawn_task(self),
            None => runtime.spawn(Box::pin(self)),
        }
    }

    /// Whether the handler is to be dropped now.
    fn must_stop(&mut self, cx: &mut Context<'_>) -> bool {
        if self.execution.stopping().is_none() || mutant!(IgnoreStop) {
            return false;
        }
        let Some(grace) = self.grace else { return true };
        let runtime = &self.execution.runtime;
        let timer = self.timer.get_or_insert_with(|| {
            let mut timer = runtime.timer();
            timer.reset(Some(runtime.now() + grace));
            timer
        });
        timer.poll(cx).is_ready()
    }

    /// Calls a handler that is a plain function.
    fn call(&mut self, function: Box<dyn FnOnce() -> T + Send>) -> Stage<T> {
        if let Err(refusal) = open(&self.execution) {
            drop_quietly(function);
            return self.deliver(refusal);
        }
        if let Some(input_rounds) = self.execution.input_rounds() {
            input_rounds.set_blocking();
        }
        let called = catch_unwind(AssertUnwindSafe(function)).map_err(Panic::new);
        stop_asking(&self.execution);
        match called {
            Ok(value) => self.answer(value),
            Err(Panic) => self.answer_panic(),
        }
    }

    /// Polls the handler.
    fn turn(
        &mut self,
        mut future: Pin<&mut (dyn Future<Output = T> + Send)>,
        cx: &mut Context<'_>,
    ) -> Result<HandlerPoll<T>, Panic> {
        let execution = &self.execution;
        let mut poll = |cx: &mut Context<'_>| poll_watched(execution, future.as_mut(), cx);
        match execution.input_rounds() {
            Some(input_rounds) => self.lull.poll(input_rounds, &*execution.runtime, cx, poll),
            None => poll(cx).map(|poll| match poll {
                Poll::Ready(value) => HandlerPoll::Ready(value),
                Poll::Pending => HandlerPoll::Pending,
            }),
        }
    }

    /// The handler waits for answers only: it ends here, its questions are the answer, and it runs again when the client
    /// comes back. That is no cancellation, so nothing is cleaned up.
    fn suspend(&mut self, future: Pin<Box<dyn Future<Output = T> + Send>>) -> Stage<T> {
        // First, because a question that is dropped is not asked.
        let answer = self.execution.input_rounds().map(super::input_rounds::InputRounds::suspend);
        drop_quietly(future);
        match answer.filter(|_| self.execution.stopping().is_none()) {
            Some(answer) => self.deliver(answer),
            None => Stage::Ending(None),
        }
    }

    /// The handler has returned: its answer is encoded here, where the handler ran.
    fn answer(&mut self, value: T) -> Stage<T> {
        let execution = &self.execution;
        let Some(encode) = self.encode.take().filter(|_| execution.stopping().is_none()) else {
            // Nobody waits for the answer.
            drop_quietly(value);
            return Stage::Ending(None);
        };
        let Ok(answer) = catch_unwind(AssertUnwindSafe(|| encode(value, execution))).map_err(Panic::new) else {
            return self.answer_panic();
        };
        self.deliver(answer)
    }

    /// Posts an answer, now or when there is room.
    fn deliver(&mut self, answer: Answer) -> Stage<T> {
        let execution = &self.execution;
        if execution.mailbox.budget().is_free() {
            execution.drop_cleanups();
            return finish(execution, answer);
        }
        let bytes = answer.len();
        if execution.mailbox.budget().park(bytes) {
            return Stage::Parked(ParkedAnswer { answer: Some(answer), bytes, execution: Arc::clone(execution) });
        }
        let error = ErrorObject::internal("too many answers wait to be read, so this one was dropped");
        execution.drop_cleanups();
        finish(execution, Answer::error(&execution.id, &error))
    }

    fn answer_panic(&mut self) -> Stage<T> {
        if mutant!(SwallowPanic) {
            return Stage::Over;
        }
        let execution = &self.execution;
        execution.drop_cleanups();
        finish(execution, panic_answer(execution))
    }

    /// Waits for shields, then runs cleanups. `None` when there is nothing left.
    fn end(&mut self, cleanup: Option<Task>, cx: &mut Context<'_>) -> Option<Stage<T>> {
        let mut cleanup = cleanup;
        loop {
            // What a shield protects is not undone while it is being done.
            if cleanup.is_none() && self.execution.has_shields() {
                return Some(Stage::Ending(None));
            }
            if self.execution.stopping().is_none() || mutant!(SkipCleanups) {
                self.execution.drop_cleanups();
            }
            let Some(mut task) = cleanup.take().or_else(|| self.execution.next_cleanup()) else {
                if self.execution.end() {
                    return None;
                }
                continue;
            };
            if let Ok(Poll::Pending) = poll_quietly(task.as_mut(), cx) {
                return Some(Stage::Ending(Some(task)));
            }
            drop_quietly(task);
        }
    }
}

/// A fence that is dropped with its runtime, or unwound by a log subscriber that panics, still says that it is over.
impl<T, E> Drop for HandlerTask<T, E> {
    fn drop(&mut self) {
        self.execution.mailbox.budget().leave(&mut self.place);
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if matches!(stage, Stage::Over) {
            return;
        }
        drop_quietly(stage);
        stop_asking(&self.execution);
        self.execution.release();
        post(&self.execution, DriverCommand::Ended { key: self.execution.key });
    }
}

/// Posts the answer; if nothing else is left of the execution, its end with it.
fn finish<T>(execution: &Arc<Execution>, answer: Answer) -> Stage<T> {
    if !execution.end() {
        post(execution, DriverCommand::Answer { key: execution.key, answer });
        return Stage::Ending(None);
    }
    post(execution, DriverCommand::Finished { key: execution.key, answer });
    Stage::Over
}

/// The text of a panic may hold anything, so the peer learns only that there was one.
fn panic_answer(execution: &Execution) -> Answer {
    let say =
        || tracing::error!(request = %execution.id, "the handler panicked; its request is answered with an error");
    // A subscriber that panics in its turn does not cost the answer.
    let _ = catch_unwind(AssertUnwindSafe(say)).map_err(Panic::new);
    Answer::error(&execution.id, &ErrorObject::internal("the handler failed unexpectedly"))
}

fn post(execution: &Execution, command: DriverCommand) {
    // If the connection is closed, nobody waits for it.
    let _ = execution.mailbox.post(command);
}

/// Reads the answers that came with the request, before its handler runs; an answer if they cannot be.
fn open(execution: &Execution) -> Result<(), Answer> {
    let opened = execution.input_rounds().map_or(Ok(()), super::input_rounds::InputRounds::open);
    opened.map_err(|error| Answer::error(&execution.id, &error))
}

/// The handler is gone: a task of its own that still asks will not be answered.
fn stop_asking(execution: &Execution) {
    if let Some(input_rounds) = execution.input_rounds() {
        input_rounds.end();
    }
}

fn poll_watched<F: Future + ?Sized>(
    execution: &Execution,
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Result<Poll<F::Output>, Panic> {
    let _watch = execution.runtime.as_tokio().map(crate::runtime::TokioRuntime::watch);
    poll_quietly(future, cx)
}

/// Runs a plain function on a thread.
fn start_thread<T, E>(execution: Arc<Execution>, function: Box<dyn FnOnce() -> T + Send>, encode: E)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
{
    let runtime = Arc::clone(&execution.runtime);
    // Dropped without being run, because no thread could be started, the fence says that the request is over.
    let task = HandlerTask::new(execution, Stage::Gate(Job::Blocking(function)), encode, None);
    runtime.spawn_thread(Box::new(move || run_on_thread(task)));
}

/// The fence around a plain function. What it cannot do without waiting goes on as a task.
fn run_on_thread<T, E>(mut task: HandlerTask<T, E>)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
{
    let ready = task.execution.stopping().is_none() && task.execution.mailbox.budget().is_free();
    if let (Stage::Gate(_), true) = (&task.stage, ready)
        && let Stage::Gate(Job::Blocking(function)) = std::mem::replace(&mut task.stage, Stage::Ending(None))
    {
        task.stage = task.call(function);
    }
    if !matches!(task.stage, Stage::Over) {
        task.spawn();
    }
}
