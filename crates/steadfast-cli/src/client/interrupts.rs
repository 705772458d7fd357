//! Ctrl-C, heard from the moment on that this is made: none that comes between two waits is lost.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

pub(super) struct Interrupts {
    #[cfg(unix)]
    signals: Signal,
    #[cfg(windows)]
    signals: CtrlC,
}

impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        #[cfg(unix)]
        let signals = signal(SignalKind::interrupt())?;
        #[cfg(windows)]
        let signals = ctrl_c()?;
        Ok(Self { signals })
    }

    /// Completes at the next Ctrl-C.
    pub(super) async fn next(&mut self) {
        if self.signals.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
