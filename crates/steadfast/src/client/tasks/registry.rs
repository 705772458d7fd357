//! The MCP tasks that a client follows, and the cancellations of MCP tasks that are not finished. A client that is
//! closed cancels the tasks that it follows, and waits until all cancellations are finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::TaskProtocol;
use crate::runtime::CallSlot;

/// The MCP tasks that one client cancels when it is closed, and the requests that may still become such tasks.
pub(crate) struct FollowedTaskRegistry {
    state: Mutex<FollowedTaskRegistryState>,
    /// The current number of [`TaskCancellationCountGuard`]s: of task cancellations that are not finished.
    cancellations: watch::Sender<usize>,
    /// One permit for each `tasks/cancel` request that may be in flight.
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct FollowedTaskRegistryState {
    last_number: u64,
    entries: BTreeMap<u64, FollowedTaskEntry>,
    /// The ids of the MCP tasks that the close of the client has taken over with [`FollowedTaskRegistry::claim_all`]:
    /// the close cancels them, their followers do not.
    claimed: BTreeSet<String>,
}

enum FollowedTaskEntry {
    /// A request that may become an MCP task. The response to the request may have arrived without being read.
    Request(Arc<CallSlot>, TaskProtocol),
    /// An MCP task with this id.
    Task(String),
}

impl FollowedTaskEntry {
    /// Returns the id of the MCP task, if the server has turned the request into a task by now.
    fn task_id(&self) -> Option<String> {
        match self {
            Self::Request(slot, kind) => {
                slot.peek_result(|response| kind.created_task(response)).flatten().map(|task| task.task_id)
            }
            Self::Task(id) => Some(id.clone()),
        }
    }
}

/// The entry of a request or MCP task in the registry. The holder of a [`FollowedTaskRegistration`] removes the entry
/// from the registry, and is then responsible for the cancellation of the MCP task.
pub(crate) struct FollowedTaskRegistration {
    registry: Arc<FollowedTaskRegistry>,
    number: u64,
}

/// Counts a cancellation of an MCP task as not finished, until this guard is dropped.
pub(crate) struct TaskCancellationCountGuard(Arc<FollowedTaskRegistry>);

impl FollowedTaskRegistry {
    /// `max_cancellations`: the maximum number of `tasks/cancel` requests in flight at once.
    pub(crate) fn new(max_cancellations: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            cancellations: watch::Sender::default(),
            permits: Arc::new(Semaphore::new(max_cancellations.clamp(1, Semaphore::MAX_PERMITS))),
        })
    }

    /// Adds an entry for an MCP task that is followed from now on.
    pub(crate) fn register_task(self: &Arc<Self>, task_id: &str) -> FollowedTaskRegistration {
        let mut state = self.lock();
        let claimed = state.claimed.contains(task_id);
        self.register(&mut state, (!claimed).then(|| FollowedTaskEntry::Task(task_id.to_owned())))
    }

    /// Adds an entry for a request that may become an MCP task.
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

    /// Takes all MCP tasks out of the registry, for the close of the client. The close of the client cancels the MCP
    /// tasks in place of their followers.
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

    /// Counts the cancellation of an MCP task that is about to be sent, until the returned guard is dropped.
    pub(crate) fn begin_cancellation(self: &Arc<Self>) -> TaskCancellationCountGuard {
        self.cancellations.send_modify(|count| *count += 1);
        TaskCancellationCountGuard(Arc::clone(self))
    }

    /// Whether a cancellation of an MCP task is not finished.
    pub(crate) fn is_cancelling(&self) -> bool {
        *self.cancellations.borrow() > 0
    }

    /// Waits until all cancellations of MCP tasks are finished.
    pub(crate) async fn wait_until_cancelled(&self) {
        // Never an error: the sender is a field of this.
        let _ = self.cancellations.subscribe().wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, FollowedTaskRegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FollowedTaskRegistration {
    /// Removes the entry from the registry. Returns `None` if the close of the client has taken over the MCP task and
    /// cancels it. Any other removed task counts as being cancelled at once, until the returned guard is dropped: the
    /// caller of this function decides whether the task has to be cancelled.
    pub(crate) fn remove(&self) -> Option<TaskCancellationCountGuard> {
        let mut state = self.registry.lock();
        state.entries.remove(&self.number).map(|_| self.registry.begin_cancellation())
    }
}

impl TaskCancellationCountGuard {
    /// Returns a permit to send a `tasks/cancel` request, if a permit is free.
    pub(crate) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.permits).try_acquire_owned().ok()
    }

    /// Waits for a permit to send a `tasks/cancel` request.
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
