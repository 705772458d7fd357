//! The writing half of a transport: writes by readiness events where the system supports them, and with a thread
//! elsewhere.

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
use super::readiness::{AsyncDescriptor, NonblockingIoKind};
use crate::transport::memory::channel::ByteSender;

/// Writes bytes to a peer, and notices that the peer does not read any more.
#[derive(Debug)]
pub(crate) enum TransportWriteHalf {
    #[cfg(unix)]
    Watched(AsyncDescriptor),
    Thread {
        sender: ByteSender,
        reported: bool,
    },
}

impl TransportWriteHalf {
    /// Writes to a descriptor of any kind, which other processes may share.
    #[cfg(unix)]
    pub(crate) fn shared(descriptor: OwnedFd) -> io::Result<Self> {
        match descriptors::kind_of(&descriptor)? {
            DescriptorKind::Socket => {
                return Ok(Self::Watched(AsyncDescriptor::new(
                    descriptor,
                    NonblockingIoKind::Socket,
                    Interest::WRITABLE,
                )));
            }
            DescriptorKind::Pipe => {
                if let Ok(own) = descriptors::reopen_pipe(&descriptor, PipeEnd::Writing) {
                    descriptors::enlarge_pipe_buffer(&own);
                    return Ok(Self::Watched(AsyncDescriptor::new(own, NonblockingIoKind::Pipe, Interest::WRITABLE)));
                }
            }
            DescriptorKind::Other => {}
        }
        Ok(Self::thread(pump::writer(descriptor)?))
    }

    /// Writes to a pipe whose writing end no other process shares, so it can be made non-blocking.
    #[cfg(unix)]
    pub(crate) fn own_pipe(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self::Watched(AsyncDescriptor::new(pipe, NonblockingIoKind::Pipe, Interest::WRITABLE)))
    }

    /// Sends bytes to a thread that writes them to a descriptor.
    pub(crate) fn thread(sender: ByteSender) -> Self {
        Self::Thread { sender, reported: false }
    }

    /// See [`Transport::leave_runtime`](crate::transport::Transport::leave_runtime). A writing half with a thread is
    /// not registered with any runtime.
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
            // Bytes that the system has accepted are flushed.
            #[cfg(unix)]
            Self::Watched(_) => {
                let _ = cx;
                Poll::Ready(Ok(()))
            }
            Self::Thread { sender, .. } => sender.poll_drained(cx),
        }
    }

    /// Completes once, when the peer does not read any more.
    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.poll_output_hangup(cx),
            Self::Thread { reported: true, .. } => Poll::Pending,
            Self::Thread { sender, reported } => {
                let hangup = sender.poll_receiver_dropped(cx);
                *reported = hangup.is_ready();
                hangup
            }
        }
    }

    /// Closes the output; if a thread writes it, completes when everything is written and the descriptor is closed.
    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => Poll::Ready(watched.close_output()),
            Self::Thread { sender, reported } => {
                *reported = true;
                sender.close();
                match sender.poll_receiver_dropped(cx) {
                    Poll::Ready(()) => sender.poll_drained(cx),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}
