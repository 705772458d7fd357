//! The threads that connections of HTTP are carried on, and how they and the workers reach each other.
//!
//! Like the thread of the drivers, they never run a handler, so no handler keeps one from reading, writing or hearing that a
//! client is gone. There are as many as the runtime has workers, and connections are dealt out among them.
//!
//! A request crosses to a worker and its answer crosses back, and each crossing that wakes a thread costs more than a small
//! request does. So both are collected: what a carrier starts goes to the workers when the carrier has seen to everything
//! that is ready, and all that workers have for a carrier until it looks again is one wake. The [`WakeBatcher`] does both.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Builder, Handle};

use crate::runtime::{Runtime, Task};

static CARRIERS: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

thread_local! {
    /// The bell of this thread, if it is a carrier.
    static BELL: RefCell<Option<Arc<WakeBatcher>>> = const { RefCell::new(None) };
    static IS_CARRIER: Cell<bool> = const { Cell::new(false) };
    /// Tasks for the workers of a runtime that the carrier has not yet handed over.
    static LEAVING: RefCell<Vec<(Handle, Task)>> = const { RefCell::new(Vec::new()) };
}

/// The first carriers, started if need be: as many as there are workers in this runtime.
pub(crate) fn for_workers_of(runtime: &Handle) -> io::Result<Vec<Handle>> {
    let wanted = runtime.metrics().num_workers().max(1);
    let mut carriers = CARRIERS.lock().unwrap_or_else(PoisonError::into_inner);
    while carriers.len() < wanted {
        carriers.push(start()?);
    }
    Ok(carriers.iter().take(wanted).cloned().collect())
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("steadfast-http".to_owned());
    thread.spawn(move || {
        let bell = Arc::new(WakeBatcher::default());
        IS_CARRIER.set(true);
        BELL.set(Some(Arc::clone(&bell)));
        // A task and not what is blocked on: waking that one always costs a system call.
        drop(runtime.spawn(poll_fn(move |cx| bell.answer(cx))));
        runtime.block_on(std::future::pending::<()>());
    })?;
    Ok(handle)
}

/// Has a task polled where no handler can hold it up: on this thread if it is a carrier, otherwise on that of the drivers. A
/// simulator has one thread for everything; without ours, the workers have to do.
pub(crate) fn spawn_apart(runtime: &dyn Runtime, task: impl Future<Output = ()> + Send + 'static) {
    match runtime.as_tokio().and_then(|_| here_or_driver().ok()) {
        Some(apart) => drop(apart.spawn(task)),
        None => runtime.spawn(Box::pin(task)),
    }
}

/// This thread, if it is a carrier; otherwise the thread of the drivers.
fn here_or_driver() -> io::Result<Handle> {
    if is_here() { Ok(Handle::current()) } else { super::io_thread::handle().cloned() }
}

/// Whether this thread is a carrier.
pub(crate) fn is_here() -> bool {
    IS_CARRIER.get()
}

/// The bell of this thread, if it is a carrier.
pub(crate) fn wake_batcher() -> Option<Arc<WakeBatcher>> {
    if is_here() { BELL.with_borrow(Clone::clone) } else { None }
}

/// More tasks than these do not wait for others.
const TOGETHER: usize = 16;

/// Has a task polled on the workers of a runtime, once the carrier of this thread has seen to what is ready.
pub(crate) fn start_soon(runtime: &Handle, task: Task) {
    let collected = LEAVING.with_borrow_mut(|leaving| {
        leaving.push((runtime.clone(), task));
        leaving.len()
    });
    if collected >= TOGETHER {
        hand_over();
    } else if collected == 1 {
        BELL.with_borrow(|bell| {
            if let Some(bell) = bell {
                bell.call_keeper();
            }
        });
    }
}

/// Hands over what was collected. The tasks go in one, which starts the others where it runs.
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

/// Wakes tasks of one carrier: many, for the price of one.
#[derive(Default)]
pub(crate) struct WakeBatcher {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who is to be woken.
    waiting: Vec<Waker>,
    /// The future that wakes them, unless it is awake.
    keeper: Option<Waker>,
}

impl WakeBatcher {
    /// Wakes a task of the carrier, from another thread or from its own.
    pub(crate) fn wake(&self, task: Waker) {
        let mut state = self.lock();
        state.waiting.push(task);
        let keeper = state.keeper.take();
        drop(state);
        if let Some(keeper) = keeper {
            keeper.wake();
        }
    }

    fn call_keeper(&self) {
        let keeper = self.lock().keeper.take();
        if let Some(keeper) = keeper {
            keeper.wake();
        }
    }

    /// What the keeper does, on the carrier.
    fn answer(&self, cx: &mut Context<'_>) -> Poll<()> {
        hand_over();
        let mut state = self.lock();
        state.keeper = Some(cx.waker().clone());
        let mut waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for task in waiting.drain(..) {
            task.wake();
        }
        // The room is used again, unless there is some already.
        let mut state = self.lock();
        if state.waiting.capacity() == 0 {
            state.waiting = waiting;
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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

    fn carrier_for(runtime: &tokio::runtime::Runtime) -> Handle {
        for_workers_of(runtime.handle()).unwrap().pop().unwrap()
    }

    #[test]
    fn there_are_as_many_carriers_as_workers() {
        let (one, three) = (workers(1), workers(3));
        let carriers = |runtime: &tokio::runtime::Runtime| for_workers_of(runtime.handle()).unwrap();
        let mut ids: Vec<String> = carriers(&three).iter().map(|carrier| carrier.id().to_string()).collect();
        ids.dedup();
        assert_eq!((carriers(&one).len(), ids.len()), (1, 3));
    }

    #[test]
    fn what_a_carrier_starts_runs_on_the_workers_whether_it_is_alone_or_one_of_many() {
        let runtime = workers(2);
        let carrier = carrier_for(&runtime);
        for count in [1, 3, TOGETHER, 5 * TOGETHER + 1] {
            let (told, heard) = mpsc::channel();
            let handle = runtime.handle().clone();
            drop(carrier.spawn(async move {
                for _ in 0..count {
                    let told = told.clone();
                    start_soon(&handle, Box::pin(async move { told.send((thread_name(), is_here())).unwrap() }));
                }
            }));
            let seen: Vec<(String, bool)> = (0..count).map(|_| heard.recv_timeout(PATIENCE).unwrap()).collect();
            assert!(seen.iter().all(|(name, carried)| name == "worker" && !carried), "{seen:?}");
        }
    }

    #[test]
    fn what_is_started_on_workers_that_are_gone_is_dropped() {
        struct Told(mpsc::Sender<()>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
            }
        }
        let runtime = workers(1);
        let (carrier, handle) = (carrier_for(&runtime), runtime.handle().clone());
        drop(runtime);
        let (told, heard) = mpsc::channel();
        drop(carrier.spawn(async move {
            for _ in 0..2 {
                let told = Told(told.clone());
                start_soon(&handle, Box::pin(async move { drop(told) }));
            }
        }));
        heard.recv_timeout(PATIENCE).unwrap();
        heard.recv_timeout(PATIENCE).unwrap();
    }

    #[test]
    fn a_bell_wakes_everyone_who_waits_on_its_carrier() {
        let runtime = workers(1);
        let carrier = carrier_for(&runtime);
        let (waits, waiting) = mpsc::channel();
        let (told, heard) = mpsc::channel();
        let rung = Arc::new(AtomicBool::new(false));
        for _ in 0..8 {
            let (waits, told, rung) = (waits.clone(), told.clone(), Arc::clone(&rung));
            drop(carrier.spawn(async move {
                poll_fn(|cx| {
                    if rung.load(Ordering::SeqCst) {
                        return Poll::Ready(());
                    }
                    waits.send((wake_batcher().unwrap(), cx.waker().clone())).unwrap();
                    Poll::Pending
                })
                .await;
                told.send(()).unwrap();
            }));
        }
        let all: Vec<(Arc<WakeBatcher>, Waker)> = (0..8).map(|_| waiting.recv_timeout(PATIENCE).unwrap()).collect();
        rung.store(true, Ordering::SeqCst);
        for (bell, waker) in all {
            bell.wake(waker);
        }
        for _ in 0..8 {
            heard.recv_timeout(PATIENCE).unwrap();
        }
    }

    fn thread_name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }
}
