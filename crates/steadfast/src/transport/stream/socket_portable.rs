//! A TCP socket on systems where the runtime does not report closed ends.
//!
//! The socket moves to the runtime that polls it first, as on Unix, but notices a hangup only by reading or writing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::transport::HangupDirection;

/// A connected socket, for reading and writing.
#[derive(Debug)]
pub(crate) struct StreamSocket {
    stream: Option<TcpStream>,
    moved: bool,
}

impl StreamSocket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        // Messages are written as a whole, so waiting for more bytes would only cost time.
        let _ = stream.set_nodelay(true);
        Self { stream: Some(stream), moved: false }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(Pin::new(self.registered()?).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.registered()?).poll_write(cx, buf)
    }

    #[expect(clippy::unused_self, reason = "only on Unix a socket reports hangups")]
    pub(crate) fn poll_hangup(&mut self, _cx: &mut Context<'_>) -> Poll<HangupDirection> {
        Poll::Pending
    }

    pub(crate) fn leave_runtime(&mut self) -> bool {
        false
    }

    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.registered()?).poll_shutdown(cx)
    }

    /// Whether Nagle's algorithm is off for the TCP socket.
    #[cfg(test)]
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match &self.stream {
            Some(stream) => stream.nodelay(),
            None => Err(io::Error::from(io::ErrorKind::NotConnected)),
        }
    }

    /// The socket, registered with the current runtime.
    fn registered(&mut self) -> io::Result<&mut TcpStream> {
        if !self.moved {
            self.moved = true;
            if let Some(stream) = self.stream.take() {
                self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
            }
        }
        self.stream.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))
    }
}
