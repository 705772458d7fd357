//! I/O loops: tokio runtimes that no thread owns, on which drivers run, and quick handlers too.
//!
//! An I/O loop is a current-thread tokio runtime. The drivers of connections, the connections of HTTP servers, timers and
//! signals are tasks on it. Any thread may drive such a runtime with `block_on`, one at a time, and whichever does has its
//! scheduler, its descriptors and its timers. The thread that drives an I/O loop is its *holder*.
//!
//! A handler that answers at once should not cost a switch between threads, and a handler that blocks its thread must
//! not delay a driver. So the thread that drives an I/O loop polls a handler for the first time itself, between two
//! calls of `block_on`, if earlier first polls of that handler were quick ([`history`]):
//!
//! ```text
//!   holder    inside block_on:            drivers read, and queue the handlers of the requests
//!             outside, runtime is free:   polls the queued handlers once, one after the other
//!             inside block_on:            drivers write the responses
//! ```
//!
//! While the holder is outside, no thread has the runtime. If the holder's poll of a handler lasts longer than a few
//! milliseconds, the [takeover monitor](takeover) makes a spare thread the holder: the spare thread drives the
//! runtime from then on, and descriptors, timers and tasks do not notice. The thread that is stuck in the handler has
//! lost the loop. When the poll returns, that thread becomes a spare.
//!
//! A handler that is pending after its first poll goes on as a task on the user's runtime, as every handler does whose first
//! poll is not expected to be quick.
//!
//! ```text
//!   thread    spare --> holder inside <--> holder outside --(poll returned in time)--> holder inside
//!               ^                               |
//!               +-----(poll returned late)------+  loop taken over: another thread is the holder by then
//! ```

pub(crate) mod history;
mod takeover;
mod timer;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Id};

#[cfg(feature = "http")]
use crate::runtime::Runtime;
use crate::runtime::RuntimeTask;
use crate::runtime::handler::catch_panic::call_catching_panics;
use history::FirstPollHistory;

/// The maximum time for which the holder polls queued handlers before it drives the runtime of the I/O loop again:
/// the drivers on the loop wait meanwhile.
const MAX_TIME_OUTSIDE: Duration = Duration::from_millis(1);

/// If the queued handlers are expected to take longer than this, workers of the user's runtime help to poll them.
const HELP_ABOVE: Duration = Duration::from_micros(200);

/// When this many tasks wait to be handed to the workers of the user's runtime, they are spawned at once, without
/// waiting for more.
const TASKS_PER_HAND_OFF: usize = 16;

/// The I/O loops of the process. The first one also has what is not a connection of an HTTP server.
static IO_LOOPS: Mutex<Vec<Arc<IoLoop>>> = Mutex::new(Vec::new());

/// A handler that was not polled yet, for the queue of an I/O loop.
pub(crate) trait QueuedHandler: Send {
    /// Polls the handler once on the thread of an I/O loop, outside of its runtime. A handler that is pending is spawned on its
    /// own runtime.
    fn poll_on_io_loop(self: Box<Self>);

    /// Polls the handler once on the worker that calls this function. If the handler is pending after that poll, it is spawned
    /// as a task of its own runtime.
    fn poll_on_worker(self: Box<Self>);

    /// Spawns the handler on its own runtime without polling it here.
    fn spawn(self: Box<Self>);

    /// The tokio runtime of the user, on which the handler is spawned, if there is one.
    fn user_runtime(&self) -> Option<&Handle>;
}

struct QueueEntry {
    history: Arc<FirstPollHistory>,
    expected: Duration,
    handler: Box<dyn QueuedHandler>,
}

/// A tokio runtime for I/O, and the handlers that its holder polls.
pub(crate) struct IoLoop {
    runtime: tokio::runtime::Runtime,
    state: Mutex<IoLoopState>,
    poll: HandlerPollState,
}

#[derive(Default)]
struct IoLoopState {
    queue: VecDeque<QueueEntry>,
    /// The sum of the expected times of the queue.
    expected: Duration,
    /// Tasks on the workers that poll handlers of the queue.
    helpers: usize,
    /// Tasks on the loop that the holder wakes when it is inside.
    wakes: Vec<Waker>,
    /// Tasks for the workers of a user's runtime.
    hand_offs: Vec<(Handle, RuntimeTask)>,
    /// Wakes the holder. `None` while the holder is outside, and after it was woken: then it looks at this state anyway.
    holder: Option<Waker>,
}

/// Whether the holder polls a handler, in one word that the takeover monitor can read and change:
/// `turn << 1 | (1 while a handler is polled)`.
#[derive(Default)]
struct HandlerPollState {
    word: AtomicU64,
    /// The history of the handler that was polled last.
    history: Mutex<Option<Arc<FirstPollHistory>>>,
}

impl HandlerPollState {
    fn begin(&self, turn: u64, history: &Arc<FirstPollHistory>) {
        *self.history.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(history));
        self.word.store(turn << 1 | 1, Ordering::SeqCst);
    }

    /// Ends the poll. False if the loop was taken over.
    fn end(&self, turn: u64) -> bool {
        self.word.compare_exchange(turn << 1 | 1, turn << 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the loop from its holder, if the holder still polls the handler that it polled when `word` was read. Returns the
    /// turn of the next holder.
    fn take_over(&self, word: u64) -> Option<u64> {
        let turn = (word >> 1) + 1;
        self.word.compare_exchange(word, turn << 1, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(history) = history {
            history.bar();
        }
        Some(turn)
    }
}

/// The I/O loop of byte streams, clients and listeners, which is started by the first call.
pub(crate) fn main() -> io::Result<Arc<IoLoop>> {
    Ok(Arc::clone(&start(1)?[0]))
}

/// The handle of the tokio runtime of the [`main`] I/O loop.
pub(crate) fn main_handle() -> io::Result<Handle> {
    Ok(main()?.handle().clone())
}

/// The I/O loops for the connections of an HTTP server: as many as the user's runtime has workers.
#[cfg(feature = "http")]
pub(crate) fn for_http(runtime: &Handle) -> io::Result<Vec<Arc<IoLoop>>> {
    start(runtime.metrics().num_workers().max(1))
}

/// The first `count` I/O loops, with those that are missing started.
fn start(count: usize) -> io::Result<Vec<Arc<IoLoop>>> {
    let mut loops = IO_LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
    while loops.len() < count {
        loops.push(IoLoop::start()?);
    }
    Ok(loops.iter().take(count).cloned().collect())
}

impl IoLoop {
    fn new() -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Arc::new(Self { runtime, state: Mutex::default(), poll: HandlerPollState::default() }))
    }

    fn start() -> io::Result<Arc<Self>> {
        let io_loop = Self::new()?;
        let held = Arc::clone(&io_loop);
        let started = std::thread::Builder::new().name("steadfast-io".to_owned()).spawn(move || {
            held.hold(0);
            takeover::monitor().wait_as_spare();
        });
        if let Err(error) = started {
            io_loop.shut_down();
            return Err(error);
        }
        takeover::monitor().watch(&io_loop);
        Ok(io_loop)
    }

    /// Drops a loop that no thread holds. Its runtime may be dropped only outside of other runtimes, but it may be shut down
    /// anywhere.
    fn shut_down(self: Arc<Self>) {
        if let Some(io_loop) = Arc::into_inner(self) {
            io_loop.runtime.shutdown_background();
        }
    }

    /// The handle of the tokio runtime of the I/O loop, which spawns tasks on the loop.
    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Wakes a task of the loop from any thread. Tasks that are woken before the holder is inside again cost one wake of the
    /// holder together, and none if it is outside.
    pub(crate) fn wake(&self, task: Waker) {
        let mut state = self.lock();
        state.wakes.push(task);
        wake_holder(state);
    }

    /// Has the holder poll a handler once, as soon as it is outside. Called by a driver on the loop.
    pub(crate) fn poll_soon(self: &Arc<Self>, history: Arc<FirstPollHistory>, handler: Box<dyn QueuedHandler>) {
        if !takeover::monitor().has_spare() {
            return handler.spawn();
        }
        let expected = history.expected();
        let mut state = self.lock();
        let more_help = state.expected > HELP_ABOVE * (u32::try_from(state.helpers).unwrap_or(u32::MAX) + 1);
        let workers = if more_help { handler.user_runtime() } else { None };
        let helped = workers.filter(|workers| state.helpers < workers.metrics().num_workers()).cloned();
        state.helpers += usize::from(helped.is_some());
        state.expected += expected;
        state.queue.push_back(QueueEntry { history, expected, handler });
        wake_holder(state);
        if let Some(workers) = helped {
            let helper = QueueHelper { io_loop: Arc::clone(self), runtime: workers.id() };
            drop(workers.spawn(helper.run()));
        }
    }

    /// Spawns a task on the workers of a user's runtime after the loop has polled everything that is ready, in one batch with
    /// others: waking a worker costs more than a small request. Called by a driver on the loop.
    pub(crate) fn hand_off(&self, workers: &Handle, task: RuntimeTask) {
        let mut state = self.lock();
        state.hand_offs.push((workers.clone(), task));
        if state.hand_offs.len() >= TASKS_PER_HAND_OFF {
            let tasks = std::mem::take(&mut state.hand_offs);
            drop(state);
            return spawn_all(tasks);
        }
        wake_holder(state);
    }

    /// Makes the current thread the holder of the I/O loop, until another thread takes over the loop.
    fn hold(&self, mut turn: u64) {
        let monitor = takeover::monitor();
        loop {
            let mut polled_reactor = false;
            self.runtime.block_on(std::future::poll_fn(|cx| self.poll_inside(&mut polled_reactor, cx)));
            let outside_since = Instant::now();
            let mut now = outside_since;
            while let Some(QueueEntry { history, handler, .. }) = self.pop_front() {
                // The handler's own panics are caught by its task; a panic around it must not end the loop.
                if !history.is_quick() || !monitor.try_begin_poll(now) {
                    let _ = call_catching_panics(|| handler.spawn());
                    continue;
                }
                turn += 1;
                self.poll.begin(turn, &history);
                let _ = call_catching_panics(|| handler.poll_on_io_loop());
                if !self.poll.end(turn) {
                    return;
                }
                monitor.end_poll();
                now = Instant::now();
                if now - outside_since >= MAX_TIME_OUTSIDE || monitor.is_alert() {
                    break;
                }
            }
        }
    }

    /// The future that the holder drives inside: ready when there are handlers to poll. The future that the holder
    /// passes to `block_on` is pending once in each round, because a tokio runtime polls its descriptors only while
    /// that future is pending.
    fn poll_inside(&self, polled_reactor: &mut bool, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        let wakes = std::mem::take(&mut state.wakes);
        let hand_offs = std::mem::take(&mut state.hand_offs);
        let (has_handlers, first) = (!state.queue.is_empty(), !std::mem::replace(polled_reactor, true));
        let leave = has_handlers && !first;
        if leave {
            state.holder = None;
        } else if !state.holder.as_ref().is_some_and(|holder| holder.will_wake(cx.waker())) {
            state.holder = Some(cx.waker().clone());
        }
        drop(state);
        wakes.into_iter().for_each(Waker::wake);
        spawn_all(hand_offs);
        if leave {
            return Poll::Ready(());
        }
        if has_handlers {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn pop_front(&self) -> Option<QueueEntry> {
        let mut state = self.lock();
        let entry = state.queue.pop_front()?;
        state.expected = state.expected.saturating_sub(entry.expected);
        Some(entry)
    }

    fn lock(&self) -> MutexGuard<'_, IoLoopState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_holder(mut state: MutexGuard<'_, IoLoopState>) {
    let holder = state.holder.take();
    drop(state);
    if let Some(holder) = holder {
        holder.wake();
    }
}

/// Spawns tasks on the workers of their runtimes: one task spawns the others there, so that one worker is woken.
fn spawn_all(tasks: Vec<(Handle, RuntimeTask)>) {
    let mut tasks = tasks.into_iter().peekable();
    while let Some((workers, task)) = tasks.next() {
        let mut others = Vec::new();
        while let Some((_, other)) = tasks.next_if(|(next, _)| next.id() == workers.id()) {
            others.push(other);
        }
        if others.is_empty() {
            drop(workers.spawn(task));
            continue;
        }
        drop(workers.spawn(async move {
            for task in std::iter::once(task).chain(others) {
                drop(tokio::spawn(task));
            }
        }));
    }
}

/// A task on the workers that polls handlers of the queue of an I/O loop, from its end, while the queue is long.
struct QueueHelper {
    io_loop: Arc<IoLoop>,
    /// The runtime of the workers.
    runtime: Id,
}

impl QueueHelper {
    async fn run(self) {
        while let Some(entry) = self.pop_back() {
            entry.handler.poll_on_worker();
            tokio::task::yield_now().await;
        }
    }

    fn pop_back(&self) -> Option<QueueEntry> {
        let mut state = self.io_loop.lock();
        if state.expected <= HELP_ABOVE {
            return None;
        }
        // Programs may have several runtimes, and a handler is polled in its own.
        let workers = state.queue.back()?.handler.user_runtime();
        if workers.is_none_or(|workers| workers.id() != self.runtime) {
            return None;
        }
        let entry = state.queue.pop_back()?;
        state.expected = state.expected.saturating_sub(entry.expected);
        Some(entry)
    }
}

impl Drop for QueueHelper {
    fn drop(&mut self) {
        self.io_loop.lock().helpers -= 1;
    }
}

/// Spawns a task where handlers cannot delay it: on the I/O loop of the runtime. Without tokio, as in a simulator, it is spawned
/// on the runtime.
#[cfg(feature = "http")]
pub(crate) fn spawn_off_workers(runtime: &dyn Runtime, task: impl Future<Output = ()> + Send + 'static) {
    match runtime.as_tokio().and_then(|tokio| tokio.io_handle().ok()) {
        Some(handle) => drop(handle.spawn(task)),
        None => runtime.spawn(Box::pin(task)),
    }
}

#[cfg(test)]
mod tests;
