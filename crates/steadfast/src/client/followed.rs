//! The tasks that a client follows, and those that it has cancelled: a client that is closed does not leave before their server
//! has heard of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The tasks of one client.
#[derive(Default)]
pub(super) struct Followed {
    state: Mutex<State>,
    /// How many cancellations are on their way.
    cancelling: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    next: u64,
    tasks: BTreeMap<u64, String>,
}

/// One that is followed. Whoever holds this has to see to its end.
pub(super) struct Place {
    followed: Arc<Followed>,
    number: u64,
}

/// A cancellation on its way, until this is dropped.
pub(super) struct Cancelling(Arc<Followed>);

impl Followed {
    pub(super) fn enter(self: &Arc<Self>, task_id: &str) -> Place {
        let mut state = self.lock();
        state.next = state.next.wrapping_add(1);
        let number = state.next;
        state.tasks.insert(number, task_id.to_owned());
        drop(state);
        Place { followed: Arc::clone(self), number }
    }

    /// All that are followed. Whoever takes them sees to their end in the place of those who follow them.
    pub(super) fn take_all(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().tasks).into_values().collect()
    }

    /// A cancellation is about to be sent.
    pub(super) fn begin_cancelling(self: &Arc<Self>) -> Cancelling {
        self.cancelling.send_modify(|count| *count += 1);
        Cancelling(Arc::clone(self))
    }

    /// Waits until no cancellation is on its way.
    pub(super) async fn wait_until_cancelled(&self) {
        // The sender is here, so there is one.
        let _ = self.cancelling.subscribe().wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// It is followed no more, and is to be cancelled; `None` if somebody else sees to its end. In one step: whoever closes the
    /// client between the two would find nothing to wait for.
    pub(super) fn leave(&self) -> Option<Cancelling> {
        let mut state = self.followed.lock();
        state.tasks.remove(&self.number).map(|_| self.followed.begin_cancelling())
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.cancelling.send_modify(|count| *count = count.saturating_sub(1));
    }
}
