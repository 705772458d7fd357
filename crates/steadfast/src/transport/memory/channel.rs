//! A bounded stream of bytes in one direction, inside this process.
//!
//! Both the [`memory`](super) transport and the threads that stand in for descriptors without readiness are made
//! of it. It uses wakers and nothing else: no runtime, no clock, no thread, so that the same calls in the same order do
//! the same thing, always. Wakers are called after the lock is released.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::transport::broken_pipe;

/// A channel that holds at most `capacity` bytes, and at least one.
pub(crate) fn channel(capacity: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Mutex::new(State {
        bytes: VecDeque::new(),
        capacity: capacity.max(1),
        ended: false,
        hung_up: false,
        unread: false,
        input_failure: None,
        output_failure: None,
        for_bytes: None,
        for_hangup: None,
        for_space: None,
        for_gone: None,
    }));
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

/// The end that bytes go into. Dropping it ends the stream, behind the bytes that are in flight.
pub(crate) struct Sender {
    shared: Arc<Mutex<State>>,
}

/// The end that bytes come out of. Dropping it breaks the pipe for the sender.
pub(crate) struct Receiver {
    shared: Arc<Mutex<State>>,
}

struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// Nothing more will be sent.
    ended: bool,
    /// The far source has hung up; its last bytes may not have been sent yet.
    hung_up: bool,
    /// Nobody will read any more.
    unread: bool,
    /// Why the stream ended, for the receiver to see once.
    input_failure: Option<io::Error>,
    /// Why nobody reads, for the sender to see once.
    output_failure: Option<io::Error>,
    for_bytes: Option<Waker>,
    for_hangup: Option<Waker>,
    for_space: Option<Waker>,
    for_gone: Option<Waker>,
}

impl State {
    fn space(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    fn broken(&mut self) -> io::Error {
        self.output_failure.take().unwrap_or_else(broken_pipe)
    }
}

impl Sender {
    /// Takes as much of `bytes` as there is room for.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.unread || state.ended {
            return Poll::Ready(Err(state.broken()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let count = state.space().min(bytes.len());
        if count == 0 {
            return park(state, |state| &mut state.for_space, cx);
        }
        state.bytes.extend(bytes.iter().take(count));
        let waiting = state.for_bytes.take();
        drop(state);
        wake(waiting);
        Poll::Ready(Ok(count))
    }

    /// How much room there is, once there is some.
    pub(crate) fn poll_space(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.unread || state.ended {
            return Poll::Ready(Err(state.broken()));
        }
        match state.space() {
            0 => park(state, |state| &mut state.for_space, cx),
            space => Poll::Ready(Ok(space)),
        }
    }

    /// Completes when the receiver has taken every byte.
    pub(crate) fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.shared);
        if state.bytes.is_empty() {
            return Poll::Ready(state.output_failure.take().map_or(Ok(()), Err));
        }
        park(state, |state| &mut state.for_space, cx)
    }

    /// Completes when the receiver is gone.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let state = lock(&self.shared);
        if state.unread {
            return Poll::Ready(());
        }
        park(state, |state| &mut state.for_gone, cx)
    }

    /// Tells the receiver that the source is gone, although its last bytes may not all have been sent yet.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only a descriptor that can be polled shows this"))]
    pub(crate) fn hang_up(&mut self) {
        let mut state = lock(&self.shared);
        state.hung_up = true;
        let waiting = state.for_hangup.take();
        drop(state);
        wake(waiting);
    }

    /// Ends the stream behind the bytes that are in flight.
    pub(crate) fn close(&mut self) {
        self.end(None);
    }

    /// Ends the stream with an error, behind the bytes that are in flight.
    pub(crate) fn fail(&mut self, error: io::Error) {
        self.end(Some(error));
    }

    fn end(&mut self, failure: Option<io::Error>) {
        let mut state = lock(&self.shared);
        if state.ended {
            return;
        }
        state.ended = true;
        state.hung_up = true;
        state.input_failure = failure;
        let waiting = [state.for_bytes.take(), state.for_hangup.take()];
        drop(state);
        waiting.into_iter().for_each(wake);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.close();
        let mut state = lock(&self.shared);
        let own = [state.for_space.take(), state.for_gone.take()];
        drop(state);
        drop(own);
    }
}

impl Receiver {
    /// Moves bytes out. `Ok(0)` is the end of the stream, if `buf` is not empty.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let count = match self.poll_peek(cx, buf) {
            Poll::Ready(Ok(count)) => count,
            other => return other,
        };
        self.consume(count);
        Poll::Ready(Ok(count))
    }

    /// Copies bytes out and leaves them where they are; [`consume`](Receiver::consume) takes them away.
    pub(crate) fn poll_peek(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.shared);
        if state.bytes.is_empty() && !buf.is_empty() {
            if state.ended {
                return Poll::Ready(state.input_failure.take().map_or(Ok(0), Err));
            }
            return park(state, |state| &mut state.for_bytes, cx);
        }
        let (first, second) = state.bytes.as_slices();
        let count = copy(first, buf);
        Poll::Ready(Ok(match buf.get_mut(count..) {
            Some(rest) => count + copy(second, rest),
            None => count,
        }))
    }

    /// Takes away bytes that were peeked at.
    pub(crate) fn consume(&mut self, count: usize) {
        let mut state = lock(&self.shared);
        let count = count.min(state.bytes.len());
        if count == 0 {
            return;
        }
        state.bytes.drain(..count);
        let waiting = state.for_space.take();
        drop(state);
        wake(waiting);
    }

    /// Completes when the source is gone, although bytes of it may still be unread.
    pub(crate) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let state = lock(&self.shared);
        if state.hung_up {
            return Poll::Ready(());
        }
        park(state, |state| &mut state.for_hangup, cx)
    }

    /// Stops reading, for a reason that the sender gets to see.
    pub(crate) fn fail(self, error: io::Error) {
        lock(&self.shared).output_failure = Some(error);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = lock(&self.shared);
        state.unread = true;
        let unread = std::mem::take(&mut state.bytes);
        // A stream whose every byte was taken has been flushed; one that was cut off has not.
        if !unread.is_empty() && state.output_failure.is_none() {
            state.output_failure = Some(broken_pipe());
        }
        let own = [state.for_bytes.take(), state.for_hangup.take()];
        let waiting = [state.for_space.take(), state.for_gone.take()];
        drop(state);
        waiting.into_iter().for_each(wake);
        drop(own);
    }
}

// What passes through is not for the log.
impl fmt::Debug for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Receiver").finish_non_exhaustive()
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
        to.copy_from_slice(from);
    }
    count
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    // No code of others runs while the lock is held, so a poisoned state is a whole state.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits. The waker that was there before is dropped after the lock: it may be the last hold on a task that owns an end
/// of this very channel.
fn park<T>(
    mut state: MutexGuard<'_, State>,
    slot: impl FnOnce(&mut State) -> &mut Option<Waker>,
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
