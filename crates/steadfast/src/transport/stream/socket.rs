//! A TCP or Unix socket that moves to the runtime of the driver.
//!
//! A tokio socket is registered with the runtime in which it was opened. The first poll of the transport deregisters
//! the socket from the runtime in which it was opened, and registers it with the runtime that polls.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::transport::HangupDirection;
use crate::transport::fd::readiness::{AsyncDescriptor, NonblockingIoKind};

/// A connected socket, for reading and writing.
#[derive(Debug)]
pub(crate) struct StreamSocket(StreamSocketRepr);

#[derive(Debug)]
enum StreamSocketRepr {
    Tcp(TcpStream),
    Unix(UnixStream),
    Watched(AsyncDescriptor),
    /// The socket could not be deregistered from its first runtime; the error was returned.
    Failed,
}

impl StreamSocket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        // Messages are written as a whole, so waiting for more bytes would only cost time. If this fails, the socket is broken,
        // and the first read returns the error.
        let _ = stream.set_nodelay(true);
        Self(StreamSocketRepr::Tcp(stream))
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self(StreamSocketRepr::Unix(stream))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.watched()?.poll_read(cx, buf)
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.watched()?.poll_write(cx, buf)
    }

    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        // If the socket could not be moved, the next read or write returns the error.
        let Ok(watched) = self.watched() else { return Poll::Pending };
        if watched.poll_input_hangup(cx).is_ready() {
            return Poll::Ready(HangupDirection::Input);
        }
        watched.poll_output_hangup(cx).map(|()| HangupDirection::Output)
    }

    pub(crate) fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.watched()?.close_output())
    }

    /// Detaches the socket from its tokio runtime. A socket that was never polled is left as it is: its first poll
    /// moves it to the runtime that polls.
    pub(crate) fn leave_runtime(&mut self) -> bool {
        if let StreamSocketRepr::Watched(watched) = &mut self.0 {
            watched.leave_runtime();
        }
        true
    }

    /// Whether Nagle's algorithm is off for the TCP socket.
    #[cfg(test)]
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match &self.0 {
            StreamSocketRepr::Tcp(stream) => stream.nodelay(),
            _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    fn watched(&mut self) -> io::Result<&mut AsyncDescriptor> {
        if !matches!(self.0, StreamSocketRepr::Watched(_)) {
            let descriptor = match std::mem::replace(&mut self.0, StreamSocketRepr::Failed) {
                StreamSocketRepr::Tcp(stream) => OwnedFd::from(stream.into_std()?),
                StreamSocketRepr::Unix(stream) => OwnedFd::from(stream.into_std()?),
                StreamSocketRepr::Watched(_) | StreamSocketRepr::Failed => {
                    return Err(io::Error::from(io::ErrorKind::NotConnected));
                }
            };
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.0 = StreamSocketRepr::Watched(AsyncDescriptor::new(descriptor, NonblockingIoKind::Socket, interest));
        }
        match &mut self.0 {
            StreamSocketRepr::Watched(watched) => Ok(watched),
            _ => Err(io::Error::from(io::ErrorKind::NotConnected)),
        }
    }
}
