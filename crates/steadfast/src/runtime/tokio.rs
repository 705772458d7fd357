//! The shell's surroundings in earnest: handlers on the workers of the tokio runtime that serves, plain functions on
//! threads of ours, time from the system.

use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_proto::Moment;
use tokio::runtime::{Handle, Id};
use tokio::time::Sleep;

use super::threads::blocking_pool::{Threads, WeakThreads};
use super::threads::watchdog::{Watch, Watchdog};
use super::{Runtime, Task, Timer};

/// A tokio runtime for handlers. Cheap to clone.
///
/// What it needs beside tokio, a thread that watches over the workers and the threads for plain functions, is shared by all
/// connections that are served in one tokio runtime.
#[derive(Clone)]
pub struct TokioRuntime {
    handle: Handle,
    origin: Instant,
    threads: Threads,
    watchdog: Arc<Watchdog>,
}

/// What connections in one tokio runtime share, for as long as one of them lives.
struct Shared {
    id: Id,
    threads: WeakThreads,
    watchdog: Weak<Watchdog>,
}

static SHARED: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

/// One for the process: connections that share something have to agree on what time it is.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl TokioRuntime {
    /// The runtime that this is called in.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
        Handle::try_current().map(Self::new)
    }

    /// That runtime.
    pub fn new(handle: Handle) -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|shared| shared.watchdog.strong_count() > 0);
        let known = shared.iter().find(|shared| shared.id == handle.id());
        let known = known.and_then(|known| Some((known.threads.upgrade()?, known.watchdog.upgrade()?)));
        let (threads, watchdog) = known.unwrap_or_else(|| {
            let (threads, watchdog) = (Threads::default(), Watchdog::start(handle.clone()));
            let (id, weak) = (handle.id(), threads.downgrade());
            shared.push(Shared { id, threads: weak, watchdog: Arc::downgrade(&watchdog) });
            (threads, watchdog)
        });
        drop(shared);
        Self { handle, origin: *ORIGIN, threads, watchdog }
    }

    /// With at most this many threads for plain functions, of its own; 256 that are shared unless told.
    pub fn with_blocking_threads(mut self, most: usize) -> Self {
        self.threads = Threads::new(most);
        self
    }

    /// The tokio runtime itself.
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

    /// To be held while a handler is polled.
    pub(super) fn watch(&self) -> Watch<'_> {
        self.watchdog.watch()
    }

    fn instant(&self, moment: Moment) -> Instant {
        let far = || self.origin + std::time::Duration::from_secs(365 * 24 * 60 * 60);
        self.origin.checked_add(moment.since_origin()).unwrap_or_else(far)
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
        Box::new(TokioTimer { runtime: self.clone(), when: None, sleep: None })
    }

    fn spawn(&self, task: Task) {
        self.spawn_task(task);
    }

    fn spawn_io(&self, task: Task) {
        match super::threads::io_thread::handle() {
            Ok(io) => drop(io.spawn(task)),
            Err(_) => self.spawn_task(task),
        }
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.threads.run(job);
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }
}

/// Whether this thread has timers of its own, and nobody but us uses it.
fn has_timers() -> bool {
    #[cfg(feature = "http")]
    return super::threads::http_threads::is_here();
    #[cfg(not(feature = "http"))]
    return false;
}

/// A timer of the drivers' thread, whoever polls it; on a carrier of HTTP, one of its own.
struct TokioTimer {
    runtime: TokioRuntime,
    when: Option<Moment>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer for TokioTimer {
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
            // The thread of the drivers has timers, whatever the runtime of the handlers has.
            let _inside = (!has_timers()).then(|| super::threads::io_thread::handle().map(Handle::enter));
            Box::pin(tokio::time::sleep_until(instant.into()))
        });
        std::task::ready!(sleep.as_mut().poll(cx));
        self.when = None;
        Poll::Ready(())
    }
}
