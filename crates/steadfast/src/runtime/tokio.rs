//! The shell's surroundings in earnest: handlers on the workers of the tokio runtime that serves, plain functions on
//! threads of ours, time from the system.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_proto::Moment;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::threads::Threads;
use super::watchdog::{Watch, Watchdog};
use super::{Runtime, Task, Timer};

/// A tokio runtime for handlers. Cheap to clone.
#[derive(Clone)]
pub struct TokioRuntime {
    handle: Handle,
    origin: Instant,
    threads: Threads,
    watchdog: Arc<Watchdog>,
}

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
        let watchdog = Watchdog::start(handle.clone());
        Self { handle, origin: Instant::now(), threads: Threads::default(), watchdog }
    }

    /// With at most this many threads for plain functions, 256 unless told.
    pub fn with_blocking_threads(mut self, most: usize) -> Self {
        self.threads = Threads::new(most);
        self
    }

    pub(super) fn spawn_task<F: Future<Output = ()> + Send + 'static>(&self, task: F) {
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

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.threads.run(job);
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn tokio(&self) -> Option<&TokioRuntime> {
        Some(self)
    }
}

/// A timer that is registered with whichever runtime polls it.
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
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(instant.into())));
        std::task::ready!(sleep.as_mut().poll(cx));
        self.when = None;
        Poll::Ready(())
    }
}
