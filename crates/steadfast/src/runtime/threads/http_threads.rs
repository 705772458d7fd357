//! The threads of HTTP servers, and how they and the workers wake each other.
//!
//! Like the I/O thread, they never run a handler, so a handler that blocks does not delay reads, writes or hangups. There are as
//! many as the runtime has workers, and connections are distributed among them in turn.
//!
//! A request goes from an HTTP thread to a worker and its response goes back, and waking the other thread each time costs more
//! than a small request. So wakes are batched in both directions: the tasks that an HTTP thread starts go to the workers after it
//! has polled everything that is ready, and all wakes of the workers for an HTTP thread, until it runs again, are one wake. The
//! [`ThreadWakeBatcher`] does both.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Handle};

use crate::runtime::{Runtime, RuntimeTask};

static HTTP_THREADS: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

thread_local! {
    /// The batcher of this thread, if it is an HTTP thread.
    static WAKE_BATCHER: RefCell<Option<Arc<ThreadWakeBatcher>>> = const { RefCell::new(None) };
    static IS_HTTP_THREAD: Cell<bool> = const { Cell::new(false) };
    /// Tasks for the workers of a runtime that this HTTP thread has not handed over yet.
    static LEAVING: RefCell<Vec<(Handle, RuntimeTask)>> = const { RefCell::new(Vec::new()) };
}

/// Returns as many HTTP threads as this runtime has workers, and starts those that are missing.
pub(crate) fn for_workers_of(runtime: &Handle) -> io::Result<Vec<Handle>> {
    let wanted = runtime.metrics().num_workers().max(1);
    let mut threads = HTTP_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    while threads.len() < wanted {
        threads.push(start()?);
    }
    Ok(threads.iter().take(wanted).cloned().collect())
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("steadfast-http".to_owned());
    thread.spawn(move || {
        let batcher = Arc::new(ThreadWakeBatcher::default());
        IS_HTTP_THREAD.set(true);
        WAKE_BATCHER.set(Some(Arc::clone(&batcher)));
        // A task, because waking the future of `block_on` always costs a system call.
        drop(runtime.spawn(poll_fn(move |cx| batcher.poll_batch(cx))));
        runtime.block_on(std::future::pending::<()>());
    })?;
    Ok(handle)
}

/// Spawns a task where no handler can delay it: on this thread if it is an HTTP thread, otherwise on the I/O thread. Without tokio,
/// as in a simulator, it is spawned on the runtime.
pub(crate) fn spawn_off_workers(runtime: &dyn Runtime, task: impl Future<Output = ()> + Send + 'static) {
    match runtime.as_tokio().and_then(|_| here_or_driver().ok()) {
        Some(apart) => drop(apart.spawn(task)),
        None => runtime.spawn(Box::pin(task)),
    }
}

/// This thread, if it is an HTTP thread; otherwise the I/O thread.
fn here_or_driver() -> io::Result<Handle> {
    if is_here() { Ok(Handle::current()) } else { super::io_thread::handle().cloned() }
}

/// Whether this is an HTTP thread.
pub(crate) fn is_here() -> bool {
    IS_HTTP_THREAD.get()
}

/// The batcher of this thread, if it is an HTTP thread.
pub(crate) fn wake_batcher() -> Option<Arc<ThreadWakeBatcher>> {
    if is_here() { WAKE_BATCHER.with_borrow(Clone::clone) } else { None }
}

/// This many tasks are handed over at once, without waiting for more.
const TOGETHER: usize = 16;

/// Spawns a task on the workers of a runtime, after this HTTP thread has polled everything that is ready.
pub(crate) fn start_soon(runtime: &Handle, task: RuntimeTask) {
    let collected = LEAVING.with_borrow_mut(|leaving| {
        leaving.push((runtime.clone(), task));
        leaving.len()
    });
    if collected >= TOGETHER {
        hand_over();
    } else if collected == 1 {
        WAKE_BATCHER.with_borrow(|batcher| {
            if let Some(batcher) = batcher {
                batcher.wake_batch_task();
            }
        });
    }
}

/// Hands the collected tasks over to the workers of their runtimes: one spawned task spawns the others there.
fn hand_over() {
    let leaving = LEAVING.take();
    let mut leaving = leaving.into_iter().peekable();
    while let Some((runtime, task)) = leaving.next() {
        let mut others = Vec::new();
        while let Some((_, other)) = leaving.next_if(|(next, _)| next.id() == runtime.id()) {
            others.push(other);
        }
        if others.is_empty() {
            drop(runtime.spawn(task));
            continue;
        }
        drop(runtime.spawn(async move {
            for task in std::iter::once(task).chain(others) {
                drop(tokio::spawn(task));
            }
        }));
    }
}

/// Wakes tasks of one HTTP thread: many of them with one wake of the thread.
#[derive(Default)]
pub(crate) struct ThreadWakeBatcher {
    state: Mutex<ThreadWakeBatcherState>,
}

#[derive(Default)]
struct ThreadWakeBatcherState {
    /// The tasks to wake.
    waiting: Vec<Waker>,
    /// The waker of the task that wakes the waiting tasks; `None` while that task is awake.
    batch_task: Option<Waker>,
}

impl ThreadWakeBatcher {
    /// Wakes a task of the HTTP thread, from any thread.
    pub(crate) fn wake(&self, task: Waker) {
        let mut state = self.lock();
        state.waiting.push(task);
        let batch_task = state.batch_task.take();
        drop(state);
        if let Some(batch_task) = batch_task {
            batch_task.wake();
        }
    }

    fn wake_batch_task(&self) {
        let batch_task = self.lock().batch_task.take();
        if let Some(batch_task) = batch_task {
            batch_task.wake();
        }
    }

    /// The poll of the task that wakes the others, on the HTTP thread.
    fn poll_batch(&self, cx: &mut Context<'_>) -> Poll<()> {
        hand_over();
        let mut state = self.lock();
        state.batch_task = Some(cx.waker().clone());
        let mut waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for task in waiting.drain(..) {
            task.wake();
        }
        // The allocation is reused, unless there is a new one already.
        let mut state = self.lock();
        if state.waiting.capacity() == 0 {
            state.waiting = waiting;
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, ThreadWakeBatcherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Far longer than any of it takes: a test that would hang fails.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn workers(count: usize) -> tokio::runtime::Runtime {
        Builder::new_multi_thread().worker_threads(count).thread_name("worker").build().unwrap()
    }

    fn http_thread_for(runtime: &tokio::runtime::Runtime) -> Handle {
        for_workers_of(runtime.handle()).unwrap().pop().unwrap()
    }

    #[test]
    fn there_are_as_many_http_threads_as_workers() {
        let (one, three) = (workers(1), workers(3));
        let threads = |runtime: &tokio::runtime::Runtime| for_workers_of(runtime.handle()).unwrap();
        let mut ids: Vec<String> = threads(&three).iter().map(|http_thread| http_thread.id().to_string()).collect();
        ids.dedup();
        assert_eq!((threads(&one).len(), ids.len()), (1, 3));
    }

    #[test]
    fn tasks_that_an_http_thread_starts_run_on_the_workers_one_or_many() {
        let runtime = workers(2);
        let http_thread = http_thread_for(&runtime);
        for count in [1, 3, TOGETHER, 5 * TOGETHER + 1] {
            let (sender, receiver) = mpsc::channel();
            let handle = runtime.handle().clone();
            drop(http_thread.spawn(async move {
                for _ in 0..count {
                    let sender = sender.clone();
                    start_soon(&handle, Box::pin(async move { sender.send((thread_name(), is_here())).unwrap() }));
                }
            }));
            let seen: Vec<(String, bool)> = (0..count).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
            assert!(seen.iter().all(|(name, on_http_thread)| name == "worker" && !on_http_thread), "{seen:?}");
        }
    }

    #[test]
    fn tasks_for_a_runtime_that_is_gone_are_dropped() {
        struct SendOnDrop(mpsc::Sender<()>);
        impl Drop for SendOnDrop {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let runtime = workers(1);
        let (http_thread, handle) = (http_thread_for(&runtime), runtime.handle().clone());
        drop(runtime);
        let (sender, receiver) = mpsc::channel();
        drop(http_thread.spawn(async move {
            for _ in 0..2 {
                let sender = SendOnDrop(sender.clone());
                start_soon(&handle, Box::pin(async move { drop(sender) }));
            }
        }));
        receiver.recv_timeout(PATIENCE).unwrap();
        receiver.recv_timeout(PATIENCE).unwrap();
    }

    #[test]
    fn a_batcher_wakes_all_tasks_that_wait_on_its_thread() {
        let runtime = workers(1);
        let http_thread = http_thread_for(&runtime);
        let (wakers, registered) = mpsc::channel();
        let (sender, receiver) = mpsc::channel();
        let woken = Arc::new(AtomicBool::new(false));
        for _ in 0..8 {
            let (wakers, sender, woken) = (wakers.clone(), sender.clone(), Arc::clone(&woken));
            drop(http_thread.spawn(async move {
                poll_fn(|cx| {
                    if woken.load(Ordering::SeqCst) {
                        return Poll::Ready(());
                    }
                    wakers.send((wake_batcher().unwrap(), cx.waker().clone())).unwrap();
                    Poll::Pending
                })
                .await;
                sender.send(()).unwrap();
            }));
        }
        let all: Vec<(Arc<ThreadWakeBatcher>, Waker)> =
            (0..8).map(|_| registered.recv_timeout(PATIENCE).unwrap()).collect();
        woken.store(true, Ordering::SeqCst);
        for (batcher, waker) in all {
            batcher.wake(waker);
        }
        for _ in 0..8 {
            receiver.recv_timeout(PATIENCE).unwrap();
        }
    }

    fn thread_name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }
}
