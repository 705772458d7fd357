//! Keeps a handler that blocks its worker from stalling the other handlers.
//!
//! On tokio's multi-threaded runtime, timers and I/O are served by the worker that went to sleep last. If that worker wakes
//! for a handler, and the handler blocks, nobody serves them: the other workers sleep on, and every handler that waits for
//! a timer waits with them. While a poll of a handler lasts, a thread of ours gives the runtime an empty task every few
//! milliseconds: it wakes a worker that is free, which then takes over what the blocked one holds.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a poll may last before it is taken for blocked.
const PATIENCE: Duration = Duration::from_millis(5);

/// One for each runtime that serves.
pub(crate) struct Watchdog {
    /// Polls of handlers that are under way.
    inside: AtomicUsize,
    /// The thread is awake, and will look.
    awake: AtomicBool,
    /// An empty task is on its way.
    nudged: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Watchdog {
    pub(crate) fn start(handle: Handle) -> Arc<Self> {
        let dog = Arc::new(Self {
            inside: AtomicUsize::new(0),
            awake: AtomicBool::new(false),
            nudged: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        // With one thread there is no other worker to wake.
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            let weak = Arc::downgrade(&dog);
            let thread =
                std::thread::Builder::new().name("steadfast-watch".to_owned()).spawn(move || run(&weak, &handle));
            if let Ok(thread) = thread {
                // Set once, here.
                let _ = dog.thread.set(thread.thread().clone());
            }
        }
        dog
    }

    /// To be held while a handler is polled.
    pub(crate) fn watch(&self) -> Watch<'_> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        if !self.awake.load(Ordering::SeqCst)
            && !self.awake.swap(true, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
        Watch(self)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// A poll of a handler that is under way.
pub(crate) struct Watch<'a>(&'a Watchdog);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

fn run(dog: &Weak<Watchdog>, handle: &Handle) {
    loop {
        let Some(watchdog) = dog.upgrade() else { return };
        if watchdog.inside.load(Ordering::SeqCst) == 0 {
            watchdog.awake.store(false, Ordering::SeqCst);
            // A poll that began before the line above saw us awake, and did not wake us.
            let began = watchdog.inside.load(Ordering::SeqCst) != 0;
            drop(watchdog);
            if !began {
                std::thread::park();
                continue;
            }
        } else {
            drop(watchdog);
        }
        std::thread::sleep(PATIENCE);
        let Some(watchdog) = dog.upgrade() else { return };
        // While all workers are blocked, one that waits for them is enough.
        if watchdog.inside.load(Ordering::SeqCst) != 0 && !watchdog.nudged.swap(true, Ordering::SeqCst) {
            drop(handle.spawn(async move { watchdog.nudged.store(false, Ordering::SeqCst) }));
        }
    }
}
