//! The reading half of a transport that is made of two: by readiness where the system has it, by a thread elsewhere.

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
use crate::transport::memory::channel::Receiver;

/// Bytes from a peer, and the news that it will send no more.
#[derive(Debug)]
pub(crate) enum Input {
    #[cfg(unix)]
    Watched(WatchedDescriptor),
    Thread {
        receiver: Receiver,
        reported: bool,
    },
}

impl Input {
    /// Reads a descriptor that others may share, whatever it is.
    #[cfg(unix)]
    pub(crate) fn shared(descriptor: OwnedFd) -> io::Result<Self> {
        match descriptors::nature(&descriptor)? {
            DescriptorKind::Socket => {
                return Ok(Self::Watched(WatchedDescriptor::new(descriptor, Kind::Socket, Interest::READABLE)));
            }
            DescriptorKind::Pipe => {
                if let Ok(own) = descriptors::reopen_pipe(&descriptor, PipeEnd::Reading) {
                    return Ok(Self::Watched(WatchedDescriptor::new(own, Kind::Pipe, Interest::READABLE)));
                }
            }
            DescriptorKind::Other => {}
        }
        Ok(Self::thread(pump::reader(descriptor)?))
    }

    /// Reads a pipe whose reading end nobody else has.
    #[cfg(unix)]
    pub(crate) fn own_pipe(pipe: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self::Watched(WatchedDescriptor::new(pipe, Kind::Pipe, Interest::READABLE)))
    }

    /// Reads what a thread hands over.
    pub(crate) fn thread(receiver: Receiver) -> Self {
        Self::Thread { receiver, reported: false }
    }

    /// See [`Transport::leave_runtime`](crate::transport::Transport::leave_runtime). A thread is in none.
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

    /// Has the next read look for itself, where otherwise it would wait to be told that there is something.
    pub(crate) fn look_again(&mut self) {
        match self {
            #[cfg(unix)]
            Self::Watched(watched) => watched.look_again(),
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

    /// The descriptor, if this half still has one of its own.
    #[cfg(unix)]
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        match self {
            Self::Watched(watched) => watched.into_descriptor(),
            Self::Thread { .. } => None,
        }
    }
}
