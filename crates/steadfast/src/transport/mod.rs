//! How bytes reach a peer and come back, and how we learn that the peer is gone.
//!
//! A [`Transport`] carries bytes in both directions and knows nothing about messages: it never parses, never buffers
//! without a bound, never retries and never logs what it carries. Four kinds are here:
//!
//! - [`stdio::Stdio`]: the standard input and output of this process, as an MCP client starts a server;
//! - [`child::Child`]: the other side of it, a server process that we start, watch and end;
//! - [`stream::Stream`]: a TCP or Unix socket, or any pair of `AsyncRead` and `AsyncWrite`;
//! - [`memory::pair`]: two ends joined in memory, for tests, for the simulator and for a client beside its server.
//!
//! HTTP is no such stream: each message travels on its own, so `http` and `http_client` carry messages and not bytes.
//!
//! # Who polls
//!
//! One task owns a transport and polls all of it. That task is the one to be woken: a transport keeps one waker for each
//! of its two directions, so polling from several tasks at the same time would leave some of them asleep. Descriptors are
//! registered with the runtime that polls first, not with the one in which the transport was made, so that a driver with
//! a thread and a runtime of its own can take over what others have opened. Some can leave that one for another again.

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

/// Bytes to and from one peer.
///
/// The methods are those of a non-blocking byte stream, with one more: [`poll_hangup`](Transport::poll_hangup) tells of
/// the peer's end while nothing is being read or written, which is what lets a server that waits for its reader stop in
/// time.
pub trait Transport: Send + 'static {
    /// Reads up to `buf.len()` bytes. `Ok(0)` means that the peer ended its stream, provided that `buf` is not empty.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes some of `buf`, and says how much. An error means that nobody reads any more.
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>>;

    /// Completes when everything that was written has left this process.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Learns that the peer is gone although nobody is reading or writing. Each kind is reported at most once; after
    /// that, and on transports that cannot know, this is `Pending`.
    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup>;

    /// Ends our writing side: `shutdown(2)` of a socket, the close of a pipe. What was written before still arrives.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Completes when nothing is left of what the transport has started: a process, for one. Asked after the close, and it
    /// has to come about by itself.
    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// Completes when it is known how the peer ended, in words for people: the exit status of a process and the last that it
    /// said, for one. `None` if there is nothing to tell, or if it was this side that ended it. Asked when the connection
    /// ends. It becomes the cause of errors, which no peer is shown.
    fn poll_exit_reason(&mut self, _cx: &mut Context<'_>) -> Poll<Option<String>> {
        Poll::Ready(None)
    }

    /// Deregisters the transport from the runtime that polled it, so that another one can poll it next. That runtime then sees
    /// everything that has happened in between.
    ///
    /// Returns false, as by default, if the transport cannot move; then nothing has changed. A client moves the transports that
    /// can to the runtime of its callers while they call in quick succession, which saves two switches between threads for
    /// each call. A transport that wraps another one should forward this method.
    fn leave_runtime(&mut self) -> bool {
        false
    }
}

/// Which way a peer has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hangup {
    /// The peer closed its sending end. Bytes that it sent before may still be unread.
    Input,
    /// Nobody reads our output any more.
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

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
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

/// The error of a write that nobody will ever read.
fn broken_pipe() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
#[cfg_attr(not(unix), allow(dead_code))]
mod testing;
