//! SIGTERM and SIGINT: the first signal starts a graceful shutdown, the second signal ends the process.

use std::io;

use tokio::runtime::Handle;

/// Listens to SIGTERM and SIGINT on an I/O loop, which no handler can block. `shut_down` starts a shutdown, and
/// returns whether there was anything to shut down.
pub(crate) fn listen(io: &Handle, shut_down: impl FnOnce() -> bool + Send + 'static) -> io::Result<()> {
    let _inside = io.enter();
    let mut signals = ProcessShutdownSignals::new()?;
    io.spawn(async move {
        let mut code = signals.next().await;
        // If nothing is served any more, exit immediately.
        if shut_down() {
            code = signals.next().await;
        }
        std::process::exit(code);
    });
    Ok(())
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
