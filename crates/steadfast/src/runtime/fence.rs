//! The fence around a handler: whatever it does, its request has one end and everyone else goes on.
//!
//! It waits for room, polls the handler, catches its panics, encodes its answer where the handler ran, drops it when it is
//! to stop, runs its cleanups, waits for its shields, and says when all of it is over.

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
use super::mailbox::Letter;
use super::{Task, Timer};

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
    let runtime = Arc::clone(&execution.runtime);
    match job {
        Job::Future(future) => {
            let fence = Fence { execution, stage: Stage::Gate(future), encode: Some(encode), grace, timer: None };
            match runtime.tokio() {
                Some(tokio) => tokio.spawn_task(fence),
                None => runtime.spawn(Box::pin(fence)),
            }
        }
        Job::Blocking(function) => runtime.spawn_thread(Box::new(move || run_blocking(execution, function, encode))),
    }
}

/// Polls a future and keeps its panic from going further.
pub(super) fn poll_quietly<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Result<Poll<F::Output>, Panic> {
    catch_unwind(AssertUnwindSafe(|| future.poll(cx))).map_err(Panic::new)
}

/// Drops a value whose destructor may panic.
pub(super) fn drop_quietly<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(Panic::new);
}

/// A panic that was caught. Its payload may panic again when it is dropped, so it is forgotten if it is not plain text.
pub(super) struct Panic;

impl Panic {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        if !payload.is::<&'static str>() && !payload.is::<String>() {
            std::mem::forget(payload);
        }
        Self
    }
}

struct Fence<T, E> {
    execution: Arc<Execution>,
    stage: Stage<T>,
    encode: Option<E>,
    grace: Option<Duration>,
    timer: Option<Box<dyn Timer>>,
}

enum Stage<T> {
    /// Waiting for room to begin.
    Gate(Pin<Box<dyn Future<Output = T> + Send>>),
    Running(Pin<Box<dyn Future<Output = T> + Send>>),
    /// Done, and waiting for room to be encoded.
    Done(T),
    /// Running cleanups and waiting for shields.
    Ending(Option<Task>),
    Over,
}

// Nothing in it is pinned in place: the futures are boxed.
impl<T, E> Unpin for Fence<T, E> {}

impl<T, E> Future for Fence<T, E>
where
    E: FnOnce(T, &Execution) -> Answer,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let fence = &mut *self;
        let execution = Arc::clone(&fence.execution);
        execution.watch(cx.waker());
        loop {
            if execution.is_abandoned() {
                let stage = std::mem::replace(&mut fence.stage, Stage::Over);
                drop_quietly(stage);
                execution.drop_cleanups();
                return Poll::Ready(());
            }
            let stage = std::mem::replace(&mut fence.stage, Stage::Over);
            fence.stage = match stage {
                Stage::Gate(future) if execution.stopping().is_some() => stop(future),
                Stage::Gate(future) => {
                    if execution.mailbox.poll_room(cx).is_pending() {
                        fence.stage = Stage::Gate(future);
                        return Poll::Pending;
                    }
                    Stage::Running(future)
                }
                Stage::Running(future) if fence.must_stop(cx) => stop(future),
                Stage::Running(mut future) => match poll_watched(&execution, future.as_mut(), cx) {
                    Ok(Poll::Ready(value)) => {
                        drop_quietly(future);
                        Stage::Done(value)
                    }
                    Ok(Poll::Pending) => {
                        fence.stage = Stage::Running(future);
                        return Poll::Pending;
                    }
                    Err(Panic) => {
                        drop_quietly(future);
                        fence.answer_panic()
                    }
                },
                Stage::Done(value) if execution.stopping().is_some() => {
                    // Nobody waits for the answer.
                    drop_quietly(value);
                    Stage::Ending(None)
                }
                Stage::Done(value) => {
                    if execution.mailbox.poll_room(cx).is_pending() {
                        fence.stage = Stage::Done(value);
                        return Poll::Pending;
                    }
                    fence.answer(value)
                }
                Stage::Ending(cleanup) => {
                    if let Some(ending) = fence.end(cleanup, cx) {
                        fence.stage = ending;
                        return Poll::Pending;
                    }
                    post(&execution, Letter::Ended { key: execution.key });
                    Stage::Over
                }
                Stage::Over => return Poll::Ready(()),
            };
        }
    }
}

impl<T, E> Fence<T, E>
where
    E: FnOnce(T, &Execution) -> Answer,
{
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

    fn answer(&mut self, value: T) -> Stage<T> {
        let execution = &self.execution;
        let encode = self.encode.take();
        let answer =
            catch_unwind(AssertUnwindSafe(|| encode.map(|encode| encode(value, execution)))).map_err(Panic::new);
        match answer {
            Ok(Some(answer)) => {
                execution.drop_cleanups();
                finish(execution, answer)
            }
            Ok(None) => Stage::Ending(None),
            Err(Panic) => self.answer_panic(),
        }
    }

    fn answer_panic(&mut self) -> Stage<T> {
        if mutant!(SwallowPanic) {
            return Stage::Over;
        }
        let execution = &self.execution;
        execution.drop_cleanups();
        finish(execution, panic_answer(execution))
    }

    /// Goes on with cleanups and shields. `None` when there is nothing left.
    fn end(&mut self, cleanup: Option<Task>, cx: &mut Context<'_>) -> Option<Stage<T>> {
        let mut cleanup = cleanup;
        if self.execution.stopping().is_none() {
            self.execution.drop_cleanups();
        }
        loop {
            let Some(mut task) = cleanup.take().or_else(|| self.execution.next_cleanup()) else {
                return self.execution.has_shields().then_some(Stage::Ending(None));
            };
            if let Ok(Poll::Pending) = poll_quietly(task.as_mut(), cx) {
                return Some(Stage::Ending(Some(task)));
            }
            drop_quietly(task);
        }
    }
}

/// Drops a handler that is not wanted any more.
fn stop<T>(future: Pin<Box<dyn Future<Output = T> + Send>>) -> Stage<T> {
    drop_quietly(future);
    Stage::Ending(None)
}

/// Posts the answer; if nothing else is left of the execution, its end with it.
fn finish<T>(execution: &Arc<Execution>, answer: Answer) -> Stage<T> {
    if execution.has_shields() {
        post(execution, Letter::Answer { key: execution.key, answer });
        return Stage::Ending(None);
    }
    post(execution, Letter::Finished { key: execution.key, answer });
    Stage::Over
}

/// The text of a panic may hold anything, so the peer learns only that there was one.
fn panic_answer(execution: &Execution) -> Answer {
    tracing::error!(request = %execution.id, "the handler panicked; the request is answered with an internal error");
    Answer::error(&execution.id, &ErrorObject::internal("the handler failed unexpectedly"))
}

fn post(execution: &Execution, letter: Letter) {
    // If the connection is closed, nobody waits for it.
    let _ = execution.mailbox.post(letter);
}

fn poll_watched<F: Future + ?Sized>(
    execution: &Execution,
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Result<Poll<F::Output>, Panic> {
    let _watch = execution.runtime.tokio().map(super::TokioRuntime::watch);
    poll_quietly(future, cx)
}

/// The fence around a plain function, on its thread.
fn run_blocking<T, E>(execution: Arc<Execution>, function: Box<dyn FnOnce() -> T + Send>, encode: E)
where
    T: Send + 'static,
    E: FnOnce(T, &Execution) -> Answer + Send + 'static,
{
    // Cancelled while it waited for a thread.
    if execution.stopping().is_none() {
        let run = AssertUnwindSafe(|| {
            let value = function();
            let stopped = execution.stopping().is_some();
            (!stopped).then(|| encode(value, &execution))
        });
        let answer = match catch_unwind(run).map_err(Panic::new) {
            Ok(answer) => answer,
            Err(Panic) if mutant!(SwallowPanic) => return,
            Err(Panic) => Some(panic_answer(&execution)),
        };
        if let Some(answer) = answer {
            execution.drop_cleanups();
            if !execution.has_shields() {
                return post(&execution, Letter::Finished { key: execution.key, answer });
            }
            post(&execution, Letter::Answer { key: execution.key, answer });
        }
    } else {
        drop_quietly(function);
    }
    // What is left, cleanups and shields, is async.
    let runtime = Arc::clone(&execution.runtime);
    let rest: Fence<(), fn((), &Execution) -> Answer> =
        Fence { execution, stage: Stage::Ending(None), encode: None, grace: None, timer: None };
    runtime.spawn(Box::pin(rest));
}
