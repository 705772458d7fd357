//! A TCP socket on systems where the runtime shows no closed ends.
//!
//! It moves to the runtime that polls it first, as on Unix, but learns of a hangup only by reading or writing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::transport::Hangup;

/// A connected socket, for reading and writing.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Option<TcpStream>,
    moved: bool,
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        // Answers are written whole: waiting for more to send with them only costs time.
        let _ = stream.set_nodelay(true);
        Self { stream: Some(stream), moved: false }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(Pin::new(self.here()?).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.here()?).poll_write(cx, buf)
    }

    #[expect(clippy::unused_self, reason = "elsewhere a socket does know")]
    pub(crate) fn poll_hangup(&mut self, _cx: &mut Context<'_>) -> Poll<Hangup> {
        Poll::Pending
    }

    pub(crate) fn leave_runtime(&mut self) -> bool {
        false
    }

    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.here()?).poll_shutdown(cx)
    }

    /// Whether small writes go out at once.
    #[cfg(test)]
    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        match &self.stream {
            Some(stream) => stream.nodelay(),
            None => Err(io::Error::from(io::ErrorKind::NotConnected)),
        }
    }

    fn here(&mut self) -> io::Result<&mut TcpStream> {
        if !self.moved {
            self.moved = true;
            if let Some(stream) = self.stream.take() {
                self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
            }
        }
        self.stream.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))
    }
}
