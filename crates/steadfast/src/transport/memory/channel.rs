//! A bounded channel of bytes within this process.
//!
//! The [`memory`](super) transport uses two byte channels, and each thread that reads or writes a descriptor without
//! readiness events uses one. A byte channel uses only wakers, and no runtime, clock or thread, so the same calls in
//! the same order always do the same. Wakers are called after the lock of the channel is released.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::transport::broken_pipe;

/// Creates a byte channel that holds `capacity` bytes, or one byte if `capacity` is 0.
pub(crate) fn channel(capacity: usize) -> (ByteSender, ByteReceiver) {
    let shared = Arc::new(Mutex::new(ByteChannelState {
        bytes: VecDeque::new(),
        capacity: capacity.max(1),
        closed: false,
        hung_up: false,
        receiver_dropped: false,
        read_error: None,
        write_error: None,
        read_waker: None,
        hangup_waker: None,
        space_waker: None,
        dropped_waker: None,
    }));
    (ByteSender { shared: Arc::clone(&shared) }, ByteReceiver { shared })
}

/// The writing end of a byte channel. Dropping the sender closes the channel: the receiver still reads the bytes that
/// are in it, and then the end of the stream.
pub(crate) struct ByteSender {
    shared: Arc<Mutex<ByteChannelState>>,
}

/// The reading end of a byte channel. Dropping the receiver makes writes of the sender fail.
pub(crate) struct ByteReceiver {
    shared: Arc<Mutex<ByteChannelState>>,
}

struct ByteChannelState {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// The sender has closed the stream.
    closed: bool,
    /// The source whose bytes the sender writes has hung up; its last bytes may not be in the channel yet.
    hung_up: bool,
    receiver_dropped: bool,
    /// The error with which the sender closed the stream, if any. The receiver gets the error of the sender once.
    read_error: Option<io::Error>,
    /// The error with which the receiver was dropped, if any. The sender gets the error of the receiver once.
    write_error: Option<io::Error>,
    /// The waker of the receiver that waits for bytes.
    read_waker: Option<Waker>,
    /// The waker of the receiver, while it waits for the sender to hang up.
    hangup_waker: Option<Waker>,
    /// The waker of the sender that waits for space.
    space_waker: Option<Waker>,
    /// The waker of the sender, while it waits for the receiver to be dropped.
    dropped_waker: Option<Waker>,
}

impl ByteChannelState {
    fn space(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    fn take_write_error(&mut self) -> io::Error {
        self.write_error.take().unwrap_or_else(broken_pipe)
    }
}

impl ByteSender {
    /// Writes as many of `bytes` as there is space for.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.receiver_dropped || state.closed {
            return Poll::Ready(Err(state.take_write_error()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let count = state.space().min(bytes.len());
        if count == 0 {
            return park(state, |state| &mut state.space_waker, cx);
        }
        state.bytes.extend(bytes.iter().take(count));
        let waiting = state.read_waker.take();
        drop(state);
        wake(waiting);
        Poll::Ready(Ok(count))
    }

    /// Waits until the byte channel has space, and returns how many bytes can be written.
    pub(crate) fn poll_space(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.receiver_dropped || state.closed {
            return Poll::Ready(Err(state.take_write_error()));
        }
        match state.space() {
            0 => park(state, |state| &mut state.space_waker, cx),
            space => Poll::Ready(Ok(space)),
        }
    }

    /// Completes when the receiver has consumed all bytes of the channel.
    pub(crate) fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.shared);
        if state.bytes.is_empty() {
            return Poll::Ready(state.write_error.take().map_or(Ok(()), Err));
        }
        park(state, |state| &mut state.space_waker, cx)
    }

    /// Completes when the receiver was dropped.
    pub(crate) fn poll_receiver_dropped(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let state = lock(&self.shared);
        if state.receiver_dropped {
            return Poll::Ready(());
        }
        park(state, |state| &mut state.dropped_waker, cx)
    }

    /// Tells the receiver that the source of the bytes has hung up, even if the last bytes are not in the channel yet.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only a descriptor that can be polled reports hangups"))]
    pub(crate) fn hang_up(&mut self) {
        let mut state = lock(&self.shared);
        state.hung_up = true;
        let waiting = state.hangup_waker.take();
        drop(state);
        wake(waiting);
    }

    /// Closes the channel: the receiver still reads the bytes that are in it, and then the end of the stream.
    pub(crate) fn close(&mut self) {
        self.end(None);
    }

    /// Closes the channel with an error: the receiver still reads the bytes that are in it, and then the error.
    pub(crate) fn fail(&mut self, error: io::Error) {
        self.end(Some(error));
    }

    fn end(&mut self, error: Option<io::Error>) {
        let mut state = lock(&self.shared);
        if state.closed {
            return;
        }
        state.closed = true;
        state.hung_up = true;
        state.read_error = error;
        let waiting = [state.read_waker.take(), state.hangup_waker.take()];
        drop(state);
        waiting.into_iter().for_each(wake);
    }
}

impl Drop for ByteSender {
    fn drop(&mut self) {
        self.close();
        let mut state = lock(&self.shared);
        let own = [state.space_waker.take(), state.dropped_waker.take()];
        drop(state);
        drop(own);
    }
}

impl ByteReceiver {
    /// Reads bytes and removes them from the byte channel. `Ok(0)` is the end of the stream, if `buf` is not empty.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let count = match self.poll_peek(cx, buf) {
            Poll::Ready(Ok(count)) => count,
            other => return other,
        };
        self.consume(count);
        Poll::Ready(Ok(count))
    }

    /// Reads bytes and leaves them in the channel, until [`consume`](ByteReceiver::consume) removes them.
    pub(crate) fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.bytes.is_empty() && !buf.is_empty() {
            if state.closed {
                return Poll::Ready(state.read_error.take().map_or(Ok(0), Err));
            }
            return park(state, |state| &mut state.read_waker, cx);
        }
        let (first, second) = state.bytes.as_slices();
        let count = copy(first, buf);
        Poll::Ready(Ok(match buf.get_mut(count..) {
            Some(rest) => count + copy(second, rest),
            None => count,
        }))
    }

    /// Removes bytes that were read by [`poll_peek`](ByteReceiver::poll_peek).
    pub(crate) fn consume(&mut self, count: usize) {
        let mut state = lock(&self.shared);
        let count = count.min(state.bytes.len());
        if count == 0 {
            return;
        }
        state.bytes.drain(..count);
        let waiting = state.space_waker.take();
        drop(state);
        wake(waiting);
    }

    /// Completes when the source of the bytes has hung up, even if some of its bytes are still unread.
    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let state = lock(&self.shared);
        if state.hung_up {
            return Poll::Ready(());
        }
        park(state, |state| &mut state.hangup_waker, cx)
    }

    /// Drops the receiver. The next write or flush of the sender fails with `error`.
    pub(crate) fn fail(self, error: io::Error) {
        lock(&self.shared).write_error = Some(error);
    }
}

impl Drop for ByteReceiver {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.receiver_dropped = true;
        let unread = std::mem::take(&mut state.bytes);
        // If all bytes were consumed they count as flushed. Otherwise the sender has to learn that some were lost.
        if !unread.is_empty() && state.write_error.is_none() {
            state.write_error = Some(broken_pipe());
        }
        let own = [state.read_waker.take(), state.hangup_waker.take()];
        let waiting = [state.space_waker.take(), state.dropped_waker.take()];
        drop(state);
        waiting.into_iter().for_each(wake);
        drop(own);
    }
}

// The bytes must not get into a log.
impl fmt::Debug for ByteSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ByteSender").finish_non_exhaustive()
    }
}

impl fmt::Debug for ByteReceiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ByteReceiver").finish_non_exhaustive()
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}

fn lock(shared: &Mutex<ByteChannelState>) -> MutexGuard<'_, ByteChannelState> {
    // No foreign code runs while the lock is held, so a poisoned state is consistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores the waker in a slot and returns `Pending`. The previous waker in the slot is dropped after the lock is
/// released, because it may be the last reference to a task that owns an end of this channel.
fn park<T>(
    mut state: MutexGuard<'_, ByteChannelState>,
    slot: impl FnOnce(&mut ByteChannelState) -> &mut Option<Waker>,
    cx: &Context<'_>,
) -> Poll<T> {
    let slot = slot(&mut state);
    let displaced = match slot {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        _ => slot.replace(cx.waker().clone()),
    };
    drop(state);
    drop(displaced);
    Poll::Pending
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
