//! The output budget of a connection: the maximum number of bytes that are encoded and not yet written (law L7).
//!
//! A handler waits for free bytes in the output budget before it starts, and its response waits for free bytes before
//! it goes to the driver. The output budget is not a lock: several handlers may see the last free bytes at once, and
//! exceed the budget by their responses. If a handler started while the output budget had free bytes, and returns when
//! it has none, its response is parked. Parked responses have a limit of their own; a response that exceeds this limit
//! is replaced by a short error. Parked responses go first: no handler starts on free bytes that parked responses will
//! fill.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The maximum number of handlers waiting for output budget that the driver wakes in one turn: enough to keep the
/// driver busy, few enough that their responses exceed the budget only a little.
const MAX_WAKES_PER_TURN: usize = 32;

pub(crate) struct OutputBudget {
    /// The limit of the output budget, in bytes.
    limit: usize,
    /// The limit of all parked responses, in bytes.
    parked_limit: usize,
    /// The encoded bytes that the driver holds and has not written, as of its last turn.
    held: AtomicUsize,
    /// The bytes of the responses in the driver's mailbox.
    posted: AtomicUsize,
    /// The bytes of all parked responses.
    parked: AtomicUsize,
    /// Whether the connection is closed: then no output is written any more, and nothing waits for the output budget.
    closed: AtomicBool,
    queue: Mutex<OutputBudgetQueue>,
    /// Whether handlers wait to start, so that the queue need not be locked to find out.
    starts_wait: AtomicBool,
}

/// What a handler task waits for in the queue of the output budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OutputBudgetWaitReason {
    /// The handler task waits for output budget to send a parked response to the driver.
    Respond,
    /// The handler task waits for output budget to start its handler.
    Start,
}

#[derive(Default)]
struct OutputBudgetQueue {
    /// The wakers of handler tasks that wait for output budget: first those with a parked response, then those with a
    /// handler to start, each from the oldest to the newest.
    waiting: BTreeMap<(OutputBudgetWaitReason, u64), Waker>,
    next: u64,
}

/// The position of a handler task in the queue of the output budget. A task that stops waiting has to
/// [leave](OutputBudget::leave_queue) the queue, or its waker would stay in the queue.
#[derive(Debug, Default)]
pub(crate) struct OutputBudgetQueuePosition(Option<(OutputBudgetWaitReason, u64)>);

impl OutputBudget {
    pub(crate) fn new(limit: usize, parked_limit: usize) -> Self {
        Self {
            limit,
            parked_limit,
            held: AtomicUsize::new(0),
            posted: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            queue: Mutex::default(),
            starts_wait: AtomicBool::new(false),
        }
    }

    /// Ready when the output budget has free bytes for this use. If the output budget has no free bytes, the handler
    /// task is queued, and is woken when bytes of the budget are freed.
    pub(crate) fn poll(
        &self,
        wanted: OutputBudgetWaitReason,
        entry: &mut OutputBudgetQueuePosition,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if !self.has_capacity_to(wanted) {
            self.enqueue(wanted, entry, cx);
            // Capacity may have been freed before the waker was in the queue.
            if !self.has_capacity_to(wanted) {
                return Poll::Pending;
            }
        }
        self.leave_queue(entry);
        if wanted == OutputBudgetWaitReason::Start && self.starts_wait.load(Ordering::SeqCst) {
            // Each handler that starts wakes the next one, which sees whether there is capacity left.
            self.wake_waiting(1);
        }
        Poll::Ready(())
    }

    /// Puts a handler task into the queue of the output budget, or updates the waker of a queued task.
    fn enqueue(&self, wanted: OutputBudgetWaitReason, entry: &mut OutputBudgetQueuePosition, cx: &mut Context<'_>) {
        let mut queue = self.queue();
        let number = entry.0.map_or(queue.next, |(_, number)| number);
        queue.next = queue.next.max(number + 1);
        queue.waiting.insert((wanted, number), cx.waker().clone());
        entry.0 = Some((wanted, number));
        self.note_waiting_starts(&queue);
    }

    /// Removes a handler task from the queue of the output budget.
    pub(crate) fn leave_queue(&self, entry: &mut OutputBudgetQueuePosition) {
        if let Some(position) = entry.0.take() {
            let mut queue = self.queue();
            queue.waiting.remove(&position);
            self.note_waiting_starts(&queue);
        }
    }

    /// Counts a response of this size as parked, if the limit for parked responses allows it, and returns whether it
    /// does. Undone by [`OutputBudget::unpark`].
    pub(crate) fn park(&self, bytes: usize) -> bool {
        let parked = self.parked.fetch_add(bytes, Ordering::SeqCst);
        let fits = parked.saturating_add(bytes) <= self.parked_limit;
        if !fits {
            self.unpark(bytes);
        }
        fits
    }

    /// Called when a parked response was sent to the driver or dropped. Wakes a handler that may have waited only for
    /// this response.
    pub(crate) fn unpark(&self, bytes: usize) {
        self.parked.fetch_sub(bytes, Ordering::SeqCst);
        if self.starts_wait.load(Ordering::SeqCst) {
            self.wake_waiting(1);
        }
    }

    /// Counts a response of this size that was put into the driver's mailbox.
    pub(crate) fn add_posted(&self, bytes: usize) {
        self.posted.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Subtracts the bytes of the responses that the driver took from its mailbox.
    pub(crate) fn subtract_posted(&self, bytes: usize) {
        self.posted.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Sets the number of unwritten bytes that the driver holds. If the output budget then has free bytes, wakes some
    /// of the handler tasks that wait for them, and returns whether more of these tasks could be woken.
    pub(crate) fn set_held(&self, held: usize) -> bool {
        self.held.store(held, Ordering::SeqCst);
        self.wake_waiting(MAX_WAKES_PER_TURN)
    }

    /// Wakes up to `most` handler tasks for which the output budget has capacity. Returns whether more waiting
    /// handler tasks could be woken.
    fn wake_waiting(&self, most: usize) -> bool {
        if !self.has_capacity_to(OutputBudgetWaitReason::Respond) {
            return false;
        }
        let mut queue = self.queue();
        let mut woken = Vec::new();
        while woken.len() < most && self.next_is_waiting(&queue) {
            woken.extend(queue.waiting.pop_first().map(|(_, waker)| waker));
        }
        let more = self.next_is_waiting(&queue);
        self.note_waiting_starts(&queue);
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
        more
    }

    /// Whether the output budget has free bytes for the next one that waits: the first parked response, or the first handler
    /// if no parked response waits.
    fn next_is_waiting(&self, queue: &OutputBudgetQueue) -> bool {
        queue.waiting.first_key_value().is_some_and(|((wanted, _), _)| self.has_capacity_to(*wanted))
    }

    /// Lets all handler tasks that wait for output budget go on, because the connection is closed and no driver will
    /// free bytes any more.
    pub(crate) fn release_all(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let mut queue = self.queue();
        let woken = std::mem::take(&mut queue.waiting);
        self.note_waiting_starts(&queue);
        drop(queue);
        woken.into_values().for_each(Waker::wake);
    }

    pub(crate) fn has_capacity_to(&self, wanted: OutputBudgetWaitReason) -> bool {
        let unwritten = self.held.load(Ordering::SeqCst).saturating_add(self.posted.load(Ordering::SeqCst));
        let parked = match wanted {
            OutputBudgetWaitReason::Start => self.parked.load(Ordering::SeqCst),
            OutputBudgetWaitReason::Respond => 0,
        };
        unwritten.saturating_add(parked) < self.limit || self.closed.load(Ordering::SeqCst)
    }

    fn note_waiting_starts(&self, queue: &OutputBudgetQueue) {
        // They are at the end.
        let starts =
            queue.waiting.last_key_value().is_some_and(|((wanted, _), _)| *wanted == OutputBudgetWaitReason::Start);
        self.starts_wait.store(starts, Ordering::SeqCst);
    }

    fn queue(&self) -> MutexGuard<'_, OutputBudgetQueue> {
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
                let mut entry = OutputBudgetQueuePosition::default();
                if budget
                    .poll(OutputBudgetWaitReason::Start, &mut entry, &mut Context::from_waker(Waker::noop()))
                    .is_pending()
                {
                    pending += 1;
                    assert!(entry.0.is_some(), "pending, but not in the queue: nothing would wake the task");
                }
                budget.leave_queue(&mut entry);
            }
        });
        assert!(pending > 0);
    }

    fn wait(budget: &OutputBudget, wanted: OutputBudgetWaitReason, entry: &mut OutputBudgetQueuePosition) -> bool {
        budget.poll(wanted, entry, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Seed 40001093438 of the world `shell`: a cancelled subscription freed a few bytes, and a handler started in them although a
    /// finished response waited for the same bytes.
    #[test]
    fn no_handler_starts_in_capacity_that_parked_responses_will_fill() {
        let budget = OutputBudget::new(100, 1_000);
        budget.set_held(100);
        assert!(budget.park(80));
        let (mut response, mut start) = (OutputBudgetQueuePosition::default(), OutputBudgetQueuePosition::default());
        assert!(
            !wait(&budget, OutputBudgetWaitReason::Start, &mut start)
                && !wait(&budget, OutputBudgetWaitReason::Respond, &mut response)
        );
        budget.set_held(30);
        assert!(!wait(&budget, OutputBudgetWaitReason::Start, &mut start));
        assert!(wait(&budget, OutputBudgetWaitReason::Respond, &mut response));
        budget.unpark(80);
        assert!(wait(&budget, OutputBudgetWaitReason::Start, &mut start));
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct CountWakes(AtomicUsize);

    impl std::task::Wake for CountWakes {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_parked_response_that_is_dropped_lets_the_next_handler_start_and_that_one_wakes_the_next() {
        let budget = OutputBudget::new(100, 1_000);
        budget.set_held(30);
        assert!(budget.park(80));
        let wakes = [(); 2].map(|()| std::sync::Arc::new(CountWakes::default()));
        let mut entries = [(); 2].map(|()| OutputBudgetQueuePosition::default());
        for (wakes, entry) in wakes.iter().zip(&mut entries) {
            let waker = Waker::from(std::sync::Arc::clone(wakes));
            assert!(budget.poll(OutputBudgetWaitReason::Start, entry, &mut Context::from_waker(&waker)).is_pending());
        }
        budget.unpark(80);
        assert_eq!([1, 0], [0, 1].map(|index: usize| wakes[index].0.load(Ordering::SeqCst)));
        assert!(wait(&budget, OutputBudgetWaitReason::Start, &mut entries[0]));
        assert_eq!(wakes[1].0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn nothing_waits_once_the_connection_is_closed() {
        let budget = OutputBudget::new(100, 1_000);
        budget.set_held(100);
        assert!(budget.park(80));
        budget.release_all();
        assert!(wait(&budget, OutputBudgetWaitReason::Start, &mut OutputBudgetQueuePosition::default()));
        assert!(wait(&budget, OutputBudgetWaitReason::Respond, &mut OutputBudgetQueuePosition::default()));
    }
}
