//! Transports: how bytes are sent to a peer and received from it, and how a hangup of the peer is noticed.
//!
//! A [`Transport`] moves bytes in both directions and knows nothing about messages: it never parses, never buffers
//! without a limit, never retries and never logs the bytes. The library has four byte-stream transports:
//!
//! - [`stdio::Stdio`]: the standard input and output of this process, for a server that an MCP client has started;
//! - [`child::Child`]: the counterpart for clients, a server process that this process starts, supervises and ends;
//! - [`stream::StreamTransport`]: a TCP or Unix socket, or any pair of `AsyncRead` and `AsyncWrite`;
//! - [`memory::pair`]: two ends connected in memory, for tests, for the simulator, and for a client and server in one process.
//!
//! HTTP is not a byte stream: each message is a request or response of its own. The servers and clients for HTTP are in
//! the module `http`.
//!
//! # Polling
//!
//! One async task owns a transport and polls all of its methods. A transport stores one waker for each of its two
//! directions, so polling it from several tasks at the same time would leave some of them asleep. File descriptors are
//! registered with the tokio runtime that polls the transport first, not with the one in which the transport was
//! created, so that a driver on a thread with a runtime of its own can take over transports that were opened elsewhere.
//! Some transports can also [move](Transport::leave_runtime) to another runtime later.

#[cfg(feature = "client")]
pub mod child;
pub(crate) mod fd;
#[cfg(any(feature = "http", feature = "http-client"))]
pub mod http;
pub mod memory;
pub mod stdio;
pub mod stream;

use std::io;
use std::task::{Context, Poll};

/// A byte stream to and from one peer.
///
/// A `Transport` has the methods of a non-blocking byte stream, and [`poll_hangup`](Transport::poll_hangup), which
/// reports that the peer is gone while nothing is read or written. With `poll_hangup`, a server that waits for its
/// client to read notices in time that the client is gone.
pub trait Transport: Send + 'static {
    /// Reads up to `buf.len()` bytes from the peer. `Ok(0)` means that the peer ended its stream, provided that `buf`
    /// is not empty.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes a part of `buf`, and returns the number of bytes written. A write error means that the peer does not read
    /// any more.
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>>;

    /// Completes when everything that was written has left this process.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Completes when the peer has closed one direction, even while nothing is read or written. The hangup of each
    /// direction is reported at most once; after that, and on transports that cannot detect a hangup, this method
    /// returns `Pending`.
    fn poll_hangup(&mut self, _cx: &mut Context<'_>) -> Poll<HangupDirection> {
        Poll::Pending
    }

    /// Closes the writing side of the transport: `shutdown(2)` of a socket, the close of a pipe. The peer can still
    /// read the bytes that were written before the close.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Completes when everything that the transport has started is gone, such as a process. `poll_gone` is polled
    /// after the transport was closed. `poll_gone` has to complete without further calls of other methods of the
    /// transport.
    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Completes when it is known why the peer exited, with a text for people: for a process its exit status and the
    /// last lines of its standard error. Completes with `None` if no reason is known, or if this side has ended the
    /// peer. `poll_exit_reason` is polled while the connection ends. The exit reason becomes the cause of errors on
    /// this side and is never sent to a peer.
    fn poll_exit_reason(&mut self, _cx: &mut Context<'_>) -> Poll<Option<String>> {
        Poll::Ready(None)
    }

    /// Deregisters the transport from the runtime that polled it, so that another runtime can poll it next. The next
    /// runtime then sees all I/O events that have happened in between.
    ///
    /// Returns false if the transport cannot move to another runtime; then nothing has changed. The default
    /// implementation of `leave_runtime` returns false. A client moves its transport, if that is possible, to the
    /// runtime of its callers while they make calls in quick succession, which saves two switches between threads for
    /// each call. A transport that wraps another one should forward this method.
    fn leave_runtime(&mut self) -> bool {
        false
    }
}

/// A direction of a transport that the peer has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HangupDirection {
    /// The peer closed its sending end. Bytes that the peer sent before may still be unread.
    Input,
    /// The peer does not read the output of this side any more.
    Output,
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        (**self).poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        (**self).poll_write(cx, buf)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        (**self).poll_hangup(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_close(cx)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        (**self).poll_gone(cx)
    }

    fn poll_exit_reason(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        (**self).poll_exit_reason(cx)
    }

    fn leave_runtime(&mut self) -> bool {
        (**self).leave_runtime()
    }
}

/// The error of a write whose bytes the peer will never read.
fn broken_pipe() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
#[cfg_attr(not(unix), allow(dead_code))]
mod testing;
