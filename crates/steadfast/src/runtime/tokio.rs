//! The [`Runtime`] of programs: `async` handlers on the workers of a tokio runtime, plain functions on threads of the
//! library, time from the system clock.

use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_proto::Moment;
use tokio::runtime::{Handle, Id};
use tokio::time::Sleep;

use super::threads::blocking_pool::{BlockingPool, WeakBlockingPool};
use super::threads::watchdog::{HandlerPollGuard, WorkerWatchdog};
use super::{Runtime, RuntimeTask, Timer};

/// A tokio runtime for handlers. Cheap to clone.
///
/// All connections that are served in one tokio runtime share one watchdog thread, which looks for workers that a handler
/// blocks, and one pool of threads for handlers that are plain functions.
#[derive(Clone)]
pub struct TokioRuntime {
    handle: Handle,
    origin: Instant,
    blocking_pool: BlockingPool,
    watchdog: Arc<WorkerWatchdog>,
}

/// What the connections in one tokio runtime share, for as long as one of them exists.
struct WeakRuntimeResources {
    id: Id,
    blocking_pool: WeakBlockingPool,
    watchdog: Weak<WorkerWatchdog>,
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
        let known = known.and_then(|known| Some((known.blocking_pool.upgrade()?, known.watchdog.upgrade()?)));
        let (blocking_pool, watchdog) = known.unwrap_or_else(|| {
            let (blocking_pool, watchdog) = (BlockingPool::default(), WorkerWatchdog::start(handle.clone()));
            let (id, weak) = (handle.id(), blocking_pool.downgrade());
            shared.push(WeakRuntimeResources { id, blocking_pool: weak, watchdog: Arc::downgrade(&watchdog) });
            (blocking_pool, watchdog)
        });
        drop(shared);
        Self { handle, origin: *ORIGIN, blocking_pool, watchdog }
    }

    /// Gives this runtime a pool of its own with at most `max_threads` threads for handlers that are plain functions. By default
    /// it shares a pool of at most 256 threads.
    pub fn with_blocking_threads(mut self, max_threads: usize) -> Self {
        self.blocking_pool = BlockingPool::new(max_threads);
        self
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn spawn_task<F: Future<Output = ()> + Send + 'static>(&self, task: F) {
        #[cfg(feature = "http")]
        if super::threads::http_threads::is_here() {
            return super::threads::http_threads::start_soon(&self.handle, Box::pin(task));
        }
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
        Box::new(TokioRuntimeTimer { runtime: self.clone(), when: None, sleep: None })
    }

    fn spawn(&self, task: RuntimeTask) {
        self.spawn_task(task);
    }

    fn spawn_io(&self, task: RuntimeTask) {
        match super::threads::io_thread::handle() {
            Ok(io) => drop(io.spawn(task)),
            Err(_) => self.spawn_task(task),
        }
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.blocking_pool.run(job);
    }
}

/// Whether this is a thread of the library with timers of its own.
fn has_own_timers() -> bool {
    #[cfg(feature = "http")]
    return super::threads::http_threads::is_here();
    #[cfg(not(feature = "http"))]
    return false;
}

/// A timer of the I/O thread, whichever thread polls it; on an HTTP thread, a timer of that thread.
struct TokioRuntimeTimer {
    runtime: TokioRuntime,
    when: Option<Moment>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer for TokioRuntimeTimer {
    fn reset(&mut self, when: Option<Moment>) {
        if self.when == when {
            return;
        }
        self.when = when;
        if let (Some(when), Some(sleep)) = (when, &mut self.sleep) {
            let instant = self.runtime.instant(when);
            sleep.as_mut().reset(instant.into());
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(when) = self.when else { return Poll::Pending };
        let instant = self.runtime.instant(when);
        let sleep = self.sleep.get_or_insert_with(|| {
            // The I/O thread has timers; the user's runtime may have been built without.
            let _inside = (!has_own_timers()).then(|| super::threads::io_thread::handle().map(Handle::enter));
            Box::pin(tokio::time::sleep_until(instant.into()))
        });
        std::task::ready!(sleep.as_mut().poll(cx));
        self.when = None;
        Poll::Ready(())
    }
}
