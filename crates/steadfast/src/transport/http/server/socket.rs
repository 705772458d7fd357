//! The socket of a connection, and word of its end while nobody reads from it.
//!
//! Whoever serves HTTP/1 reads no further than one request while it answers it. A client that wrote something behind its request
//! and left is noticed at the next write, which may be long in coming. The system knows at once, so it is asked.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A connection that can be watched while it is used.
pub(crate) struct Socket {
    input: Arc<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (input, output) = stream.into_split();
        Self { input: Arc::new(input), output }
    }

    /// Tells of the end of this connection.
    pub(crate) fn hangup(&self) -> Hangup {
        Hangup(Arc::downgrade(&self.input))
    }
}

/// The end of a connection that is seen although nobody reads. It keeps no connection open.
#[derive(Clone)]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "nothing tells of it there")
)]
pub(crate) struct Hangup(Weak<OwnedReadHalf>);

impl Hangup {
    /// Completes when the client has closed its end. What it wrote before may be unread.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) async fn wait(self) {
        use tokio::io::Interest;

        // A connection that is gone takes its requests with it, in its own way.
        let Some(input) = self.0.upgrade() else { return std::future::pending().await };
        loop {
            // Urgent bytes and the end of input: of these two only the end ever comes. To wait for input itself would be over
            // at once, as long as some of it is unread.
            match input.ready(Interest::PRIORITY).await {
                Ok(ready) if ready.is_read_closed() => return,
                Ok(_) => tokio::task::yield_now().await,
                Err(_) => return std::future::pending().await,
            }
        }
    }

    /// Elsewhere the system does not tell the two apart: the end is noticed at the next write.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) async fn wait(self) {
        std::future::pending().await
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.input).as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read_buf(buffer) {
                // It was a false alarm, and is so no more.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.output.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}
