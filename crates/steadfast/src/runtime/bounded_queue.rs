//! Queues that drop their oldest items when their reader does not keep up.
//!
//! The writer never waits, and a reader that does not read costs no more memory than the limits of its queue. The newest item
//! stays, whatever its size.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A queue with limits, without wakers.
pub(crate) struct LossyQueue<T> {
    /// Each item with its size in bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
}

impl<T> LossyQueue<T> {
    /// A queue of at most `max_items` items with at most `max_bytes` bytes in total.
    pub(crate) const fn new(max_items: usize, max_bytes: usize) -> Self {
        Self { items: VecDeque::new(), bytes: 0, max_items, max_bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item of that size, and drops the oldest items until the queue is within its limits.
    pub(crate) fn push(&mut self, item: T, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push_back((item, bytes));
        while self.items.len() > 1 && (self.items.len() > self.max_items || self.bytes > self.max_bytes) {
            self.pop();
        }
    }

    /// Takes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(item)
    }
}

/// A [`LossyQueue`] that wakes its reader and can be closed.
pub(crate) struct LossyChannel<T> {
    state: Mutex<LossyChannelState<T>>,
}

struct LossyChannelState<T> {
    queue: LossyQueue<T>,
    closed: bool,
    reader: Option<Waker>,
}

impl<T> LossyChannel<T> {
    /// A queue of at most `max_items` items with at most `max_bytes` bytes in total.
    pub(crate) const fn new(max_items: usize, max_bytes: usize) -> Self {
        let queue = LossyQueue::new(max_items, max_bytes);
        Self { state: Mutex::new(LossyChannelState { queue, closed: false, reader: None }) }
    }

    /// Adds an item of that size, unless the queue is closed.
    pub(crate) fn push(&self, item: T, bytes: usize) {
        self.update(|state| {
            if !state.closed {
                state.queue.push(item, bytes);
            }
        });
    }

    /// Closes the queue. Items that are in it can still be read.
    pub(crate) fn close(&self) {
        self.update(|state| state.closed = true);
    }

    /// Closes the queue and drops the items that are in it.
    pub(crate) fn stop(&self) {
        self.update(|state| {
            state.closed = true;
            while state.queue.pop().is_some() {}
        });
    }

    /// Whether the queue is closed. If not, the reader is woken when it is closed, or when there is an item.
    pub(crate) fn poll_stopped(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.lock();
        state.reader = Some(cx.waker().clone());
        state.closed
    }

    /// Takes the oldest item; `None` when the queue is closed and empty.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.lock();
        if let Some(item) = state.queue.pop() {
            return Poll::Ready(Some(item));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Changes the state and wakes the reader.
    fn update(&self, change: impl FnOnce(&mut LossyChannelState<T>)) {
        let mut state = self.lock();
        change(&mut state);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, LossyChannelState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain<T>(mut queue: LossyQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn the_oldest_items_are_dropped_when_there_are_too_many() {
        let mut queue = LossyQueue::new(2, usize::MAX);
        (1..=4).for_each(|item| queue.push(item, 0));
        assert_eq!(drain(queue), [3, 4]);
    }

    #[test]
    fn the_oldest_items_are_dropped_when_they_are_too_large_and_the_newest_stays_whatever_its_size() {
        let mut queue = LossyQueue::new(100, 10);
        queue.push("small", 4);
        queue.push("other", 4);
        queue.push("large", 7);
        assert_eq!(drain(queue), ["large"]);
        let mut queue = LossyQueue::new(100, 10);
        queue.push("small", 4);
        queue.push("huge", 100);
        assert_eq!(drain(queue), ["huge"]);
    }

    #[test]
    fn items_from_before_the_close_are_read_and_none_from_after_it() {
        let channel = LossyChannel::new(10, 10);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(channel.poll(&mut cx), Poll::Pending);
        channel.push(1, 1);
        channel.close();
        channel.push(2, 1);
        assert_eq!(channel.poll(&mut cx), Poll::Ready(Some(1)));
        assert_eq!(channel.poll(&mut cx), Poll::Ready(None));
    }
}
