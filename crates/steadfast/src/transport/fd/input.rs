//! The reading half of a transport: reads by readiness events where the system supports them, and with a thread
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
use crate::transport::memory::channel::ByteReceiver;

/// Reads the bytes of a peer, and notices that the peer has closed its sending end.
#[derive(Debug)]
pub(crate) enum TransportReadHalf {
    #[cfg(unix)]
    Watched(AsyncDescriptor),
    Thread {
        receiver: ByteReceiver,
        reported: bool,
    },
}

impl TransportReadHalf {
    /// Reads a descriptor of any kind, which other processes may share.
    #[cfg(unix)]
    pub(crate) fn shared(descriptor: OwnedFd) -> io::Result<Self> {
        match descriptors::kind_of(&descriptor)? {
            DescriptorKind::Socket => {
                return Ok(Self::Watched(AsyncDescriptor::new(
                    descriptor,
                    NonblockingIoKind::Socket,
                    Interest::READABLE,
                )));
            }
            DescriptorKind::Pipe => {
                if let Ok(own) = descriptors::reopen_pipe(&descriptor, PipeEnd::Reading) {
                    return Ok(Self::Watched(AsyncDescriptor::new(own, NonblockingIoKind::Pipe, Interest::READABLE)));
                }
            }
            DescriptorKind::Other => {}
        }
        Ok(Self::thread(pump::reader(descriptor)?))
    }

    /// Reads a pipe whose reading end no other process shares, so it can be made non-blocking.
    #[cfg(unix)]
    pub(crate) fn own_pipe(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self::Watched(AsyncDescriptor::new(pipe, NonblockingIoKind::Pipe, Interest::READABLE)))
    }

    /// Receives the bytes that a thread reads from a descriptor.
    pub(crate) fn thread(receiver: ByteReceiver) -> Self {
        Self::Thread { receiver, reported: false }
    }

    /// See [`Transport::leave_runtime`](crate::transport::Transport::leave_runtime). A reading half with a thread is
    /// not registered with any runtime.
    pub(crate) fn leave_runtime(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.leave_runtime(),
            Self::Thread { .. } => {}
        }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.poll_read(cx, buf),
            Self::Thread { receiver, .. } => receiver.poll_read(cx, buf),
        }
    }

    /// Makes the next read try at once, without waiting for a readiness event.
    pub(crate) fn skip_readiness(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.skip_readiness(),
            Self::Thread { .. } => {}
        }
    }

    /// Completes once, when the peer has closed its sending end.
    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.poll_input_hangup(cx),
            Self::Thread { reported: true, .. } => Poll::Pending,
            Self::Thread { receiver, reported } => {
                let hangup = receiver.poll_hangup(cx);
                *reported = hangup.is_ready();
                hangup
            }
        }
    }

    /// Returns the descriptor of this reading half; `None` if the descriptor is closed, or if a thread reads it.
    #[cfg(unix)]
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        match self {
            Self::Watched(watched) => watched.into_descriptor(),
            Self::Thread { .. } => None,
        }
    }
}
