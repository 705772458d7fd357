//! Two transports that are connected in memory and behave like a socket pair.
//!
//! The transports in memory need no runtime: each end stores the waker that it is polled with and wakes the waker of
//! the other end, so a simulator with an executor of its own gets the same run for the same order of polls. Each
//! direction of the connection holds a limited number of bytes; when it is full, the writer waits.

pub(crate) mod channel;

use std::io;
use std::task::{Context, Poll};

use super::{HangupDirection, Transport};
use channel::{ByteReceiver, ByteSender, channel};

/// Creates two connected transports in memory. Each direction holds `capacity` bytes, or one byte if `capacity` is 0.
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
pub fn pair(capacity: usize) -> (MemoryTransport, MemoryTransport) {
    let (to_far, from_near) = channel(capacity);
    let (to_near, from_far) = channel(capacity);
    (MemoryTransport::new(from_far, to_far), MemoryTransport::new(from_near, to_near))
}

/// One end of a [`pair`] of transports that are connected in memory.
///
/// Dropping one end closes both directions: the other end reads the bytes that were written before and then the end of
/// the stream, and its writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe).
#[derive(Debug)]
pub struct MemoryTransport {
    input: ByteReceiver,
    output: ByteSender,
    input_reported: bool,
    output_reported: bool,
}

impl MemoryTransport {
    fn new(input: ByteReceiver, output: ByteSender) -> Self {
        Self { input, output, input_reported: false, output_reported: false }
    }
}

impl Transport for MemoryTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.input.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.output.poll_write(cx, buf)
    }

    /// Flushing completes at once: the other end can read all bytes that were written.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<HangupDirection> {
        if !self.input_reported && self.input.poll_hangup(cx).is_ready() {
            self.input_reported = true;
            return Poll::Ready(HangupDirection::Input);
        }
        if !self.output_reported && self.output.poll_receiver_dropped(cx).is_ready() {
            self.output_reported = true;
            return Poll::Ready(HangupDirection::Output);
        }
        Poll::Pending
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.close();
        // Our own close is not a hangup of the peer.
        self.output_reported = true;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
