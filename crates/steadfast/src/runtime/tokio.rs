//! The [`Runtime`] for programs, which runs `async` handlers on the workers of a tokio runtime and plain functions on
//! threads of the library, and takes the time from the system clock.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use steadfast_proto::Moment;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::threads::blocking_pool::{BlockingPool, WeakBlockingPool};
use super::threads::io_loop::{self, IoLoop};
use super::threads::watchdog::{HandlerPollGuard, WorkerWatchdog};
use super::{Runtime, RuntimeTask, Timer};

/// A tokio runtime on which a server or client runs its handlers. Cheap to clone.
///
/// All connections that are served in one tokio runtime share one watchdog thread, which looks for workers that a handler
/// blocks, and one pool of threads for handlers that are plain functions.
#[derive(Clone)]
pub struct TokioRuntime {
    handle: Handle,
    origin: Instant,
    blocking_pool: BlockingPool,
    watchdog: Arc<WorkerWatchdog>,
    shutdown_flag: Arc<RuntimeShutdownFlag>,
    /// The I/O loop of the connections that have this runtime; `None` if they run elsewhere, or change their thread.
    io_loop: Option<Arc<IoLoop>>,
}

/// What the connections in one tokio runtime share, for as long as one of them exists.
struct WeakRuntimeResources {
    id: Id,
    blocking_pool: WeakBlockingPool,
    watchdog: Weak<WorkerWatchdog>,
    shutdown_flag: Weak<RuntimeShutdownFlag>,
}

static SHARED: Mutex<Vec<WeakRuntimeResources>> = Mutex::new(Vec::new());

/// The time origin of all runtimes of the process: connections that share state have to agree on the time.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl TokioRuntime {
    /// Returns the tokio runtime that this is called in.
    ///
    /// # Errors
    ///
    /// Returns an error when called outside of a tokio runtime.
    pub fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
        Handle::try_current().map(Self::new)
    }

    /// Uses the tokio runtime with this handle.
    pub fn new(handle: Handle) -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|shared| shared.watchdog.strong_count() > 0);
        let known = shared.iter().find(|shared| shared.id == handle.id());
        let known = known.and_then(|known| {
            Some((known.blocking_pool.upgrade()?, known.watchdog.upgrade()?, known.shutdown_flag.upgrade()?))
        });
        let (blocking_pool, watchdog, shutdown_flag) = known.unwrap_or_else(|| {
            let (blocking_pool, watchdog) = (BlockingPool::default(), WorkerWatchdog::start(handle.clone()));
            let shutdown_flag = RuntimeShutdownFlag::of(&handle);
            shared.push(WeakRuntimeResources {
                id: handle.id(),
                blocking_pool: blocking_pool.downgrade(),
                watchdog: Arc::downgrade(&watchdog),
                shutdown_flag: Arc::downgrade(&shutdown_flag),
            });
            (blocking_pool, watchdog, shutdown_flag)
        });
        drop(shared);
        Self { handle, origin: *ORIGIN, blocking_pool, watchdog, shutdown_flag, io_loop: None }
    }

    /// Gives this `TokioRuntime` a pool of its own with at most `max_threads` threads for handlers that are plain
    /// functions. By default, all connections in one tokio runtime share a pool of at most 256 threads for such
    /// handlers.
    pub fn with_blocking_threads(mut self, max_threads: usize) -> Self {
        self.blocking_pool = BlockingPool::new(max_threads);
        self
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns a clone of this tokio runtime for connections that stay on the I/O loop `io_loop`.
    pub(crate) fn on_io_loop(&self, io_loop: &Arc<IoLoop>) -> Self {
        Self { io_loop: Some(Arc::clone(io_loop)), ..self.clone() }
    }

    /// The I/O loop of the connections that have this runtime, if they stay on one.
    pub(super) fn io_loop(&self) -> Option<&Arc<IoLoop>> {
        self.io_loop.as_ref()
    }

    /// The I/O loop for what must not wait for handlers.
    pub(crate) fn io_handle(&self) -> io::Result<Handle> {
        match &self.io_loop {
            Some(io_loop) => Ok(io_loop.handle().clone()),
            None => io_loop::main_handle(),
        }
    }

    /// Whether the runtime was shut down: futures could be polled in its context, but its timers would panic.
    pub(super) fn is_shut_down(&self) -> bool {
        self.shutdown_flag.is_set.load(Ordering::Relaxed)
    }

    /// Polls a future once on this thread, which is not one of the runtime's, in the context of the runtime. Nothing wakes the
    /// future afterwards: it has to be polled again.
    pub(super) fn poll_in_context<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        // `enter` would not be enough: with it, a nested `block_on` would work here and panic on a worker.
        self.handle.block_on(std::future::poll_fn(|_| {
            Poll::Ready(Pin::new(&mut *future).poll(&mut Context::from_waker(Waker::noop())))
        }))
    }

    pub(super) fn spawn_task<F: Future<Output = ()> + Send + 'static>(&self, task: F) {
        drop(self.handle.spawn(task));
    }

    /// Has the watchdog watch a poll of a handler, until the guard is dropped.
    pub(super) fn watch_poll(&self) -> HandlerPollGuard<'_> {
        self.watchdog.watch_poll()
    }

    fn instant(&self, moment: Moment) -> Instant {
        let far_future = || self.origin + std::time::Duration::from_secs(365 * 24 * 60 * 60);
        self.origin.checked_add(moment.since_origin()).unwrap_or_else(far_future)
    }
}

impl std::fmt::Debug for TokioRuntime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokioRuntime").finish_non_exhaustive()
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Moment {
        Moment::after_origin(self.origin.elapsed())
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(TokioRuntimeTimer { runtime: self.clone(), when: None, sleep: None, sleep_end: None })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.spawn_task(task);
    }

    fn spawn_io(&self, task: RuntimeTask) {
        match self.io_handle() {
            Ok(io) => drop(io.spawn(task)),
            Err(_) => self.spawn_task(task),
        }
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.blocking_pool.run(job);
    }
}

/// The time since the origin of the process's clock.
pub(super) fn since_origin() -> Duration {
    ORIGIN.elapsed()
}

/// A moment in nanoseconds since the origin of the process's clock.
pub(super) fn nanos_since_origin(instant: Instant) -> u64 {
    u64::try_from(instant.saturating_duration_since(*ORIGIN).as_nanos()).unwrap_or(u64::MAX)
}

/// Set when a tokio runtime shuts down, which drops a task that exists as long as this flag.
struct RuntimeShutdownFlag {
    is_set: Arc<AtomicBool>,
    _ends_task: oneshot::Sender<()>,
}

impl RuntimeShutdownFlag {
    fn of(runtime: &Handle) -> Arc<Self> {
        struct SetOnDrop(Arc<AtomicBool>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let is_set = Arc::new(AtomicBool::new(false));
        let guard = SetOnDrop(Arc::clone(&is_set));
        let (ends_task, end) = oneshot::channel();
        drop(runtime.spawn(async move {
            let _guard = guard;
            // An error: the sender was dropped.
            let _ = end.await;
        }));
        Arc::new(Self { is_set, _ends_task: ends_task })
    }
}

/// A timer of an I/O loop, whichever thread polls it.
///
/// A sleep that ends before the time of the timer is left as it is, and begins again when it ends: the deadline of a connection
/// changes with each request, mostly to a later one, and each change of a sleep costs as much as a part of the request.
struct TokioRuntimeTimer {
    runtime: TokioRuntime,
    when: Option<Moment>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When `sleep` ends; `None` if it has ended.
    sleep_end: Option<Moment>,
}

impl Timer for TokioRuntimeTimer {
    fn reset(&mut self, when: Option<Moment>) {
        self.when = when;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(when) = self.when else { return Poll::Pending };
        loop {
            if let (Some(sleep), Some(end)) = (&mut self.sleep, self.sleep_end.filter(|end| *end <= when)) {
                std::task::ready!(sleep.as_mut().poll(cx));
                self.sleep_end = None;
                if end == when {
                    self.when = None;
                    return Poll::Ready(());
                }
            }
            let instant = self.runtime.instant(when).into();
            if let Some(sleep) = &mut self.sleep {
                sleep.as_mut().reset(instant);
            } else {
                // I/O loops have timers; the user's runtime may have been built without.
                let io_handle = self.runtime.io_handle();
                let _context = io_handle.as_ref().map(Handle::enter);
                self.sleep = Some(Box::pin(tokio::time::sleep_until(instant)));
            }
            self.sleep_end = Some(when);
        }
    }
}
