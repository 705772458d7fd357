//! Where a driver of a client is at home: on the thread of drivers, and for a while on the workers.
//!
//! A call costs two hops between threads where its driver has one of its own, and with one call after the other the hops cost
//! more than all the rest. So while tasks of the client's runtime call one at a time and in quick succession, the driver is
//! polled by a task among them, and its descriptors are watched by their runtime. Nobody has to be woken then.
//!
//! ```text
//!            called in turn, and quickly
//!   Apart ---------------------------------> Workers
//!         <---------------------------------
//!            many calls at once, or a flood; or the workers have not polled it for a moment: nobody calls,
//!            a call takes longer, they are blocked, or their runtime is gone
//! ```
//!
//! The thread of drivers looks every [`LOOK`] whether the server was heard on the workers, and takes the driver back if not. So
//! handlers and tasks that block all workers keep nothing from being seen for longer than two looks (L6). A client that is not
//! called costs no looks. One whose calls were stuck there does not go there again for a while, and for longer each time.
//!
//! The driver is in one pair of hands at a time, and no lock is held while it is polled. Who takes it over polls all of it, so
//! that whatever happened in between is seen.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast_proto::Moment;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use crate::runtime::connection::mailbox::Mailbox;
use crate::runtime::{Runtime, Timer};

/// How often it is looked whether the workers poll the driver that they have.
const LOOK: Duration = Duration::from_millis(5);

/// So many calls in turn, in that time, are quick succession.
const IN_TURN: u32 = 32;
const WITHIN: Duration = Duration::from_millis(32);

/// How long a driver stays whose calls were stuck on the workers: the first time, and at most.
const STAY: Duration = Duration::from_millis(500);
const LONGEST_STAY: Duration = Duration::from_secs(60);

/// A driver that can go from one runtime to another.
pub(crate) trait Movable: Future + Send + Unpin + 'static {
    /// Leaves the runtime: whichever polls it next has it. False if it cannot, and then nothing has happened.
    fn leave_runtime(&mut self) -> bool;

    /// Whether more went on since this was last asked than one call at a time makes.
    fn was_busy(&mut self) -> bool;

    /// Whether the server was heard since this was last asked. That it was polled says nothing: a runtime may be too busy to look at
    /// its descriptors.
    fn was_heard(&mut self) -> bool;

    /// Whether it was asked for something that it has not looked at.
    fn is_neglected(&self) -> bool;
}

/// Counts the calls that come from tasks of one runtime.
pub(crate) struct Callers {
    runtime: Id,
    one_thread: bool,
    /// Since somebody else called last.
    count: AtomicU32,
}

impl Callers {
    fn of(handle: &Handle) -> Self {
        let one_thread = handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
        Self { runtime: handle.id(), one_thread, count: AtomicU32::new(0) }
    }

    /// Somebody calls. Who waits in `block_on` is not on a worker, unless there is but one thread.
    pub(crate) fn note(&self) {
        let inside = Handle::try_current().is_ok_and(|handle| handle.id() == self.runtime);
        if inside && (self.one_thread || tokio::task::try_id().is_some()) {
            self.count.fetch_add(1, Ordering::Relaxed);
        } else {
            self.count.store(0, Ordering::Relaxed);
        }
    }
}

/// The two tasks of a driver: for the thread of drivers, and for the workers of that runtime.
pub(crate) fn tasks<D: Movable>(
    driver: D,
    mailbox: &Arc<Mailbox>,
    runtime: &Arc<dyn Runtime>,
    workers: &Handle,
) -> (Apart<D>, Among<D>) {
    mailbox.count_callers(Callers::of(workers));
    let state =
        State { driver: Some(Box::new(driver)), home: Home::Apart, over: false, seen: false, apart: None, among: None };
    let shared = Arc::new(Shared(Mutex::new(state)));
    let apart = Apart {
        shared: Arc::clone(&shared),
        mailbox: Arc::clone(mailbox),
        runtime: Arc::clone(runtime),
        look: runtime.timer(),
        began: None,
        stay: Stay::default(),
    };
    (apart, Among { shared, has_io: None })
}

struct Shared<D>(Mutex<State<D>>);

struct State<D> {
    /// The box, so that taking it is cheap. `None` while it is polled by whom it is with, and when it is over.
    driver: Option<Box<D>>,
    home: Home,
    over: bool,
    /// The server was heard on the workers since it was last looked.
    seen: bool,
    apart: Option<Waker>,
    /// `None` if the workers cannot have it.
    among: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq)]
enum Home {
    Apart,
    Workers,
}

impl<D> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Movable> Shared<D> {
    fn put_back(&self, driver: Box<D>, heard: bool) {
        let mut state = self.lock();
        state.driver = Some(driver);
        state.seen |= heard;
    }

    /// Gives it to the other task, which is woken.
    fn hand_over(&self, driver: Box<D>, home: Home) {
        let mut state = self.lock();
        (state.driver, state.home, state.seen) = (Some(driver), home, true);
        Self::wake(state, home);
    }

    /// It has ended, here or by a panic: the other task has nothing to wait for.
    fn end(&self, other: Home) {
        let mut state = self.lock();
        state.over = true;
        Self::wake(state, other);
    }

    fn wake(mut state: MutexGuard<'_, State<D>>, task: Home) {
        let waker = match task {
            Home::Apart => state.apart.take(),
            Home::Workers => state.among.clone(),
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The task on the thread of drivers, which is there from the beginning to the end. Ready when the driver is over.
pub(crate) struct Apart<D> {
    shared: Arc<Shared<D>>,
    mailbox: Arc<Mailbox>,
    runtime: Arc<dyn Runtime>,
    /// When to look next, while the workers have it.
    look: Box<dyn Timer>,
    /// How many calls there had been when it was begun to count them, and when that was.
    began: Option<(u32, Moment)>,
    stay: Stay,
}

/// For how long it does not go to the workers again.
#[derive(Default)]
struct Stay {
    until: Option<Moment>,
    length: Duration,
}

impl Stay {
    /// It was called on the workers, and nobody looked.
    fn note_stuck(&mut self, now: Moment) {
        self.length = (self.length * 2).clamp(STAY, LONGEST_STAY);
        self.until = Some(now + self.length);
    }

    /// It came back because it was not called any more.
    fn note_idle(&mut self) {
        *self = Self::default();
    }

    fn is_over(&self, now: Moment) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

impl<D: Movable> Apart<D> {
    /// Whether tasks on the workers call one at a time, and quickly.
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
        self.look.reset(Some(self.runtime.now() + LOOK));
    }
}

impl<D: Movable> Future for Apart<D> {
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
            let away = state.home == Home::Workers;
            if away && apart.look.poll(cx).is_pending() {
                return Poll::Pending;
            }
            if away && (std::mem::take(&mut state.seen) || state.driver.is_none()) {
                drop(state);
                apart.look_later();
                continue;
            }
            state.home = Home::Apart;
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
                apart.shared.end(Home::Workers);
                return Poll::Ready(());
            }
            if !(apart.is_called_in_turn(&mut driver) && driver.leave_runtime()) {
                apart.shared.put_back(driver, false);
                return Poll::Pending;
            }
            apart.look_later();
            apart.shared.hand_over(driver, Home::Workers);
        }
    }
}

/// A driver that goes with its runtime is over too.
impl<D> Drop for Apart<D> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        let (driver, waker) = (state.driver.take(), state.among.take());
        drop(state);
        drop(driver);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The task among those that call. It goes with their runtime, and the driver stays.
pub(crate) struct Among<D: Movable> {
    shared: Arc<Shared<D>>,
    /// Whether the runtime watches descriptors, once that is known.
    has_io: Option<bool>,
}

impl<D: Movable> Future for Among<D> {
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
        if state.home != Home::Workers {
            return Poll::Pending;
        }
        let Some(mut driver) = state.driver.take() else { return Poll::Pending };
        drop(state);
        if !*among.has_io.get_or_insert_with(has_io) {
            among.shared.hand_over(driver, Home::Apart);
            return Poll::Ready(());
        }
        if Pin::new(&mut *driver).poll(cx).is_ready() {
            drop(driver);
            among.shared.end(Home::Apart);
            return Poll::Ready(());
        }
        if driver.was_busy() {
            driver.leave_runtime();
            among.shared.hand_over(driver, Home::Apart);
        } else {
            let heard = driver.was_heard();
            among.shared.put_back(driver, heard);
        }
        Poll::Pending
    }
}

impl<D: Movable> Drop for Among<D> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.among = None;
        if state.home != Home::Workers || state.over {
            return;
        }
        let driver = state.driver.take();
        drop(state);
        if let Some(mut driver) = driver {
            driver.leave_runtime();
            self.shared.hand_over(driver, Home::Apart);
        } else {
            // It panicked in our hands.
            self.shared.end(Home::Apart);
        }
    }
}

/// Whether the runtime that this is called in watches descriptors. There is no other way to ask than to try, and one that
/// does not panics: each is asked once.
fn has_io() -> bool {
    /// So many runtimes are remembered.
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
