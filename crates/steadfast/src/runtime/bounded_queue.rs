//! Queues that drop their oldest items when their reader does not keep up.
//!
//! The writer never waits, and a reader that does not read costs no more memory than the limits of its queue. The newest item
//! stays, whatever its size.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A queue with limits, without wakers.
pub(crate) struct LossyQueue<T> {
    items: VecDeque<LossyQueueItem<T>>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
}

struct LossyQueueItem<T> {
    item: T,
    bytes: usize,
    /// Whether the item stays in the queue until it is read. True for one item of a queue at most.
    keep: bool,
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
        self.push_back(LossyQueueItem { item, bytes, keep: false });
    }

    /// Adds an item of that size that is not dropped before it is read, unless another such item is added first.
    pub(crate) fn push_kept(&mut self, item: T, bytes: usize) {
        self.items.iter_mut().for_each(|item| item.keep = false);
        self.push_back(LossyQueueItem { item, bytes, keep: true });
    }

    fn push_back(&mut self, item: LossyQueueItem<T>) {
        self.bytes = self.bytes.saturating_add(item.bytes);
        self.items.push_back(item);
        while self.items.len() > self.max_items || self.bytes > self.max_bytes {
            let oldest = usize::from(self.items.front().is_some_and(|item| item.keep));
            if oldest + 1 >= self.items.len() {
                return;
            }
            self.remove(oldest);
        }
    }

    /// Takes the oldest item out of the queue.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.remove(0)
    }

    fn remove(&mut self, index: usize) -> Option<T> {
        let LossyQueueItem { item, bytes, .. } = self.items.remove(index)?;
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

    /// Adds an item that is not dropped before it is read, unless the queue is closed or another such item is added first.
    pub(crate) fn push_kept(&self, item: T) {
        self.update(|state| {
            if !state.closed {
                state.queue.push_kept(item, 0);
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

    /// Whether the [`LossyChannel`] is closed. If not, the reader is woken when it is closed, or when there is an
    /// item.
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
    fn an_item_that_is_kept_stays_in_its_place_until_it_is_read() {
        let mut queue = LossyQueue::new(3, 100);
        queue.push(1, 1);
        queue.push_kept(2, 1);
        (3..=10).for_each(|item| queue.push(item, 1));
        queue.push(11, 1000);
        assert_eq!(drain(queue), [2, 11]);
    }

    #[test]
    fn only_the_last_item_that_was_to_be_kept_is_kept() {
        let mut queue = LossyQueue::new(3, 100);
        (1..=10).for_each(|item| queue.push_kept(item, 1));
        (11..=20).for_each(|item| queue.push(item, 1));
        assert_eq!(drain(queue), [10, 19, 20]);
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
