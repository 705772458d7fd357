//! SIGTERM and SIGINT: the first begins a shutdown, the second ends the process.

use std::io;
use std::sync::Weak;

use tokio::runtime::Handle;

use crate::runtime::{Letter, Mailbox};

/// Listens on the thread of the drivers, which no handler can block.
pub(super) fn listen(io: &Handle, mailbox: Weak<Mailbox>) -> io::Result<()> {
    let _inside = io.enter();
    let mut signals = Signals::new()?;
    io.spawn(async move {
        signals.next().await;
        if let Some(mailbox) = mailbox.upgrade() {
            // If the connection is closed, the process is about to end.
            let _ = mailbox.post(Letter::ShutDown { at_once: false });
        }
        signals.next().await;
        // As a process that a signal ended.
        std::process::exit(130);
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

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
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

    async fn next(&mut self) {
        // If the system offers no such signal, there is none to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
