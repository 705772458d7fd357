//! SIGTERM and SIGINT: a signal shuts down everything that the process serves. A signal that finds nothing to shut down, as the
//! second one does, ends the process.
//!
//! The process has one listener, however often it serves: a listener of a server that has ended would end the process, and with it
//! the shutdown of the servers that still run.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

/// Begins the shutdown of one server, and returns whether there was anything to shut down.
type ShutDown = Box<dyn FnOnce() -> bool + Send>;

/// What the process serves, for its one listener.
static SERVED: Mutex<ServedList> = Mutex::new(ServedList { listening: false, next: 0, shut_downs: Vec::new() });

struct ServedList {
    /// The listener runs.
    listening: bool,
    next: u64,
    /// Servers that no signal has shut down yet.
    shut_downs: Vec<(u64, ShutDown)>,
}

/// Has SIGTERM and SIGINT call `shut_down`, until the returned guard is dropped. `shut_down` starts a shutdown, and returns
/// whether there was anything to shut down.
///
/// The listener runs on the main I/O loop, whose handle is `io`: no handler can block it.
pub(crate) fn listen(io: &Handle, shut_down: impl FnOnce() -> bool + Send + 'static) -> io::Result<SignalGuard> {
    let mut served = lock();
    if !served.listening {
        let _inside = io.enter();
        let signals = ProcessShutdownSignals::new()?;
        io.spawn(run(signals));
        served.listening = true;
    }
    let number = served.next;
    served.next += 1;
    served.shut_downs.push((number, Box::new(shut_down)));
    Ok(SignalGuard(number))
}

/// While this guard exists, signals shut down its server.
pub(crate) struct SignalGuard(u64);

impl Drop for SignalGuard {
    fn drop(&mut self) {
        let mut served = lock();
        let position = served.shut_downs.iter().position(|(number, _)| *number == self.0);
        let removed = position.map(|position| served.shut_downs.swap_remove(position));
        drop(served);
        drop(removed);
    }
}

async fn run(mut signals: ProcessShutdownSignals) {
    loop {
        let code = signals.next().await;
        let shut_downs = std::mem::take(&mut lock().shut_downs);
        // All of them are called.
        if !shut_downs.into_iter().fold(false, |any, (_, shut_down)| shut_down() || any) {
            std::process::exit(code);
        }
    }
}

fn lock() -> MutexGuard<'static, ServedList> {
    SERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
struct ProcessShutdownSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ProcessShutdownSignals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal, and returns the exit code that shells use for a process that was ended by that
    /// signal.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }
}

#[cfg(not(unix))]
struct ProcessShutdownSignals;

#[cfg(not(unix))]
impl ProcessShutdownSignals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> i32 {
        // If the system does not support the signal, wait forever.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        130
    }
}
