//! Ends a process that no longer answers, so that the bench ends with a message instead of waiting for ever.
//!
//! It watches from a thread of its own: the measured exchange pays nothing for it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// As long as this lives its process is killed once the time is over. The process must not be waited for before this
/// is dropped: its number could be another's by then.
pub(crate) struct Watchdog {
    fired: Arc<AtomicBool>,
    released: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn over(process: Pid, time: Duration) -> Self {
        let (released, release) = channel::<()>();
        let fired = Arc::new(AtomicBool::new(false));
        let fires = Arc::clone(&fired);
        let thread = std::thread::spawn(move || {
            if release.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                fires.store(true, Ordering::Release);
                // It may have ended by itself just now, and then there is nothing left to do.
                let _ = kill(process, Signal::SIGKILL);
            }
        });
        Self { fired, released: Some(released), thread: Some(thread) }
    }

    /// Whether the time ran out.
    pub(crate) fn fired(&self) -> bool {
        self.fired.load(Ordering::Acquire)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.released.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
