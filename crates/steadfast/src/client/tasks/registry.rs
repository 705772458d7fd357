//! The tasks that a client follows, and those that it has cancelled: a client that is closed does not leave before their server
//! has heard of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Tasks;
use crate::runtime::CallSlot;

/// The tasks of one client.
pub(crate) struct TaskRegistry {
    state: Mutex<State>,
    /// How many cancellations are on their way, or wait for their turn.
    cancelling: watch::Sender<usize>,
    /// How many more may be on their way.
    turns: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    next: u64,
    places: BTreeMap<u64, RegisteredWork>,
    /// Those that were taken by who closes the client. Nobody else has to see to their end.
    taken: BTreeSet<String>,
}

/// What has a place.
enum RegisteredWork {
    /// A call that may become a task, and may have without anybody's having looked.
    Asking(Arc<CallSlot>, Tasks),
    /// A task of that name.
    Task(String),
}

impl RegisteredWork {
    /// The name of the task that it is known to be.
    fn task(&self) -> Option<String> {
        match self {
            Self::Asking(slot, tasks) => {
                slot.peek_result(|answer| tasks.begun_by(answer)).flatten().map(|task| task.task_id)
            }
            Self::Task(name) => Some(name.clone()),
        }
    }
}

/// One that is followed. Whoever holds this has to see to its end.
pub(crate) struct TaskEntry {
    followed: Arc<TaskRegistry>,
    number: u64,
}

/// A cancellation on its way, until this is dropped.
pub(crate) struct PendingCancellation(Arc<TaskRegistry>);

impl TaskRegistry {
    /// So many cancellations may be on their way at once.
    pub(crate) fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            cancelling: watch::Sender::default(),
            turns: Arc::new(Semaphore::new(at_once.clamp(1, Semaphore::MAX_PERMITS))),
        })
    }

    /// A task is followed from here on.
    pub(crate) fn enter(self: &Arc<Self>, task_id: &str) -> TaskEntry {
        let mut state = self.lock();
        let known = state.taken.contains(task_id);
        self.entry(&mut state, (!known).then(|| RegisteredWork::Task(task_id.to_owned())))
    }

    /// A call is made that may become a task.
    pub(crate) fn enter_asking(self: &Arc<Self>, slot: Arc<CallSlot>, tasks: Tasks) -> TaskEntry {
        self.entry(&mut self.lock(), Some(RegisteredWork::Asking(slot, tasks)))
    }

    fn entry(self: &Arc<Self>, state: &mut State, what: Option<RegisteredWork>) -> TaskEntry {
        state.next = state.next.wrapping_add(1);
        let number = state.next;
        if let Some(what) = what {
            state.places.insert(number, what);
        }
        TaskEntry { followed: Arc::clone(self), number }
    }

    /// All tasks that there are. Whoever takes them sees to their end in the place of those who follow them.
    pub(crate) fn take_all(self: &Arc<Self>) -> Vec<(String, PendingCancellation)> {
        let mut state = self.lock();
        let State { places, taken, .. } = &mut *state;
        let mut all = Vec::new();
        places.retain(|_, what| match what.task() {
            Some(name) => {
                taken.insert(name.clone());
                all.push((name, self.begin_cancelling()));
                false
            }
            None => true,
        });
        all
    }

    /// A cancellation is about to be sent.
    pub(crate) fn begin_cancelling(self: &Arc<Self>) -> PendingCancellation {
        self.cancelling.send_modify(|count| *count += 1);
        PendingCancellation(Arc::clone(self))
    }

    /// Whether one is.
    pub(crate) fn is_cancelling(&self) -> bool {
        *self.cancelling.borrow() > 0
    }

    /// Waits until no cancellation is on its way.
    pub(crate) async fn wait_until_cancelled(&self) {
        // The sender is here, so there is one.
        let _ = self.cancelling.subscribe().wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskEntry {
    /// It is followed no more. `None` if somebody else sees to its end. Otherwise it counts as being cancelled, without an
    /// instant in which it is neither, until it turns out that it need not be.
    pub(crate) fn leave(&self) -> Option<PendingCancellation> {
        let mut state = self.followed.lock();
        state.places.remove(&self.number).map(|_| self.followed.begin_cancelling())
    }
}

impl PendingCancellation {
    /// Its turn, if it has come.
    pub(crate) fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.turns).try_acquire_owned().ok()
    }

    /// Waits for its turn.
    pub(crate) async fn wait_for_turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.0.turns).acquire_owned().await.ok()
    }
}

impl Drop for PendingCancellation {
    fn drop(&mut self) {
        self.0.cancelling.send_modify(|count| *count = count.saturating_sub(1));
    }
}
