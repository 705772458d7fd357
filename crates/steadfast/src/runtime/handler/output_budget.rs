//! The output budget of a connection: how many bytes may be encoded and not yet written (law L7).
//!
//! A handler waits for capacity before it starts, and its response before it is posted. The budget is not a lock: several
//! handlers may see the last capacity at once and exceed it by their own responses. The response of a handler that started
//! while there was capacity, and returned when there was none, is parked. Parked responses have a limit of their own; beyond it
//! a response is replaced by a short error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many waiting tasks one turn of the driver wakes: enough to keep it busy, few enough not to exceed the budget by much.
const MAX_WAKES_PER_TURN: usize = 32;

pub(crate) struct OutputBudget {
    /// In bytes.
    limit: usize,
    /// In bytes of parked responses.
    parked_limit: usize,
    /// Bytes that the driver holds, as of its last turn.
    held: AtomicUsize,
    /// Bytes in the mailbox.
    posted: AtomicUsize,
    /// Bytes of parked responses.
    parked: AtomicUsize,
    queue: Mutex<BudgetQueue>,
}

#[derive(Default)]
struct BudgetQueue {
    /// The wakers of tasks that wait for capacity, oldest first.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

/// The position of a task in the queue. A task that stops waiting has to [leave](OutputBudget::leave_queue), or its waker would
/// stay there.
#[derive(Debug, Default)]
pub(crate) struct BudgetQueueEntry(Option<u64>);

impl OutputBudget {
    pub(crate) fn new(limit: usize, parked_limit: usize) -> Self {
        Self {
            limit,
            parked_limit,
            held: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    /// Ready when there is capacity. Otherwise the task is queued, and a turn of the driver that frees capacity wakes it.
    pub(crate) fn poll(&self, entry: &mut BudgetQueueEntry, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_capacity() {
            self.enqueue(entry, cx);
            // Capacity may have been freed before the waker was in the queue.
            if !self.has_capacity() {
                return Poll::Pending;
            }
        }
        self.leave_queue(entry);
        Poll::Ready(())
    }

    /// Puts a task into the queue, or updates its waker there.
    fn enqueue(&self, entry: &mut BudgetQueueEntry, cx: &mut Context<'_>) {
        let mut queue = self.queue();
        let number = entry.0.unwrap_or(queue.next);
        queue.next = queue.next.max(number + 1);
        queue.waiting.insert(number, cx.waker().clone());
        entry.0 = Some(number);
    }

    /// Removes a task from the queue.
    pub(crate) fn leave_queue(&self, entry: &mut BudgetQueueEntry) {
        if let Some(number) = entry.0.take() {
            self.queue().waiting.remove(&number);
        }
    }

    /// Counts a response of that size as parked, if the limit for those allows it, and returns whether it does. Undone by
    /// [`OutputBudget::unpark`].
    pub(crate) fn park(&self, bytes: usize) -> bool {
        let parked = self.parked.fetch_add(bytes, Ordering::SeqCst);
        let fits = parked.saturating_add(bytes) <= self.parked_limit;
        if !fits {
            self.unpark(bytes);
        }
        fits
    }

    pub(crate) fn unpark(&self, bytes: usize) {
        self.parked.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Counts a response of that size that was posted to the mailbox.
    pub(crate) fn add_posted(&self, bytes: usize) {
        self.posted.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Subtracts the responses that the driver took from the mailbox.
    pub(crate) fn subtract_posted(&self, bytes: usize) {
        self.posted.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Sets how many bytes the driver holds. If that leaves capacity, wakes some tasks that wait for it; returns whether more of
    /// them are left.
    pub(crate) fn set_held(&self, held: usize) -> bool {
        self.held.store(held, Ordering::SeqCst);
        if !self.has_capacity() {
            return false;
        }
        let mut queue = self.queue();
        let mut woken = Vec::new();
        while woken.len() < MAX_WAKES_PER_TURN
            && let Some((_, waker)) = queue.waiting.pop_first()
        {
            woken.push(waker);
        }
        let more = !queue.waiting.is_empty();
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
        more
    }

    /// Lets all waiting tasks go on: the connection is closed, and no driver will free capacity any more.
    pub(crate) fn release_all(&self) {
        self.held.store(0, Ordering::SeqCst);
        self.posted.store(0, Ordering::SeqCst);
        let woken = std::mem::take(&mut self.queue().waiting);
        woken.into_values().for_each(Waker::wake);
    }

    pub(crate) fn has_capacity(&self) -> bool {
        self.held.load(Ordering::SeqCst).saturating_add(self.posted.load(Ordering::SeqCst)) < self.limit
    }

    fn queue(&self) -> MutexGuard<'_, BudgetQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity is taken and freed while a task polls: if the poll is pending, the task is in the queue or was woken.
    #[test]
    fn a_task_that_has_to_wait_is_queued_although_the_capacity_changes_meanwhile() {
        let budget = OutputBudget::new(1, 0);
        let mut pending = 0;
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                for turn in 0..4_000_000 {
                    budget.held.store(turn % 2, Ordering::SeqCst);
                }
            });
            while !driver.is_finished() {
                let mut entry = BudgetQueueEntry::default();
                if budget.poll(&mut entry, &mut Context::from_waker(Waker::noop())).is_pending() {
                    pending += 1;
                    assert!(entry.0.is_some(), "pending, but not in the queue: nothing would wake the task");
                }
                budget.leave_queue(&mut entry);
            }
        });
        assert!(pending > 0);
    }
}
