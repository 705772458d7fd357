//! What was told, and nobody has looked at yet: queues that drop the oldest when their reader does not keep up.
//!
//! Whoever tells never waits, and a reader that sleeps costs no more than its bounds. The newest stays whatever its size.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The queue alone.
pub(crate) struct BoundedQueue<T> {
    /// Each with the bytes that it counts for.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl<T> BoundedQueue<T> {
    /// For so many items, and items of so many bytes.
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { items: VecDeque::new(), bytes: 0, most, most_bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds an item. Whatever is too much then goes, the oldest first.
    pub(crate) fn push(&mut self, item: T, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push_back((item, bytes));
        while self.items.len() > 1 && (self.items.len() > self.most || self.bytes > self.most_bytes) {
            self.pop();
        }
    }

    /// The oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(item)
    }
}

/// A queue with a reader who waits for it, and with an end.
pub(crate) struct Backlog<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    unseen: BoundedQueue<T>,
    closed: bool,
    reader: Option<Waker>,
}

impl<T> Backlog<T> {
    /// For so many items, and items of so many bytes.
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        let unseen = BoundedQueue::new(most, most_bytes);
        Self { state: Mutex::new(State { unseen, closed: false, reader: None }) }
    }

    /// Adds an item, unless it is closed.
    pub(crate) fn push(&self, item: T, bytes: usize) {
        self.change(|state| {
            if !state.closed {
                state.unseen.push(item, bytes);
            }
        });
    }

    /// There will be nothing more. What is in it can still be read.
    pub(crate) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// The oldest item; `None` at the end.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.lock();
        if let Some(item) = state.unseen.pop() {
            return Poll::Ready(Some(item));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let mut state = self.lock();
        change(&mut state);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest<T>(mut unseen: BoundedQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| unseen.pop()).collect()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut unseen = BoundedQueue::new(2, usize::MAX);
        (1..=4).for_each(|item| unseen.push(item, 0));
        assert_eq!(rest(unseen), [3, 4]);
    }

    #[test]
    fn the_oldest_go_when_they_are_too_large_and_the_newest_stays_whatever_its_size() {
        let mut unseen = BoundedQueue::new(100, 10);
        unseen.push("small", 4);
        unseen.push("other", 4);
        unseen.push("large", 7);
        assert_eq!(rest(unseen), ["large"]);
        let mut unseen = BoundedQueue::new(100, 10);
        unseen.push("small", 4);
        unseen.push("huge", 100);
        assert_eq!(rest(unseen), ["huge"]);
    }

    #[test]
    fn what_was_told_before_the_end_is_read_and_nothing_after_it() {
        let backlog = Backlog::new(10, 10);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(backlog.poll(&mut cx), Poll::Pending);
        backlog.push(1, 1);
        backlog.close();
        backlog.push(2, 1);
        assert_eq!(backlog.poll(&mut cx), Poll::Ready(Some(1)));
        assert_eq!(backlog.poll(&mut cx), Poll::Ready(None));
    }
}
