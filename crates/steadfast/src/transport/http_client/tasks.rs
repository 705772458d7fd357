//! Tasks that are given up by dropping what stands for them, on any runtime.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast_proto::mutant;

use crate::runtime::{Runtime, Task};

/// Stands for a task. Dropping it gives the task up.
pub(super) struct Carried(Arc<Shared>);

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    given_up: bool,
    over: bool,
    /// Who polls the task.
    task: Option<Waker>,
    /// Who waits for its end.
    owner: Option<Waker>,
}

impl Carried {
    /// Begins a task.
    pub(super) fn begin(runtime: &dyn Runtime, task: impl Future<Output = ()> + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        runtime.spawn_beside_drivers(Box::pin(Carrying { task: Some(Box::pin(task)), shared: Arc::clone(&shared) }));
        Self(shared)
    }

    /// Ready when the task has ended, in whatever way.
    pub(super) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.over {
            return Poll::Ready(());
        }
        state.owner = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.given_up = !mutant!(KeepTasks);
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task itself, where it is polled.
struct Carrying {
    task: Option<Task>,
    shared: Arc<Shared>,
}

impl Future for Carrying {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let carrying = &mut *self;
        let mut state = carrying.shared.lock();
        if state.given_up {
            drop(state);
            carrying.task = None;
            return Poll::Ready(());
        }
        state.task = Some(cx.waker().clone());
        drop(state);
        carrying.task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx))
    }
}

/// Over with its last breath, so that one that panics, or goes with its runtime, is over too.
impl Drop for Carrying {
    fn drop(&mut self) {
        self.task = None;
        let mut state = self.shared.lock();
        state.over = true;
        let owner = state.owner.take();
        drop(state);
        if let Some(owner) = owner {
            owner.wake();
        }
    }
}
