//! SIGTERM and SIGINT: the first begins a shutdown, the second ends the process.

use std::io;

use tokio::runtime::Handle;

/// Listens on the thread of the drivers, which no handler can block. `begin` begins a shutdown, and says whether there was
/// anything to shut down.
pub(crate) fn listen(io: &Handle, begin: impl FnOnce() -> bool + Send + 'static) -> io::Result<()> {
    let _inside = io.enter();
    let mut signals = Signals::new()?;
    io.spawn(async move {
        let mut code = signals.next().await;
        // If nothing is served any more, there is nothing to shut down first.
        if begin() {
            code = signals.next().await;
        }
        std::process::exit(code);
    });
    Ok(())
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The code of a process that the signal ended, as shells have it.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> i32 {
        // If the system offers no such signal, there is none to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        130
    }
}
