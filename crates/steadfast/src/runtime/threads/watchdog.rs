//! Prevents a handler that blocks its worker from stalling the other handlers.
//!
//! On tokio's multi-threaded runtime, the worker that went to sleep last serves timers and I/O. If that worker wakes
//! up for a handler, and the handler blocks, no worker serves them: the others stay asleep, and so does every handler
//! that waits for a timer. So while a handler is polled, the watchdog thread of the library spawns an empty task on
//! the tokio runtime every few milliseconds. The empty task wakes an idle worker, which then takes over timers and
//! I/O.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// A poll of a handler that lasts longer than this counts as blocking its worker thread.
const BLOCKED_AFTER: Duration = Duration::from_millis(5);

/// The watchdog of one tokio runtime.
pub(crate) struct WorkerWatchdog {
    /// How many polls of handlers are in progress.
    polls: AtomicUsize,
    /// True while the watchdog thread is awake: it checks the number of handler polls in progress (`polls`) before it parks.
    awake: AtomicBool,
    /// An empty task was spawned to wake another worker, and has not run yet.
    wake_pending: AtomicBool,
    thread: OnceLock<Thread>,
}

impl WorkerWatchdog {
    pub(crate) fn start(handle: Handle) -> Arc<Self> {
        let watchdog = Arc::new(Self {
            polls: AtomicUsize::new(0),
            awake: AtomicBool::new(false),
            wake_pending: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        // With one thread there is no other worker to wake.
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            let weak = Arc::downgrade(&watchdog);
            let thread =
                std::thread::Builder::new().name("steadfast-watch".to_owned()).spawn(move || run(&weak, &handle));
            if let Ok(thread) = thread {
                // Set once, here.
                let _ = watchdog.thread.set(thread.thread().clone());
            }
        }
        watchdog
    }

    /// Watches a poll of a handler until the guard is dropped.
    pub(crate) fn watch_poll(&self) -> HandlerPollGuard<'_> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        if !self.awake.load(Ordering::SeqCst)
            && !self.awake.swap(true, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
        HandlerPollGuard(self)
    }
}

impl Drop for WorkerWatchdog {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Exists while a handler is polled.
pub(crate) struct HandlerPollGuard<'a>(&'a WorkerWatchdog);

impl Drop for HandlerPollGuard<'_> {
    fn drop(&mut self) {
        self.0.polls.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(weak: &Weak<WorkerWatchdog>, handle: &Handle) {
    loop {
        let Some(watchdog) = weak.upgrade() else { return };
        if watchdog.polls.load(Ordering::SeqCst) == 0 {
            watchdog.awake.store(false, Ordering::SeqCst);
            // A poll that started before the line above saw `awake` set, and did not unpark this thread.
            let started = watchdog.polls.load(Ordering::SeqCst) != 0;
            drop(watchdog);
            if !started {
                std::thread::park();
                continue;
            }
        } else {
            drop(watchdog);
        }
        std::thread::sleep(BLOCKED_AFTER);
        let Some(watchdog) = weak.upgrade() else { return };
        // While all workers are blocked, one empty task in their queue is enough.
        if watchdog.polls.load(Ordering::SeqCst) != 0 && !watchdog.wake_pending.swap(true, Ordering::SeqCst) {
            drop(handle.spawn(async move { watchdog.wake_pending.store(false, Ordering::SeqCst) }));
        }
    }
}
