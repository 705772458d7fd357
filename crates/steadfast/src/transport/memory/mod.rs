//! Two transport ends joined in memory, with the manners of a socket pair.
//!
//! Nothing here needs a runtime: an end registers the waker that it is polled with and wakes the other side's, so a
//! simulator with an executor of its own sees the same run for the same order of polls. Each direction holds a bounded
//! number of bytes; a full one makes the writer wait.

pub(crate) mod channel;

use std::io;
use std::task::{Context, Poll};

use super::{Hangup, Transport};
use channel::{Receiver, Sender, channel};

/// Joins two ends. Each direction holds at most `capacity` bytes, and at least one.
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use steadfast::transport::{Transport, memory};
///
/// let (mut near, mut far) = memory::pair(1024);
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(matches!(near.poll_write(&mut cx, b"hello"), Poll::Ready(Ok(5))));
///
/// let mut buf = [0; 8];
/// assert!(matches!(far.poll_read(&mut cx, &mut buf), Poll::Ready(Ok(5))));
/// drop(near);
/// assert!(matches!(far.poll_read(&mut cx, &mut buf), Poll::Ready(Ok(0))));
/// ```
pub fn pair(capacity: usize) -> (MemoryEnd, MemoryEnd) {
    let (to_far, from_near) = channel(capacity);
    let (to_near, from_far) = channel(capacity);
    (MemoryEnd::new(from_far, to_far), MemoryEnd::new(from_near, to_near))
}

/// One end of a [`pair`].
///
/// Dropping it is a close of both directions: the other end reads what is in flight and then the end of the stream, and
/// its writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
#[derive(Debug)]
pub struct MemoryEnd {
    input: Receiver,
    output: Sender,
    input_reported: bool,
    output_reported: bool,
}

impl MemoryEnd {
    fn new(input: Receiver, output: Sender) -> Self {
        Self { input, output, input_reported: false, output_reported: false }
    }
}

impl Transport for MemoryEnd {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.input.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.output.poll_write(cx, buf)
    }

    /// Completes at once: what was written is already where the other end reads it.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        if !self.input_reported && self.input.poll_hangup(cx).is_ready() {
            self.input_reported = true;
            return Poll::Ready(Hangup::Input);
        }
        if !self.output_reported && self.output.poll_gone(cx).is_ready() {
            self.output_reported = true;
            return Poll::Ready(Hangup::Output);
        }
        Poll::Pending
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.close();
        // Our own close is no news of the peer.
        self.output_reported = true;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
