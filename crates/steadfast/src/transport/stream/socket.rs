//! A TCP or Unix socket that the runtime of the driver watches.
//!
//! A socket of tokio belongs to the runtime in which it was opened. It leaves that runtime at the first poll here, and
//! registers with the one that polls.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::transport::Hangup;
use crate::transport::fd::readiness::{Kind, WatchedDescriptor};

/// A connected socket, for reading and writing.
#[derive(Debug)]
pub(crate) struct Socket(State);

#[derive(Debug)]
enum State {
    Tcp(TcpStream),
    Unix(UnixStream),
    Watched(WatchedDescriptor),
    /// It could not leave its first runtime; the error was reported.
    Lost,
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        // Answers are written whole: waiting for more to send with them only costs time. A socket that refuses this
        // setting is broken, which reading will tell.
        let _ = stream.set_nodelay(true);
        Self(State::Tcp(stream))
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self(State::Unix(stream))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.watched()?.poll_read(cx, buf)
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.watched()?.poll_write(cx, buf)
    }

    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        // A socket that could not be moved says so when it is read or written.
        let Ok(watched) = self.watched() else { return Poll::Pending };
        if watched.poll_input_hangup(cx).is_ready() {
            return Poll::Ready(Hangup::Input);
        }
        watched.poll_output_hangup(cx).map(|()| Hangup::Output)
    }

    pub(crate) fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.watched()?.close_output())
    }

    /// Sockets are moved at their first poll, and again whenever they are asked to.
    pub(crate) fn leave_runtime(&mut self) -> bool {
        if let State::Watched(watched) = &mut self.0 {
            watched.leave_runtime();
        }
        true
    }

    /// Whether small writes go out at once.
    #[cfg(test)]
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match &self.0 {
            State::Tcp(stream) => stream.nodelay(),
            _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    fn watched(&mut self) -> io::Result<&mut WatchedDescriptor> {
        if !matches!(self.0, State::Watched(_)) {
            let descriptor = match std::mem::replace(&mut self.0, State::Lost) {
                State::Tcp(stream) => OwnedFd::from(stream.into_std()?),
                State::Unix(stream) => OwnedFd::from(stream.into_std()?),
                State::Watched(_) | State::Lost => return Err(io::Error::from(io::ErrorKind::NotConnected)),
            };
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.0 = State::Watched(WatchedDescriptor::new(descriptor, Kind::Socket, interest));
        }
        match &mut self.0 {
            State::Watched(watched) => Ok(watched),
            _ => Err(io::Error::from(io::ErrorKind::NotConnected)),
        }
    }
}
