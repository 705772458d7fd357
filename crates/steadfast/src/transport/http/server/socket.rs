//! The socket of an HTTP connection, which reports that the client has disconnected even if nothing reads from the
//! socket.
//!
//! An HTTP/1 server does not read beyond a request while it responds to it. If the client sent more bytes after its
//! request and then disconnected, the server notices the disconnect at the next write, which may be much later. The
//! operating system knows of the disconnect at once, so `SocketHangupWatcher` asks it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A TCP stream that can be watched for a hangup of the client while it is used.
pub(crate) struct WatchedTcpStream {
    input: Arc<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

impl WatchedTcpStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (input, output) = stream.into_split();
        Self { input: Arc::new(input), output }
    }

    /// Returns a watcher that reports that the client has closed this connection.
    pub(crate) fn hangup(&self) -> SocketHangupWatcher {
        SocketHangupWatcher(Arc::downgrade(&self.input))
    }
}

/// Reports that the client has disconnected, although nothing reads from the connection. The watcher does not keep the
/// connection open.
#[derive(Clone)]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "only Linux reports a hangup behind unread input")
)]
pub(crate) struct SocketHangupWatcher(Weak<OwnedReadHalf>);

impl SocketHangupWatcher {
    /// Completes when the client has closed its end of the connection. Bytes that the client sent before may be unread.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) async fn wait(self) {
        use tokio::io::Interest;

        // A connection that is closed drops its requests by itself.
        let Some(input) = self.0.upgrade() else { return std::future::pending().await };
        loop {
            // Reports urgent data and the end of input, and only the end ever occurs. Waiting for readable input would complete at
            // once while some is unread.
            match input.ready(Interest::PRIORITY).await {
                Ok(ready) if ready.is_read_closed() => return,
                Ok(_) => tokio::task::yield_now().await,
                Err(_) => return std::future::pending().await,
            }
        }
    }

    /// Never completes: systems other than Linux do not tell a hangup from unread input, so the hangup is noticed at
    /// the next write.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) async fn wait(self) {
        std::future::pending().await
    }
}

impl AsyncRead for WatchedTcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.input).as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read_buf(buffer) {
                // Spurious readiness, which this has cleared.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for WatchedTcpStream {
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
