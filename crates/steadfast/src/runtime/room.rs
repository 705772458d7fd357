//! Room for answers: the one budget of bytes that covers what is encoded and not yet written (law L7).
//!
//! A handler waits for room before it begins and before its answer is encoded. It is not a lock: several may see the last
//! room at once and overshoot by their own answers, so the bound is the budget and one answer for each worker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many that wait are woken in one turn of the driver: enough to keep it busy, few enough not to overshoot.
const WOKEN_AT_ONCE: usize = 32;

pub(super) struct Room {
    budget: usize,
    /// Bytes that the driver holds, as of its last turn.
    held: AtomicUsize,
    /// Bytes in the mailbox.
    posted: AtomicUsize,
    waiting: Mutex<VecDeque<Waker>>,
}

impl Room {
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, held: AtomicUsize::new(0), posted: AtomicUsize::new(0), waiting: Mutex::default() }
    }

    /// Ready when there is room.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_free() {
            return Poll::Ready(());
        }
        self.waiting().push_back(cx.waker().clone());
        // It may have become free before the waker was in the list.
        if self.is_free() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// An answer of that size was posted.
    pub(super) fn post(&self, bytes: usize) {
        self.posted.fetch_add(bytes, Ordering::SeqCst);
    }

    /// The driver took that many bytes from the mailbox.
    pub(super) fn collect(&self, bytes: usize) {
        self.posted.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// The driver now holds this many bytes. Wakes some that wait, if there is room; returns whether more still wait.
    pub(super) fn update(&self, held: usize) -> bool {
        self.held.store(held, Ordering::SeqCst);
        if !self.is_free() {
            return false;
        }
        let mut waiting = self.waiting();
        if waiting.is_empty() {
            return false;
        }
        let count = waiting.len().min(WOKEN_AT_ONCE);
        let woken: Vec<Waker> = waiting.drain(..count).collect();
        let more = !waiting.is_empty();
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
        more
    }

    /// Nobody will make room any more: all that wait may go on.
    pub(super) fn open(&self) {
        self.held.store(0, Ordering::SeqCst);
        let woken = std::mem::take(&mut *self.waiting());
        woken.into_iter().for_each(Waker::wake);
    }

    fn is_free(&self) -> bool {
        self.held.load(Ordering::SeqCst).saturating_add(self.posted.load(Ordering::SeqCst)) < self.budget
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
