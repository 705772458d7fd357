//! The tasks that a client follows, and the cancellations that it has not finished sending. A client that is closed
//! cancels the former and waits for the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::TaskProtocol;
use crate::runtime::CallSlot;

/// The tasks of one client.
pub(crate) struct FollowedTaskRegistry {
    state: Mutex<FollowedTaskRegistryState>,
    /// How many [`TaskCancellationCountGuard`]s there are.
    cancellations: watch::Sender<usize>,
    /// One permit for each `tasks/cancel` request that may be in flight.
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct FollowedTaskRegistryState {
    last_number: u64,
    entries: BTreeMap<u64, FollowedTaskEntry>,
    /// The ids of tasks that [`FollowedTaskRegistry::claim_all`] has returned: their followers must not cancel them as well.
    claimed: BTreeSet<String>,
}

enum FollowedTaskEntry {
    /// A request that may become a task. Its response may have arrived without being read.
    Request(Arc<CallSlot>, TaskProtocol),
    /// A task with this id.
    Task(String),
}

impl FollowedTaskEntry {
    /// The id of the task, if the server has turned the request into one by now.
    fn task_id(&self) -> Option<String> {
        match self {
            Self::Request(slot, kind) => {
                slot.peek_result(|response| kind.created_task(response)).flatten().map(|task| task.task_id)
            }
            Self::Task(id) => Some(id.clone()),
        }
    }
}

/// The entry of a request or task. Its holder removes it, and is then responsible for cancelling the task.
pub(crate) struct FollowedTaskRegistration {
    registry: Arc<FollowedTaskRegistry>,
    number: u64,
}

/// A cancellation that is not finished. Dropping this ends the count for it.
pub(crate) struct TaskCancellationCountGuard(Arc<FollowedTaskRegistry>);

impl FollowedTaskRegistry {
    /// `max_cancellations`: how many `tasks/cancel` requests may be in flight at once.
    pub(crate) fn new(max_cancellations: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            cancellations: watch::Sender::default(),
            permits: Arc::new(Semaphore::new(max_cancellations.clamp(1, Semaphore::MAX_PERMITS))),
        })
    }

    /// Adds an entry for a task that is followed from now on.
    pub(crate) fn register_task(self: &Arc<Self>, task_id: &str) -> FollowedTaskRegistration {
        let mut state = self.lock();
        let claimed = state.claimed.contains(task_id);
        self.register(&mut state, (!claimed).then(|| FollowedTaskEntry::Task(task_id.to_owned())))
    }

    /// Adds an entry for a request that may become a task.
    pub(crate) fn register_call(self: &Arc<Self>, slot: Arc<CallSlot>, kind: TaskProtocol) -> FollowedTaskRegistration {
        self.register(&mut self.lock(), Some(FollowedTaskEntry::Request(slot, kind)))
    }

    fn register(
        self: &Arc<Self>,
        state: &mut FollowedTaskRegistryState,
        work: Option<FollowedTaskEntry>,
    ) -> FollowedTaskRegistration {
        state.last_number = state.last_number.wrapping_add(1);
        let number = state.last_number;
        if let Some(work) = work {
            state.entries.insert(number, work);
        }
        FollowedTaskRegistration { registry: Arc::clone(self), number }
    }

    /// Removes and returns all tasks. The caller cancels them, in place of those that follow them.
    pub(crate) fn claim_all(self: &Arc<Self>) -> Vec<(String, TaskCancellationCountGuard)> {
        let mut state = self.lock();
        let FollowedTaskRegistryState { entries, claimed, .. } = &mut *state;
        let mut tasks = Vec::new();
        entries.retain(|_, work| match work.task_id() {
            Some(id) => {
                claimed.insert(id.clone());
                tasks.push((id, self.begin_cancellation()));
                false
            }
            None => true,
        });
        tasks
    }

    /// Counts a cancellation that is about to be sent, until the returned value is dropped.
    pub(crate) fn begin_cancellation(self: &Arc<Self>) -> TaskCancellationCountGuard {
        self.cancellations.send_modify(|count| *count += 1);
        TaskCancellationCountGuard(Arc::clone(self))
    }

    /// Whether a cancellation is not finished.
    pub(crate) fn is_cancelling(&self) -> bool {
        *self.cancellations.borrow() > 0
    }

    /// Waits until all cancellations are finished.
    pub(crate) async fn wait_until_cancelled(&self) {
        // Never an error: the sender is a field of this.
        let _ = self.cancellations.subscribe().wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, FollowedTaskRegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FollowedTaskRegistration {
    /// Removes the entry. `None` if it was claimed, and the task is cancelled by the close of the client. Otherwise the
    /// task counts as being cancelled from the same instant, until the returned value is dropped: the caller decides
    /// whether the cancellation is needed.
    pub(crate) fn remove(&self) -> Option<TaskCancellationCountGuard> {
        let mut state = self.registry.lock();
        state.entries.remove(&self.number).map(|_| self.registry.begin_cancellation())
    }
}

impl TaskCancellationCountGuard {
    /// A permit to send the cancellation, if one is free.
    pub(crate) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.permits).try_acquire_owned().ok()
    }

    /// Waits for a permit to send the cancellation.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // Never an error: the semaphore is never closed.
        Arc::clone(&self.0.permits).acquire_owned().await.ok()
    }
}

impl Drop for TaskCancellationCountGuard {
    fn drop(&mut self) {
        self.0.cancellations.send_modify(|count| *count = count.saturating_sub(1));
    }
}
