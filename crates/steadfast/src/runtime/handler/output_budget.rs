//! Room for answers: the budgets of bytes that cover what is encoded and not yet written (law L7).
//!
//! A handler waits for room before it begins, and its answer before it is posted. It is not a lock: several may see the last
//! room at once and overshoot by their own answers. Answers of handlers that began while there was room, and ended when
//! there was none, are parked, which has a budget of its own: past it an answer is replaced by a short error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many that wait are woken in one turn of the driver: enough to keep it busy, few enough not to overshoot.
const WOKEN_AT_ONCE: usize = 32;

pub(crate) struct OutputBudget {
    budget: usize,
    parking: usize,
    /// Bytes that the driver holds, as of its last turn.
    held: AtomicUsize,
    /// Bytes in the mailbox.
    posted: AtomicUsize,
    /// Bytes of answers that wait for room.
    parked: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Those who wait, in the order in which they came.
    waiting: BTreeMap<u64, Waker>,
    next: u64,
}

/// A place in the queue. Whoever stops waiting gives it back, or its waker would stay.
#[derive(Debug, Default)]
pub(crate) struct BudgetQueueEntry(Option<u64>);

impl OutputBudget {
    pub(crate) fn new(budget: usize, parking: usize) -> Self {
        Self {
            budget,
            parking,
            held: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            queue: Mutex::default(),
        }
    }

    /// Ready when there is room; else in the queue, so that a turn of the driver that makes room wakes the task.
    pub(crate) fn poll(&self, place: &mut BudgetQueueEntry, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_free() {
            self.wait(place, cx);
            // It may have become free before the waker was in the queue.
            if !self.is_free() {
                return Poll::Pending;
            }
        }
        self.leave(place);
        Poll::Ready(())
    }

    /// Takes a place in the queue, or the one that it had.
    fn wait(&self, place: &mut BudgetQueueEntry, cx: &mut Context<'_>) {
        let mut queue = self.queue();
        let number = place.0.unwrap_or(queue.next);
        queue.next = queue.next.max(number + 1);
        queue.waiting.insert(number, cx.waker().clone());
        place.0 = Some(number);
    }

    /// Gives up a place in the queue.
    pub(crate) fn leave(&self, place: &mut BudgetQueueEntry) {
        if let Some(number) = place.0.take() {
            self.queue().waiting.remove(&number);
        }
    }

    /// Parks an answer of that size, if it may be. To be taken out with [`OutputBudget::unpark`].
    pub(crate) fn park(&self, bytes: usize) -> bool {
        let parked = self.parked.fetch_add(bytes, Ordering::SeqCst);
        let fits = parked.saturating_add(bytes) <= self.parking;
        if !fits {
            self.unpark(bytes);
        }
        fits
    }

    pub(crate) fn unpark(&self, bytes: usize) {
        self.parked.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// An answer of that size was posted.
    pub(crate) fn post(&self, bytes: usize) {
        self.posted.fetch_add(bytes, Ordering::SeqCst);
    }

    /// The driver took that many bytes from the mailbox.
    pub(crate) fn collect(&self, bytes: usize) {
        self.posted.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// The driver now holds this many bytes. Wakes some that wait, if there is room; returns whether more still wait.
    pub(crate) fn update(&self, held: usize) -> bool {
        self.held.store(held, Ordering::SeqCst);
        if !self.is_free() {
            return false;
        }
        let mut queue = self.queue();
        let mut woken = Vec::new();
        while woken.len() < WOKEN_AT_ONCE
            && let Some((_, waker)) = queue.waiting.pop_first()
        {
            woken.push(waker);
        }
        let more = !queue.waiting.is_empty();
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
        more
    }

    /// Nobody will make room any more: all that wait may go on.
    pub(crate) fn open(&self) {
        self.held.store(0, Ordering::SeqCst);
        self.posted.store(0, Ordering::SeqCst);
        let woken = std::mem::take(&mut self.queue().waiting);
        woken.into_values().for_each(Waker::wake);
    }

    pub(crate) fn is_free(&self) -> bool {
        self.held.load(Ordering::SeqCst).saturating_add(self.posted.load(Ordering::SeqCst)) < self.budget
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room is taken and freed while somebody asks for it: whoever is told to wait is in the queue, or was woken.
    #[test]
    fn whoever_waits_has_a_place_however_the_room_changes_meanwhile() {
        let budget = OutputBudget::new(1, 0);
        let mut told_to_wait = 0;
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| {
                for turn in 0..4_000_000 {
                    budget.held.store(turn % 2, Ordering::SeqCst);
                }
            });
            while !driver.is_finished() {
                let mut place = BudgetQueueEntry::default();
                if budget.poll(&mut place, &mut Context::from_waker(Waker::noop())).is_pending() {
                    told_to_wait += 1;
                    assert!(place.0.is_some(), "told to wait without a place in the queue: nobody would wake it");
                }
                budget.leave(&mut place);
            }
        });
        assert!(told_to_wait > 0);
    }
}
