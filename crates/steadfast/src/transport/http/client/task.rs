//! Tasks that are aborted by dropping their handles, on any runtime, and that report when they end without finishing.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast_proto::mutant;

use crate::runtime::{Runtime, RuntimeTask, drop_catching_panics, poll_catching_panics};

/// The handle of a task. Dropping it aborts the task.
pub(crate) struct HttpTaskHandle(Arc<SharedHttpTask>);

/// Shared by a task and its handle.
#[derive(Default)]
struct SharedHttpTask(Mutex<HttpTaskState>);

#[derive(Default)]
struct HttpTaskState {
    /// The handle was dropped.
    aborted: bool,
    /// The task has ended, in whatever way.
    over: bool,
    /// Wakes the task.
    task: Option<Waker>,
    /// Wakes the owner of the handle, which waits for the end of the task.
    owner: Option<Waker>,
}

impl HttpTaskHandle {
    /// Spawns a task. `on_failure` is called if it ends without finishing, because it panics or its runtime shuts down; not if
    /// it was aborted.
    pub(crate) fn spawn(
        runtime: &dyn Runtime,
        task: impl Future<Output = ()> + Send + 'static,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Self {
        let link = Arc::new(SharedHttpTask::default());
        runtime.spawn_io(Box::pin(HttpTaskFuture {
            task: Some(Box::pin(task)),
            on_failure: Some(on_failure),
            link: Arc::clone(&link),
        }));
        Self(link)
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

impl Drop for HttpTaskHandle {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.aborted = !mutant!(KeepAbortedRequests);
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl SharedHttpTask {
    fn lock(&self) -> MutexGuard<'_, HttpTaskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The future that the runtime polls.
struct HttpTaskFuture<F: FnOnce()> {
    task: Option<RuntimeTask>,
    on_failure: Option<F>,
    link: Arc<SharedHttpTask>,
}

// No field is pinned.
impl<F: FnOnce()> Unpin for HttpTaskFuture<F> {}

impl<F: FnOnce()> Future for HttpTaskFuture<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.link.lock();
        if state.aborted {
            return Poll::Ready(());
        }
        state.task = Some(cx.waker().clone());
        drop(state);
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        match poll_catching_panics(task.as_mut(), cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => {
                this.on_failure = None;
                Poll::Ready(())
            }
            Err(_) => Poll::Ready(()),
        }
    }
}

/// Marks the end of the task here, so that a task that panics, or that its runtime drops, has ended too.
impl<F: FnOnce()> Drop for HttpTaskFuture<F> {
    fn drop(&mut self) {
        drop_catching_panics(self.task.take());
        let mut state = self.link.lock();
        state.over = true;
        let (owner, aborted) = (state.owner.take(), state.aborted);
        drop(state);
        if let Some(on_failure) = self.on_failure.take().filter(|_| !aborted) {
            on_failure();
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

    /// Spawns a task, with a channel that is sent to when it fails.
    fn spawn(task: impl Future<Output = ()> + Send + 'static) -> (HttpTaskHandle, oneshot::Receiver<()>) {
        let (sender, failed) = oneshot::channel();
        let runtime = TokioRuntime::current().unwrap();
        let on_failure = move || {
            // The test may not look at it.
            let _ = sender.send(());
        };
        (HttpTaskHandle::spawn(&runtime, task, on_failure), failed)
    }

    async fn over(task: &HttpTaskHandle) {
        std::future::poll_fn(|cx| task.poll_over(cx)).await;
    }

    #[tokio::test]
    async fn a_task_that_panics_is_over_and_has_failed() {
        let (task, failed) = spawn(async { panic!("on purpose") });
        over(&task).await;
        assert_eq!(failed.await, Ok(()));
    }

    #[tokio::test]
    async fn a_task_that_finishes_has_not_failed() {
        let (task, failed) = spawn(async {});
        over(&task).await;
        assert!(failed.await.is_err());
    }

    #[tokio::test]
    async fn a_task_that_is_aborted_is_dropped_and_has_not_failed() {
        let (held, dropped) = oneshot::channel::<()>();
        let (task, failed) = spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        drop(task);
        assert!(dropped.await.is_err() && failed.await.is_err());
    }

    #[tokio::test]
    async fn a_task_whose_destructor_panics_is_over() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }
        let rest = Panics;
        let (task, _) = spawn(async move {
            tokio::task::yield_now().await;
            drop(rest);
        });
        over(&task).await;
    }
}
