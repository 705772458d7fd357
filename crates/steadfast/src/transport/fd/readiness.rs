//! A descriptor whose readiness the runtime watches, and whose hangups are seen while nobody reads or writes.
//!
//! The runtime's readiness is taken over into flags of our own as soon as it shows, and cleared there: "an event came
//! since" for each direction. Reading and writing try first and wait only when there is no such event left, so waiting
//! for a hangup beside unread bytes neither spins nor takes the reader's wake-up away. That the runtime is told of closed
//! ends for good (they are never cleared) is what makes a hangup visible behind unread bytes or a full buffer.
//!
//! A read that fills only a part of its buffer counts as "nothing more for now", as it does in tokio; this holds for
//! every stream, and not for pipes in packet mode, which nobody uses for a protocol.
//!
//! This module never changes a descriptor's flags. A pipe given to it is already non-blocking; a socket may be blocking,
//! each call on it says for itself that it must not wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendFlags, Shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use crate::transport::broken_pipe;

/// How bytes move through a descriptor without ever waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A pipe whose open file description is ours alone and non-blocking.
    Pipe,
    /// A stream socket, blocking or not.
    Socket,
}

/// A descriptor that registers with the runtime which polls it first.
#[derive(Debug)]
pub(crate) struct WatchedDescriptor {
    descriptor: Descriptor,
    kind: Kind,
    interest: Interest,
    input: Side,
    output: Side,
}

#[derive(Debug)]
enum Descriptor {
    /// Not polled yet.
    New(OwnedFd),
    Registered(AsyncFd<OwnedFd>),
    Closed,
}

/// What is known of one direction.
#[derive(Debug, Default)]
struct Side {
    /// The last try found nothing to do, and no event has come since.
    idle: bool,
    /// The other end is closed. Stays.
    closed: bool,
    /// The hangup was reported, or is no news.
    reported: bool,
}

#[derive(Clone, Copy)]
enum Direction {
    Input,
    Output,
}

impl WatchedDescriptor {
    /// `interest` names the directions that will be used.
    pub(crate) fn new(descriptor: OwnedFd, kind: Kind, interest: Interest) -> Self {
        Self {
            descriptor: Descriptor::New(descriptor),
            kind,
            interest,
            input: Side::default(),
            output: Side::default(),
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
                    // A closed end stays closed, even for a named pipe that somebody opens again.
                    Err(error) if would_block(&error) && self.input.closed => return Poll::Ready(Ok(0)),
                    Err(error) if would_block(&error) => self.input.idle = true,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            ready!(self.poll_event(cx, Direction::Input))?;
        }
    }

    /// Has the next read look for itself: something may be there that nobody has been told of yet.
    pub(crate) fn look_again(&mut self) {
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
            ready!(self.poll_event(cx, Direction::Output))?;
        }
    }

    /// Completes once, when the peer has closed its sending end, whatever is unread.
    pub(crate) fn poll_input_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_hangup(cx, Direction::Input)
    }

    /// Completes once, when nobody reads our output any more, whatever is unwritten.
    pub(crate) fn poll_output_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_hangup(cx, Direction::Output)
    }

    /// Ends the writing side. A pipe is closed by it, a socket goes on reading.
    pub(crate) fn close_output(&mut self) -> io::Result<()> {
        self.output.reported = true;
        match self.kind {
            Kind::Pipe => {
                self.descriptor = Descriptor::Closed;
                Ok(())
            }
            Kind::Socket => {
                let Some(socket) = self.borrow() else { return Ok(()) };
                match rustix::net::shutdown(socket, Shutdown::Write) {
                    // The peer was faster.
                    Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Leaves the runtime. The next one is told what there is, whether the last one had said so or not.
    pub(crate) fn leave_runtime(&mut self) {
        self.descriptor = match std::mem::replace(&mut self.descriptor, Descriptor::Closed) {
            Descriptor::Registered(registered) => Descriptor::New(registered.into_inner()),
            other => other,
        };
        (self.input.idle, self.output.idle) = (false, false);
    }

    /// Leaves the runtime and gives the descriptor back.
    pub(crate) fn into_descriptor(self) -> Option<OwnedFd> {
        match self.descriptor {
            Descriptor::New(descriptor) => Some(descriptor),
            Descriptor::Registered(registered) => Some(registered.into_inner()),
            Descriptor::Closed => None,
        }
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>, direction: Direction) -> Poll<()> {
        if self.side(direction).reported {
            return Poll::Pending;
        }
        while !self.side(direction).closed {
            // Without the runtime nothing can be learnt any more: reading and writing will say why.
            if ready!(self.poll_event(cx, direction)).is_err() {
                break;
            }
        }
        self.side(direction).reported = true;
        Poll::Ready(())
    }

    /// Waits for the runtime's next event on one direction and takes it over into our flags.
    fn poll_event(&mut self, cx: &mut Context<'_>, direction: Direction) -> Poll<io::Result<()>> {
        let registered = match self.register() {
            Ok(registered) => registered,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let closed = match direction {
            Direction::Input => {
                let mut guard = ready!(registered.poll_read_ready(cx))?;
                let closed = guard.ready().is_read_closed();
                guard.clear_ready();
                closed
            }
            Direction::Output => {
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
        if matches!(self.descriptor, Descriptor::New(_)) {
            Handle::try_current().map_err(io::Error::other)?;
            let Descriptor::New(descriptor) = std::mem::replace(&mut self.descriptor, Descriptor::Closed) else {
                return Err(closed());
            };
            // Deprecated because a type that lies about its descriptor would be unsound here. An `OwnedFd` does not lie,
            // and the form that replaces this is unsafe.
            #[allow(deprecated)]
            let registered = AsyncFd::try_with_interest(descriptor, self.interest);
            match registered {
                Ok(registered) => self.descriptor = Descriptor::Registered(registered),
                Err(error) => {
                    let (descriptor, error) = error.into_parts();
                    self.descriptor = Descriptor::New(descriptor);
                    return Err(error);
                }
            }
        }
        match &self.descriptor {
            Descriptor::Registered(registered) => Ok(registered),
            Descriptor::New(_) | Descriptor::Closed => Err(closed()),
        }
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.borrow().ok_or_else(closed)?;
        Ok(match self.kind {
            Kind::Pipe => rustix::io::read(descriptor, buf)?,
            Kind::Socket => rustix::net::recv(descriptor, buf, RecvFlags::DONTWAIT)?.0,
        })
    }

    fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        let descriptor = self.borrow().ok_or_else(broken_pipe)?;
        Ok(match self.kind {
            Kind::Pipe => rustix::io::write(descriptor, buf)?,
            Kind::Socket => rustix::net::send(descriptor, buf, send_flags())?,
        })
    }

    fn borrow(&self) -> Option<BorrowedFd<'_>> {
        match &self.descriptor {
            Descriptor::New(descriptor) => Some(descriptor.as_fd()),
            Descriptor::Registered(registered) => Some(registered.get_ref().as_fd()),
            Descriptor::Closed => None,
        }
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Input => &mut self.input,
            Direction::Output => &mut self.output,
        }
    }
}

fn send_flags() -> SendFlags {
    #[cfg(not(target_vendor = "apple"))]
    let no_signal = SendFlags::NOSIGNAL;
    // Rust's startup code ignores SIGPIPE, so that this only matters inside programs of other languages.
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
