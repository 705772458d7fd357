//! A socket, or any reader and writer, as a transport.
//!
//! Hangups of a socket are noticed even while nothing is read. An arbitrary `AsyncRead` cannot report whether its peer is still
//! there without reading bytes, so its end is noticed only by reading up to it.

#[cfg(not(unix))]
#[path = "socket_portable.rs"]
pub(crate) mod socket;
#[cfg(unix)]
pub(crate) mod socket;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{HangupDirection, Transport};
use socket::StreamSocket;

/// A transport over a socket, or over any reader and writer.
///
/// ```
/// use steadfast::transport::stream::StreamTransport;
///
/// let (near, far) = tokio::io::duplex(1024);
/// let server = StreamTransport::duplex(near);
/// let (reader, writer) = tokio::io::split(far);
/// let client = StreamTransport::new(reader, writer);
/// # let _ = (server, client);
/// ```
#[derive(Debug)]
pub struct StreamTransport(StreamTransportInner);

enum StreamTransportInner {
    Socket(StreamSocket),
    Halves { reader: Pin<Box<dyn AsyncRead + Send>>, writer: Pin<Box<dyn AsyncWrite + Send>> },
}

impl StreamTransport {
    /// Creates a transport from a reader and a writer. The reader and the writer are not moved to another runtime: if
    /// they belong to a tokio runtime, that runtime has to run for as long as the transport is used, and while handlers
    /// block all of its workers, nothing is read or written. `StreamTransport::from` has neither condition.
    pub fn new(reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        Self(StreamTransportInner::Halves { reader: Box::pin(reader), writer: Box::pin(writer) })
    }

    /// Creates a transport from one value that reads and writes, such as a TLS stream. For plain sockets use
    /// `StreamTransport::from`, which also notices hangups while nothing is read.
    pub fn duplex(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::new(reader, writer)
    }
}

impl From<TcpStream> for StreamTransport {
    /// Moves the TCP socket to the runtime that polls it first, and turns Nagle's algorithm off.
    fn from(stream: TcpStream) -> Self {
        Self(StreamTransportInner::Socket(StreamSocket::tcp(stream)))
    }
}

#[cfg(unix)]
impl From<tokio::net::UnixStream> for StreamTransport {
    /// Moves the Unix socket to the runtime that polls it first.
    fn from(stream: tokio::net::UnixStream) -> Self {
        Self(StreamTransportInner::Socket(StreamSocket::unix(stream)))
    }
}

impl Transport for StreamTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamTransportInner::Socket(socket) => socket.poll_read(cx, buf),
            StreamTransportInner::Halves { reader, .. } => {
                let mut buf = ReadBuf::new(buf);
                ready!(reader.as_mut().poll_read(cx, &mut buf))?;
                Poll::Ready(Ok(buf.filled().len()))
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamTransportInner::Socket(socket) => socket.poll_write(cx, buf),
            StreamTransportInner::Halves { writer, .. } => writer.as_mut().poll_write(cx, buf),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            // Bytes that the system has accepted are flushed.
            StreamTransportInner::Socket(_) => Poll::Ready(Ok(())),
            StreamTransportInner::Halves { writer, .. } => writer.as_mut().poll_flush(cx),
        }
    }

    /// Reports hangups of both directions for a socket on Unix, and no hangup for any other stream.
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        match &mut self.0 {
            StreamTransportInner::Socket(socket) => socket.poll_hangup(cx),
            StreamTransportInner::Halves { .. } => Poll::Pending,
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamTransportInner::Socket(socket) => socket.poll_close(cx),
            StreamTransportInner::Halves { writer, .. } => writer.as_mut().poll_shutdown(cx),
        }
    }

    fn leave_runtime(&mut self) -> bool {
        match &mut self.0 {
            StreamTransportInner::Socket(socket) => socket.leave_runtime(),
            StreamTransportInner::Halves { .. } => false,
        }
    }
}

impl fmt::Debug for StreamTransportInner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(socket) => socket.fmt(formatter),
            Self::Halves { .. } => formatter.write_str("Halves"),
        }
    }
}

#[cfg(test)]
mod tests;
