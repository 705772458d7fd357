//! The HTTP requests of a client's connection: futures that its driver polls, each aborted by dropping its handle.
//!
//! The HTTP requests are part of the driver, and not tasks of a runtime: a response costs no switch from one task to
//! another, and nothing of a connection outlives its driver.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use steadfast_proto::mutant;
use tokio::task::coop;

use crate::runtime::{RuntimeTask, drop_catching_panics, poll_catching_panics};

/// The maximum number of HTTP requests that one poll of the driver polls before it yields to other tasks on its thread.
const MAX_POLLS: usize = 64;

/// The HTTP requests of one driver, as futures that the driver polls. Only futures that were woken are polled. `T` is
/// the event that replaces a future that panicked.
pub(crate) struct HttpClientTasks<T> {
    futures: FuturesUnordered<HttpClientTaskFuture<T>>,
    /// The number of HTTP requests that may still be polled in the current poll of the driver.
    polls_left: Arc<AtomicUsize>,
}

/// The handle of an HTTP request of the client. Dropping an `HttpClientTaskHandle` aborts its HTTP request.
pub(crate) struct HttpClientTaskHandle(Arc<SharedHttpTaskState>);

/// The state that the future of an HTTP request and its handle share.
#[derive(Default)]
struct SharedHttpTaskState(Mutex<HttpClientTaskState>);

#[derive(Default)]
struct HttpClientTaskState {
    /// The handle of the HTTP request was dropped, which aborts the request.
    aborted: bool,
    /// The HTTP request has completed, panicked or was aborted.
    over: bool,
    /// Wakes the future of the HTTP request.
    task: Option<Waker>,
    /// Wakes the owner of the handle, which waits for the end of the HTTP request.
    owner: Option<Waker>,
}

impl<T> HttpClientTasks<T> {
    pub(crate) fn new() -> Self {
        Self { futures: FuturesUnordered::new(), polls_left: Arc::new(AtomicUsize::new(MAX_POLLS)) }
    }

    /// Called at the start of each poll of the driver, which polls a limited number of HTTP requests.
    pub(crate) fn begin_poll(&self) {
        self.polls_left.store(MAX_POLLS, Ordering::Relaxed);
    }

    /// Adds the future of an HTTP request. If the future panics, [`poll`](Self::poll) returns what `on_panic` returns.
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

    /// Polls the HTTP requests of the client's connection. Ready when an HTTP request has ended, with the event that
    /// replaces the request if it panicked.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match Pin::new(&mut self.futures).poll_next(cx) {
            Poll::Ready(Some(replacement)) => Poll::Ready(replacement),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl HttpClientTaskHandle {
    /// Whether the HTTP request has completed, panicked or was aborted.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().over
    }

    /// Ready when the HTTP request has completed, panicked or was aborted.
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

/// The future of one HTTP request of a connection. The connection's driver polls this future, which is not a task of
/// the runtime.
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
