//! Tasks that are given up by dropping what stands for them, on any runtime, and that never end unheard.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast_proto::mutant;

use crate::runtime::{Runtime, Task, drop_catching_panics, poll_catching_panics};

/// Stands for a task. Dropping it gives the task up.
pub(crate) struct RequestTask(Arc<TaskLink>);

/// Between what stands for a task and the task.
#[derive(Default)]
struct TaskLink(Mutex<State>);

#[derive(Default)]
struct State {
    given_up: bool,
    over: bool,
    /// Who polls the task.
    task: Option<Waker>,
    /// Who waits for its end.
    owner: Option<Waker>,
}

impl RequestTask {
    /// Begins a task. If it does not come to its end, because it panics or goes with its runtime, `otherwise` is called in its
    /// place; not if it was given up.
    pub(crate) fn begin(
        runtime: &dyn Runtime,
        task: impl Future<Output = ()> + Send + 'static,
        otherwise: impl FnOnce() + Send + 'static,
    ) -> Self {
        let tether = Arc::new(TaskLink::default());
        runtime.spawn_io(Box::pin(RequestTaskFuture {
            task: Some(Box::pin(task)),
            otherwise: Some(otherwise),
            tether: Arc::clone(&tether),
        }));
        Self(tether)
    }

    /// Whether the task has ended, in whatever way.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().over
    }

    /// Ready when the task has ended, in whatever way.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if state.over {
            return Poll::Ready(());
        }
        state.owner = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for RequestTask {
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

impl TaskLink {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task itself, where it is polled.
struct RequestTaskFuture<F: FnOnce()> {
    task: Option<Task>,
    otherwise: Option<F>,
    tether: Arc<TaskLink>,
}

// Nothing in it is pinned in place.
impl<F: FnOnce()> Unpin for RequestTaskFuture<F> {}

impl<F: FnOnce()> Future for RequestTaskFuture<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let carrying = &mut *self;
        let mut state = carrying.tether.lock();
        if state.given_up {
            return Poll::Ready(());
        }
        state.task = Some(cx.waker().clone());
        drop(state);
        let Some(task) = &mut carrying.task else { return Poll::Ready(()) };
        match poll_catching_panics(task.as_mut(), cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                carrying.otherwise = None;
                Poll::Ready(())
            }
            Err(_) => Poll::Ready(()),
        }
    }
}

/// Over with its last breath, so that one that panics, or goes with its runtime, is over too.
impl<F: FnOnce()> Drop for RequestTaskFuture<F> {
    fn drop(&mut self) {
        drop_catching_panics(self.task.take());
        let mut state = self.tether.lock();
        state.over = true;
        let (owner, given_up) = (state.owner.take(), state.given_up);
        drop(state);
        if let Some(otherwise) = self.otherwise.take().filter(|_| !given_up) {
            otherwise();
        }
        if let Some(owner) = owner {
            owner.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::runtime::TokioRuntime;

    /// Begins a task, and gives what its last word would be.
    fn begin(task: impl Future<Output = ()> + Send + 'static) -> (RequestTask, oneshot::Receiver<()>) {
        let (last, word) = oneshot::channel();
        let runtime = TokioRuntime::current().unwrap();
        let otherwise = move || {
            // Nobody may be there to hear it.
            let _ = last.send(());
        };
        (RequestTask::begin(&runtime, task, otherwise), word)
    }

    async fn over(task: &RequestTask) {
        std::future::poll_fn(|cx| task.poll_over(cx)).await;
    }

    #[tokio::test]
    async fn a_task_that_panics_is_over_and_has_its_last_word() {
        let (task, word) = begin(async { panic!("as it does") });
        over(&task).await;
        assert_eq!(word.await, Ok(()));
    }

    #[tokio::test]
    async fn a_task_that_comes_to_its_end_has_no_last_word() {
        let (task, word) = begin(async {});
        over(&task).await;
        assert!(word.await.is_err());
    }

    #[tokio::test]
    async fn a_task_that_is_given_up_is_dropped_and_has_no_last_word() {
        let (held, dropped) = oneshot::channel::<()>();
        let (task, word) = begin(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        drop(task);
        assert!(dropped.await.is_err() && word.await.is_err());
    }

    /// A destructor that panics is no reason to be waited for.
    #[tokio::test]
    async fn a_task_whose_rest_panics_is_over() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("as it does");
            }
        }
        let rest = Panics;
        let (task, _) = begin(async move {
            tokio::task::yield_now().await;
            drop(rest);
        });
        over(&task).await;
    }
}
