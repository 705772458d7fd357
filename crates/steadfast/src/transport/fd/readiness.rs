//! A file descriptor whose readiness the tokio runtime watches, and whose hangups are noticed while nothing is read or
//! written.
//!
//! Each readiness event of the tokio runtime is copied into flags of `AsyncDescriptor` and cleared in the runtime. The
//! flags say for each direction whether a readiness event has arrived since the last attempt to read or write. A read
//! or write waits only if no readiness event has arrived since the last attempt, so waiting for a hangup while there
//! are unread bytes neither spins nor steals the reader's wakeup. The tokio runtime never clears the readiness flag of
//! a closed end, so a hangup is visible in spite of unread bytes or a full buffer.
//!
//! A read that fills only a part of its buffer counts as "no more bytes for now", as it does in tokio. That a partial
//! read has taken all bytes holds for every byte stream, but not for pipes in packet mode, which are not used for
//! protocols.
//!
//! An `AsyncDescriptor` never changes the flags of its file descriptor, such as `O_NONBLOCK`. A pipe has to be
//! non-blocking already. A socket may be blocking: each call on it has the flag `MSG_DONTWAIT`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendFlags, Shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use crate::transport::broken_pipe;

/// How a descriptor is read and written without blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonblockingIoKind {
    /// A non-blocking pipe whose open file description no other process shares.
    Pipe,
    /// A stream socket, blocking or not.
    Socket,
}

/// A file descriptor that is registered with the tokio runtime that polls it first.
#[derive(Debug)]
pub(crate) struct AsyncDescriptor {
    descriptor: DescriptorRegistration,
    kind: NonblockingIoKind,
    interest: Interest,
    input: DescriptorDirectionState,
    output: DescriptorDirectionState,
}

#[derive(Debug)]
enum DescriptorRegistration {
    /// The descriptor is not registered with a runtime yet.
    New(OwnedFd),
    Registered(AsyncFd<OwnedFd>),
    Closed,
}

/// The state of one direction of a descriptor: reading or writing.
#[derive(Debug, Default)]
struct DescriptorDirectionState {
    /// The last read or write left no more bytes or space, and no readiness event has arrived since.
    idle: bool,
    /// The peer has closed this direction. Never reset.
    closed: bool,
    /// The peer's hangup of this direction of the descriptor was reported, or this process has closed the direction
    /// itself.
    reported: bool,
}

#[derive(Clone, Copy)]
enum IoDirection {
    Input,
    Output,
}

impl AsyncDescriptor {
    /// Creates a descriptor that is not registered yet; `interest` names the directions that will be used.
    pub(crate) fn new(descriptor: OwnedFd, kind: NonblockingIoKind, interest: Interest) -> Self {
        Self {
            descriptor: DescriptorRegistration::New(descriptor),
            kind,
            interest,
            input: DescriptorDirectionState::default(),
            output: DescriptorDirectionState::default(),
        }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if !self.input.idle {
                match self.try_read(buf) {
                    Ok(count) => {
                        self.input.idle = 0 < count && count < buf.len() && !self.input.closed;
                        return Poll::Ready(Ok(count));
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    // A closed end stays closed, even if another process opens a named pipe again.
                    Err(error) if would_block(&error) && self.input.closed => return Poll::Ready(Ok(0)),
                    Err(error) if would_block(&error) => self.input.idle = true,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            ready!(self.poll_event(cx, IoDirection::Input))?;
        }
    }

    /// Makes the next read try at once: there may be bytes for which no readiness event has arrived yet.
    pub(crate) fn skip_readiness(&mut self) {
        self.input.idle = false;
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            if !self.output.idle {
                match self.try_write(buf) {
                    Ok(count) => return Poll::Ready(Ok(count)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if would_block(&error) && self.output.closed => {
                        return Poll::Ready(Err(broken_pipe()));
                    }
                    Err(error) if would_block(&error) => self.output.idle = true,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            ready!(self.poll_event(cx, IoDirection::Output))?;
        }
    }

    /// Completes once, when the peer has closed its sending end, even if there are unread bytes.
    pub(crate) fn poll_input_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_hangup(cx, IoDirection::Input)
    }

    /// Completes once, when the peer does not read any more, even if the buffer is full.
    pub(crate) fn poll_output_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_hangup(cx, IoDirection::Output)
    }

    /// Closes the writing side: a pipe is closed, and a socket can still be read.
    pub(crate) fn close_output(&mut self) -> io::Result<()> {
        self.output.reported = true;
        match self.kind {
            NonblockingIoKind::Pipe => {
                self.descriptor = DescriptorRegistration::Closed;
                Ok(())
            }
            NonblockingIoKind::Socket => {
                let Some(socket) = self.borrow() else { return Ok(()) };
                match rustix::net::shutdown(socket, Shutdown::Write) {
                    // The peer has closed the connection first.
                    Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Deregisters the descriptor from its runtime. The next read and write are tried at once, before they wait for
    /// readiness events of the next runtime.
    pub(crate) fn leave_runtime(&mut self) {
        self.descriptor = match std::mem::replace(&mut self.descriptor, DescriptorRegistration::Closed) {
            DescriptorRegistration::Registered(registered) => DescriptorRegistration::New(registered.into_inner()),
            other => other,
        };
        (self.input.idle, self.output.idle) = (false, false);
    }

    /// Deregisters the descriptor from its runtime and returns it.
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        match self.descriptor {
            DescriptorRegistration::New(descriptor) => Some(descriptor),
            DescriptorRegistration::Registered(registered) => Some(registered.into_inner()),
            DescriptorRegistration::Closed => None,
        }
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>, direction: IoDirection) -> Poll<()> {
        if self.side(direction).reported {
            return Poll::Pending;
        }
        while !self.side(direction).closed {
            // Without the runtime no hangup can be noticed: the next read or write returns the error.
            if ready!(self.poll_event(cx, direction)).is_err() {
                break;
            }
        }
        self.side(direction).reported = true;
        Poll::Ready(())
    }

    /// Waits for the next readiness event of one direction, and copies it into the flags of that direction.
    fn poll_event(&mut self, cx: &mut Context<'_>, direction: IoDirection) -> Poll<io::Result<()>> {
        let registered = match self.register() {
            Ok(registered) => registered,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let closed = match direction {
            IoDirection::Input => {
                let mut guard = ready!(registered.poll_read_ready(cx))?;
                let closed = guard.ready().is_read_closed();
                guard.clear_ready();
                closed
            }
            IoDirection::Output => {
                let mut guard = ready!(registered.poll_write_ready(cx))?;
                let closed = guard.ready().is_write_closed();
                guard.clear_ready();
                closed
            }
        };
        let side = self.side(direction);
        side.closed |= closed;
        side.idle = false;
        Poll::Ready(Ok(()))
    }

    fn register(&mut self) -> io::Result<&AsyncFd<OwnedFd>> {
        if matches!(self.descriptor, DescriptorRegistration::New(_)) {
            Handle::try_current().map_err(io::Error::other)?;
            let DescriptorRegistration::New(descriptor) =
                std::mem::replace(&mut self.descriptor, DescriptorRegistration::Closed)
            else {
                return Err(closed());
            };
            // Deprecated because it would be unsound for a type that returns changing descriptors. An `OwnedFd` does not, and
            // the function that replaces this one is unsafe.
            #[allow(deprecated)]
            let registered = AsyncFd::try_with_interest(descriptor, self.interest);
            match registered {
                Ok(registered) => self.descriptor = DescriptorRegistration::Registered(registered),
                Err(error) => {
                    let (descriptor, error) = error.into_parts();
                    self.descriptor = DescriptorRegistration::New(descriptor);
                    return Err(error);
                }
            }
        }
        match &self.descriptor {
            DescriptorRegistration::Registered(registered) => Ok(registered),
            DescriptorRegistration::New(_) | DescriptorRegistration::Closed => Err(closed()),
        }
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.borrow().ok_or_else(closed)?;
        Ok(match self.kind {
            NonblockingIoKind::Pipe => rustix::io::read(descriptor, buf)?,
            NonblockingIoKind::Socket => rustix::net::recv(descriptor, buf, RecvFlags::DONTWAIT)?.0,
        })
    }

    fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        let descriptor = self.borrow().ok_or_else(broken_pipe)?;
        Ok(match self.kind {
            NonblockingIoKind::Pipe => rustix::io::write(descriptor, buf)?,
            NonblockingIoKind::Socket => rustix::net::send(descriptor, buf, send_flags())?,
        })
    }

    fn borrow(&self) -> Option<BorrowedFd<'_>> {
        match &self.descriptor {
            DescriptorRegistration::New(descriptor) => Some(descriptor.as_fd()),
            DescriptorRegistration::Registered(registered) => Some(registered.get_ref().as_fd()),
            DescriptorRegistration::Closed => None,
        }
    }

    fn side(&mut self, direction: IoDirection) -> &mut DescriptorDirectionState {
        match direction {
            IoDirection::Input => &mut self.input,
            IoDirection::Output => &mut self.output,
        }
    }
}

fn send_flags() -> SendFlags {
    #[cfg(not(target_vendor = "apple"))]
    let no_signal = SendFlags::NOSIGNAL;
    // Rust's startup code ignores SIGPIPE, so this only matters in programs written in other languages.
    #[cfg(target_vendor = "apple")]
    let no_signal = SendFlags::empty();
    SendFlags::DONTWAIT | no_signal
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn closed() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}
