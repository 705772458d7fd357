//! The HTTP requests of a connection: futures that its driver polls, each aborted by dropping its handle.
//!
//! They are part of the driver, and not tasks of a runtime: a response costs no switch from one task to another, and nothing of
//! a connection outlives its driver.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use steadfast_proto::mutant;
use tokio::task::coop;

use crate::runtime::{RuntimeTask, drop_catching_panics, poll_catching_panics};

/// How many tasks one poll of the driver polls, before it yields to others on its thread.
const MAX_POLLS: usize = 64;

/// The tasks of one driver. Only those that were woken are polled. `T` is what a task that panicked is replaced by.
pub(crate) struct HttpClientTasks<T> {
    futures: FuturesUnordered<HttpClientTaskFuture<T>>,
    /// How many more tasks may be polled in this poll of the driver.
    polls_left: Arc<AtomicUsize>,
}

/// The handle of a task. Dropping it aborts the task.
pub(crate) struct HttpClientTaskHandle(Arc<SharedHttpTaskState>);

/// Shared by a task and its handle.
#[derive(Default)]
struct SharedHttpTaskState(Mutex<HttpClientTaskState>);

#[derive(Default)]
struct HttpClientTaskState {
    /// The handle was dropped.
    aborted: bool,
    /// The task has ended, in whatever way.
    over: bool,
    /// Wakes the task.
    task: Option<Waker>,
    /// Wakes the owner of the handle, which waits for the end of the task.
    owner: Option<Waker>,
}

impl<T> HttpClientTasks<T> {
    pub(crate) fn new() -> Self {
        Self { futures: FuturesUnordered::new(), polls_left: Arc::new(AtomicUsize::new(MAX_POLLS)) }
    }

    /// Begins a poll of the driver, which polls a limited number of tasks.
    pub(crate) fn begin_poll(&self) {
        self.polls_left.store(MAX_POLLS, Ordering::Relaxed);
    }

    /// Adds a task. If it panics, [`poll`](Self::poll) returns what `on_panic` returns.
    pub(crate) fn push(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
        on_panic: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> HttpClientTaskHandle {
        let link = Arc::new(SharedHttpTaskState::default());
        self.futures.push(HttpClientTaskFuture {
            task: Some(Box::pin(task)),
            on_panic: Some(Box::new(on_panic)),
            polls_left: Arc::clone(&self.polls_left),
            link: Arc::clone(&link),
        });
        HttpClientTaskHandle(link)
    }

    /// Polls the tasks. Ready when one has ended: with what replaces it, if it panicked.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match Pin::new(&mut self.futures).poll_next(cx) {
            Poll::Ready(Some(replacement)) => Poll::Ready(replacement),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl HttpClientTaskHandle {
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

impl Drop for HttpClientTaskHandle {
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

impl SharedHttpTaskState {
    fn lock(&self) -> MutexGuard<'_, HttpClientTaskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct HttpClientTaskFuture<T> {
    task: Option<RuntimeTask>,
    on_panic: Option<Box<dyn FnOnce() -> Option<T> + Send>>,
    polls_left: Arc<AtomicUsize>,
    link: Arc<SharedHttpTaskState>,
}

// No field is pinned.
impl<T> Unpin for HttpClientTaskFuture<T> {}

impl<T> Future for HttpClientTaskFuture<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        let polls_left = this.polls_left.load(Ordering::Relaxed);
        if polls_left == 0 || !coop::has_budget_remaining() {
            // All tasks share tokio's budget of the driver, and tokio defers the wakes of those that it sends away, which the set
            // does not notice: it would poll them all. Two that wake themselves make it yield.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        this.polls_left.store(polls_left - 1, Ordering::Relaxed);
        let mut state = this.link.lock();
        if state.aborted {
            return Poll::Ready(None);
        }
        state.task = Some(cx.waker().clone());
        drop(state);
        let Some(task) = &mut this.task else { return Poll::Ready(None) };
        match poll_catching_panics(task.as_mut(), cx) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(None),
            Err(_) => Poll::Ready(this.on_panic.take().and_then(|on_panic| on_panic())),
        }
    }
}

/// Marks the HTTP request as ended when its future is dropped, so that one whose future panics counts as ended too.
impl<T> Drop for HttpClientTaskFuture<T> {
    fn drop(&mut self) {
        drop_catching_panics(self.task.take());
        let mut state = self.link.lock();
        state.over = true;
        let owner = state.owner.take();
        drop(state);
        if let Some(owner) = owner {
            owner.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};

    use tokio::sync::oneshot;

    use super::*;

    /// Polls the tasks until one has ended.
    async fn ended(tasks: &mut HttpClientTasks<&'static str>) -> Option<&'static str> {
        poll_fn(|cx| {
            tasks.begin_poll();
            tasks.poll(cx)
        })
        .await
    }

    #[tokio::test]
    async fn tasks_that_are_ready_are_polled_once_however_many_there_are() {
        const TASKS: usize = 4_096;
        let (polls, mut tasks) = (Arc::new(AtomicUsize::new(0)), HttpClientTasks::new());
        let mut handles = Vec::new();
        for _ in 0..TASKS {
            let (sender, mut receiver) = oneshot::channel();
            sender.send(()).unwrap();
            let polls = Arc::clone(&polls);
            let task = poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                Pin::new(&mut receiver).poll(cx).map(drop)
            });
            handles.push(tasks.push(task, || Some("panicked")));
        }
        // In a task of its own, which has a budget.
        let polling = tokio::spawn(async move {
            for _ in 0..TASKS {
                ended(&mut tasks).await;
            }
        });
        polling.await.unwrap();
        assert!(handles.iter().all(HttpClientTaskHandle::is_over));
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls <= 2 * TASKS, "{polls}");
    }

    #[tokio::test]
    async fn a_task_that_panics_is_over_and_replaced() {
        let mut tasks = HttpClientTasks::new();
        let task = tasks.push(async { panic!("on purpose") }, || Some("panicked"));
        assert_eq!(ended(&mut tasks).await, Some("panicked"));
        assert!(task.is_over());
    }

    #[tokio::test]
    async fn a_task_that_finishes_is_over() {
        let mut tasks = HttpClientTasks::new();
        let task = tasks.push(async {}, || Some("panicked"));
        assert!(!task.is_over());
        assert_eq!(ended(&mut tasks).await, None);
        assert!(task.is_over());
    }

    #[tokio::test]
    async fn a_task_that_is_aborted_is_dropped_and_not_replaced() {
        let (held, dropped) = oneshot::channel::<()>();
        let mut tasks = HttpClientTasks::new();
        let task = tasks.push(
            async move {
                pending::<()>().await;
                drop(held);
            },
            || Some("panicked"),
        );
        assert!(poll_fn(|cx| Poll::Ready(tasks.poll(cx).is_pending())).await);
        drop(task);
        assert_eq!(ended(&mut tasks).await, None);
        assert!(dropped.await.is_err());
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
        let mut tasks = HttpClientTasks::new();
        let task = tasks.push(
            async move {
                tokio::task::yield_now().await;
                drop(rest);
            },
            || Some("panicked"),
        );
        ended(&mut tasks).await;
        assert!(task.is_over());
    }
}
