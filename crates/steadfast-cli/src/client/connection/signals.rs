//! Waits for Ctrl-C, SIGTERM and SIGHUP. Signals are recorded from the creation of [`InterruptSignals`] on: no signal
//! between two waits is lost.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// The signal that interrupted the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptSignal {
    /// SIGINT, usually Ctrl-C.
    CtrlC,
    /// SIGTERM, sent by `timeout` or a supervisor.
    #[cfg(unix)]
    Terminate,
    /// SIGHUP: the terminal was closed.
    #[cfg(unix)]
    HangUp,
}

impl InterruptSignal {
    /// The exit code that shells use for a program ended by this signal: 128 + the signal's number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::CtrlC => 130,
            #[cfg(unix)]
            Self::Terminate => 143,
            #[cfg(unix)]
            Self::HangUp => 129,
        }
    }
}

#[cfg(unix)]
pub(crate) struct InterruptSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl InterruptSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Completes at the next SIGINT, SIGTERM or SIGHUP.
    pub(crate) async fn next(&mut self) -> InterruptSignal {
        tokio::select! {
            biased;
            Some(()) = self.interrupt.recv() => InterruptSignal::CtrlC,
            Some(()) = self.terminate.recv() => InterruptSignal::Terminate,
            Some(()) = self.hang_up.recv() => InterruptSignal::HangUp,
            else => std::future::pending().await,
        }
    }
}

#[cfg(windows)]
pub(crate) struct InterruptSignals {
    interrupt: CtrlC,
}

#[cfg(windows)]
impl InterruptSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()? })
    }

    /// Completes at the next Ctrl-C.
    pub(crate) async fn next(&mut self) -> InterruptSignal {
        if self.interrupt.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        InterruptSignal::CtrlC
    }
}
