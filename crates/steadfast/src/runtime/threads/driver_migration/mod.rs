//! Moves the driver of a client between the I/O loop and the workers.
//!
//! While the driver of a client is on the I/O loop, a call costs two switches between threads, and if calls are made
//! one after the other, the switches cost more than the rest of the call. So while tasks of the client's tokio
//! runtime make calls one at a time and in quick succession, a task on the workers polls the client's driver, and the
//! runtime of the workers watches the descriptors of the connection. While the driver is on the workers, no call has
//! to wake another thread.
//!
//! ```text
//!               one call at a time, in quick succession
//!   IoThread ---------------------------------------------> Workers
//!            <---------------------------------------------
//!               many calls at once, or a flood of messages; or the workers have not polled the driver for a moment: there
//!               are no calls, a call takes longer, the workers are blocked, or their runtime is gone
//! ```
//!
//! The I/O loop checks every [`CHECK_INTERVAL`] whether the driver has received bytes on the workers, and takes it
//! back if not. So handlers and tasks that block all workers delay the driver of a client for at most two check
//! intervals (law L6). A client without calls costs no checks. A driver whose calls were stuck on the workers is not
//! moved there again for a while, and for longer each time.
//!
//! Only one task has the driver at a time, and no lock is held while it is polled. The task that takes it over polls all of it,
//! so nothing that happened in between is missed.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast_proto::Moment;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use crate::runtime::connection::mailbox::DriverMailbox;
use crate::runtime::{Runtime, Timer};

/// How often the I/O loop checks whether the workers poll the driver that they have.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The number of calls, made one at a time within the duration `WITHIN`, that count as quick succession: then the
/// driver may move to the workers.
const IN_TURN: u32 = 32;
const WITHIN: Duration = Duration::from_millis(32);

/// How long a driver stays on the I/O loop after its calls were stuck on the workers: the first time, and at most.
const STAY: Duration = Duration::from_millis(500);
const LONGEST_STAY: Duration = Duration::from_secs(60);

/// A driver that can move from one runtime to another.
pub(crate) trait MigratableDriver: Future + Send + Unpin + 'static {
    /// Deregisters from the runtime, so that another one can poll the driver. Returns false, and changes nothing, if
    /// the driver cannot move to another runtime.
    fn leave_runtime(&mut self) -> bool;

    /// Whether the driver had more to do since the last check than calls that are made one at a time would cause.
    fn was_busy(&mut self) -> bool;

    /// Whether bytes of the server have arrived since the last call of this. That the driver was polled is not enough: a runtime
    /// may be too busy to poll its descriptors.
    fn was_heard(&mut self) -> bool;

    /// Whether commands wait that the driver has not taken.
    fn is_neglected(&self) -> bool;
}

/// Counts the calls that come from tasks of one runtime.
pub(crate) struct WorkerCallCounter {
    runtime: Id,
    one_thread: bool,
    /// How many calls came from tasks of the runtime since the last call from outside of it.
    count: AtomicU32,
}

impl WorkerCallCounter {
    fn of(handle: &Handle) -> Self {
        let one_thread = handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
        Self { runtime: handle.id(), one_thread, count: AtomicU32::new(0) }
    }

    /// Counts a call. A caller in `block_on` is not on a worker, unless the runtime has only one thread.
    pub(crate) fn note(&self) {
        let inside = Handle::try_current().is_ok_and(|handle| handle.id() == self.runtime);
        if inside && (self.one_thread || tokio::task::try_id().is_some()) {
            self.count.fetch_add(1, Ordering::Relaxed);
        } else {
            self.count.store(0, Ordering::Relaxed);
        }
    }
}

/// The two tasks of a driver: for the I/O loop, and for the workers of that runtime.
pub(crate) fn tasks<D: MigratableDriver>(
    driver: D,
    mailbox: &Arc<DriverMailbox>,
    runtime: &Arc<dyn Runtime>,
    workers: &Handle,
) -> (IoThreadDriverTask<D>, WorkerDriverTask<D>) {
    mailbox.count_callers(WorkerCallCounter::of(workers));
    let state = DriverMigrationState {
        driver: Some(Box::new(driver)),
        home: DriverThreadKind::IoThread,
        over: false,
        seen: false,
        apart: None,
        among: None,
    };
    let shared = Arc::new(SharedDriverMigrationState(Mutex::new(state)));
    let apart = IoThreadDriverTask {
        shared: Arc::clone(&shared),
        mailbox: Arc::clone(mailbox),
        runtime: Arc::clone(runtime),
        look: runtime.timer(),
        began: None,
        stay: DriverMigrationBackoff::default(),
    };
    (apart, WorkerDriverTask { shared, has_io: None })
}

struct SharedDriverMigrationState<D>(Mutex<DriverMigrationState<D>>);

struct DriverMigrationState<D> {
    /// Boxed, so that moving it is cheap. `None` while a task polls it, and after its end.
    driver: Option<Box<D>>,
    home: DriverThreadKind,
    over: bool,
    /// Bytes of the server have arrived on the workers since the last check.
    seen: bool,
    apart: Option<Waker>,
    /// `None` if the workers cannot have it.
    among: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq)]
enum DriverThreadKind {
    IoThread,
    Workers,
}

impl<D> SharedDriverMigrationState<D> {
    fn lock(&self) -> MutexGuard<'_, DriverMigrationState<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: MigratableDriver> SharedDriverMigrationState<D> {
    fn put_back(&self, driver: Box<D>, heard: bool) {
        let mut state = self.lock();
        state.driver = Some(driver);
        state.seen |= heard;
    }

    /// Gives the driver to the other of its two tasks (on the I/O loop, or on the workers), and wakes that task.
    fn hand_over(&self, driver: Box<D>, home: DriverThreadKind) {
        let mut state = self.lock();
        (state.driver, state.home, state.seen) = (Some(driver), home, true);
        Self::wake(state, home);
    }

    /// Ends the task on the other thread too, because the driver has ended or panicked.
    fn end(&self, other: DriverThreadKind) {
        let mut state = self.lock();
        state.over = true;
        Self::wake(state, other);
    }

    fn wake(mut state: MutexGuard<'_, DriverMigrationState<D>>, task: DriverThreadKind) {
        let waker = match task {
            DriverThreadKind::IoThread => state.apart.take(),
            DriverThreadKind::Workers => state.among.clone(),
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The task on the I/O loop, which exists as long as the driver. Ready when the driver has ended.
pub(crate) struct IoThreadDriverTask<D> {
    shared: Arc<SharedDriverMigrationState<D>>,
    mailbox: Arc<DriverMailbox>,
    runtime: Arc<dyn Runtime>,
    /// When the I/O loop next checks on the driver, while the workers have it.
    look: Box<dyn Timer>,
    /// The count of calls at the start of the current measurement, and its time.
    began: Option<(u32, Moment)>,
    stay: DriverMigrationBackoff,
}

/// Keeps the driver on the I/O loop for a while before it may move to the workers again.
#[derive(Default)]
struct DriverMigrationBackoff {
    until: Option<Moment>,
    length: Duration,
}

impl DriverMigrationBackoff {
    /// Extends the backoff: calls were stuck while the driver was on the workers.
    fn note_stuck(&mut self, now: Moment) {
        self.length = (self.length * 2).clamp(STAY, LONGEST_STAY);
        self.until = Some(now + self.length);
    }

    /// Resets the backoff: the driver came back to the I/O loop because there were no more calls.
    fn note_idle(&mut self) {
        *self = Self::default();
    }

    fn is_over(&self, now: Moment) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

impl<D: MigratableDriver> IoThreadDriverTask<D> {
    /// Whether tasks on the worker threads use this connection for one call at a time, in quick succession.
    fn is_called_in_turn(&mut self, driver: &mut D) -> bool {
        let calls = self.mailbox.callers().map_or(0, |callers| callers.count.load(Ordering::Relaxed));
        let busy = driver.was_busy();
        match self.began.filter(|(before, _)| !busy && *before <= calls) {
            Some((before, _)) if calls - before < IN_TURN => false,
            began => {
                let now = self.runtime.now();
                self.began = Some((calls, now)).filter(|_| !busy);
                let quickly = began.is_some_and(|(_, at)| now.since(at) <= WITHIN);
                quickly && self.stay.is_over(now) && self.shared.lock().among.is_some()
            }
        }
    }

    fn look_later(&mut self) {
        self.look.reset(Some(self.runtime.now() + CHECK_INTERVAL));
    }
}

impl<D: MigratableDriver> Future for IoThreadDriverTask<D> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let apart = &mut *self;
        loop {
            let mut state = apart.shared.lock();
            if state.over {
                return Poll::Ready(());
            }
            if !state.apart.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                state.apart = Some(cx.waker().clone());
            }
            let away = state.home == DriverThreadKind::Workers;
            if away && apart.look.poll(cx).is_pending() {
                return Poll::Pending;
            }
            if away && (std::mem::take(&mut state.seen) || state.driver.is_none()) {
                drop(state);
                apart.look_later();
                continue;
            }
            state.home = DriverThreadKind::IoThread;
            let Some(mut driver) = state.driver.take() else { return Poll::Pending };
            drop(state);
            if away {
                if driver.is_neglected() {
                    apart.stay.note_stuck(apart.runtime.now());
                } else {
                    apart.stay.note_idle();
                }
                driver.leave_runtime();
                apart.began = None;
            }
            if Pin::new(&mut *driver).poll(cx).is_ready() {
                drop(driver);
                apart.shared.end(DriverThreadKind::Workers);
                return Poll::Ready(());
            }
            if !(apart.is_called_in_turn(&mut driver) && driver.leave_runtime()) {
                apart.shared.put_back(driver, false);
                return Poll::Pending;
            }
            apart.look_later();
            apart.shared.hand_over(driver, DriverThreadKind::Workers);
        }
    }
}

/// A driver that is dropped with its runtime has ended too.
impl<D> Drop for IoThreadDriverTask<D> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        let (driver, waker) = (state.driver.take(), state.among.take());
        drop(state);
        drop(driver);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The task that runs a connection's driver on the worker threads. If the task is dropped with the runtime of the
/// workers, the driver moves back to the I/O loop.
pub(crate) struct WorkerDriverTask<D: MigratableDriver> {
    shared: Arc<SharedDriverMigrationState<D>>,
    /// Whether the runtime of the workers has its I/O driver enabled, once that is known.
    has_io: Option<bool>,
}

impl<D: MigratableDriver> Future for WorkerDriverTask<D> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let among = &mut *self;
        let mut state = among.shared.lock();
        if state.over {
            return Poll::Ready(());
        }
        if !state.among.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.among = Some(cx.waker().clone());
        }
        if state.home != DriverThreadKind::Workers {
            return Poll::Pending;
        }
        let Some(mut driver) = state.driver.take() else { return Poll::Pending };
        drop(state);
        if !*among.has_io.get_or_insert_with(has_io) {
            among.shared.hand_over(driver, DriverThreadKind::IoThread);
            return Poll::Ready(());
        }
        if Pin::new(&mut *driver).poll(cx).is_ready() {
            drop(driver);
            among.shared.end(DriverThreadKind::IoThread);
            return Poll::Ready(());
        }
        if driver.was_busy() {
            driver.leave_runtime();
            among.shared.hand_over(driver, DriverThreadKind::IoThread);
        } else {
            let heard = driver.was_heard();
            among.shared.put_back(driver, heard);
        }
        Poll::Pending
    }
}

impl<D: MigratableDriver> Drop for WorkerDriverTask<D> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.among = None;
        if state.home != DriverThreadKind::Workers || state.over {
            return;
        }
        let driver = state.driver.take();
        drop(state);
        if let Some(mut driver) = driver {
            driver.leave_runtime();
            self.shared.hand_over(driver, DriverThreadKind::IoThread);
        } else {
            // The driver panicked while this task polled it.
            self.shared.end(DriverThreadKind::IoThread);
        }
    }
}

/// Whether the current runtime was built with I/O. The only way to find out is to create a socket, which panics if it was not,
/// so the result is cached for each runtime.
fn has_io() -> bool {
    /// The maximum number of tokio runtimes for which `has_io` caches its result.
    const MOST: usize = 64;
    static KNOWN: Mutex<Vec<(Id, bool)>> = Mutex::new(Vec::new());
    let Ok(runtime) = Handle::try_current().map(|handle| handle.id()) else { return false };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, has_io)) = known.iter().find(|(id, _)| *id == runtime) {
        return *has_io;
    }
    #[cfg(all(unix, panic = "unwind"))]
    let has_io = std::panic::catch_unwind(tokio::net::UnixDatagram::unbound).is_ok_and(|socket| socket.is_ok());
    #[cfg(not(all(unix, panic = "unwind")))]
    let has_io = false;
    if known.len() >= MOST {
        known.remove(0);
    }
    known.push((runtime, has_io));
    has_io
}

#[cfg(test)]
mod tests;
