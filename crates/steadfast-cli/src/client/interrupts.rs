//! Ctrl-C and its relatives, heard from the moment on that this is made: none that comes between two waits is lost.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlC, ctrl_c};

/// How the user gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C
    Typed,
    /// SIGTERM: `timeout`, or a supervisor.
    #[cfg(unix)]
    Terminated,
    /// SIGHUP: the terminal is gone.
    #[cfg(unix)]
    HungUp,
}

impl Interrupt {
    /// As shells say it of a program that a signal ended.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Typed => 130,
            #[cfg(unix)]
            Self::Terminated => 143,
            #[cfg(unix)]
            Self::HungUp => 129,
        }
    }
}

#[cfg(unix)]
pub(super) struct Interrupts {
    typed: Signal,
    terminated: Signal,
    hung_up: Signal,
}

#[cfg(unix)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            typed: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
        })
    }

    /// Completes at the next of them.
    pub(super) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            biased;
            Some(()) = self.typed.recv() => Interrupt::Typed,
            Some(()) = self.terminated.recv() => Interrupt::Terminated,
            Some(()) = self.hung_up.recv() => Interrupt::HungUp,
            else => std::future::pending().await,
        }
    }
}

#[cfg(windows)]
pub(super) struct Interrupts {
    typed: CtrlC,
}

#[cfg(windows)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { typed: ctrl_c()? })
    }

    /// Completes at the next Ctrl-C.
    pub(super) async fn next(&mut self) -> Interrupt {
        if self.typed.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        Interrupt::Typed
    }
}
