//! The writing half of a transport that is made of two: by readiness where the system has it, by a thread elsewhere.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

#[cfg(unix)]
use tokio::io::Interest;

#[cfg(unix)]
use super::descriptors::{self, DescriptorKind, PipeEnd};
#[cfg(unix)]
use super::pump;
#[cfg(unix)]
use super::readiness::{Kind, WatchedDescriptor};
use crate::transport::memory::channel::Sender;

/// Bytes to a peer, and the news that nobody reads them.
#[derive(Debug)]
pub(crate) enum Output {
    #[cfg(unix)]
    Watched(WatchedDescriptor),
    Thread {
        sender: Sender,
        reported: bool,
    },
}

impl Output {
    /// Writes to a descriptor that others may share, whatever it is.
    #[cfg(unix)]
    pub(crate) fn shared(descriptor: OwnedFd) -> io::Result<Self> {
        match descriptors::nature(&descriptor)? {
            DescriptorKind::Socket => {
                return Ok(Self::Watched(WatchedDescriptor::new(descriptor, Kind::Socket, Interest::WRITABLE)));
            }
            DescriptorKind::Pipe => {
                if let Ok(own) = descriptors::reopen_pipe(&descriptor, PipeEnd::Writing) {
                    descriptors::widen(&own);
                    return Ok(Self::Watched(WatchedDescriptor::new(own, Kind::Pipe, Interest::WRITABLE)));
                }
            }
            DescriptorKind::Other => {}
        }
        Ok(Self::thread(pump::writer(descriptor)?))
    }

    /// Writes to a pipe whose writing end nobody else has.
    #[cfg(unix)]
    pub(crate) fn own_pipe(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self::Watched(WatchedDescriptor::new(pipe, Kind::Pipe, Interest::WRITABLE)))
    }

    /// Hands bytes to a thread.
    pub(crate) fn thread(sender: Sender) -> Self {
        Self::Thread { sender, reported: false }
    }

    /// See [`Transport::leave_runtime`](crate::transport::Transport::leave_runtime). A thread is in none.
    pub(crate) fn leave_runtime(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.leave_runtime(),
            Self::Thread { .. } => {}
        }
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.poll_write(cx, buf),
            Self::Thread { sender, .. } => sender.poll_write(cx, buf),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // A write that was taken is in the system's hands.
            #[cfg(unix)]
            Self::Watched(_) => {
                let _ = cx;
                Poll::Ready(Ok(()))
            }
            Self::Thread { sender, .. } => sender.poll_drained(cx),
        }
    }

    /// Completes once, when nobody reads any more.
    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.poll_output_hangup(cx),
            Self::Thread { reported: true, .. } => Poll::Pending,
            Self::Thread { sender, reported } => {
                let hangup = sender.poll_gone(cx);
                *reported = hangup.is_ready();
                hangup
            }
        }
    }

    /// Ends the stream; with a thread, completes when everything is written and the descriptor is closed.
    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => Poll::Ready(watched.close_output()),
            Self::Thread { sender, reported } => {
                *reported = true;
                sender.close();
                match sender.poll_gone(cx) {
                    Poll::Ready(()) => sender.poll_drained(cx),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}
