//! One request's execution: what the driver, the fence and the handler's context share.
//!
//! ```text
//!   running --> stopping (why) --> ended
//!        \________________________/
//! ```
//!
//! The driver sets why it is to stop; the fence sees it and drops the handler, or lets a cooperative one finish; shields and
//! cleanups go on; when all of it is over the fence says so, once. Abandoned means that the connection is gone and its
//! time is up: whatever is still there is dropped at its next poll.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use steadfast_model::{Principal, RequestId};
use steadfast_proto::connection::{CancelReason, Key, Peer, Progress, Request};

use super::input_rounds::InputRounds;
use crate::runtime::connection::mailbox::{DriverCommand, Mailbox};
use crate::runtime::{Runtime, Task};

/// More log messages of one request than this in the mailbox are dropped.
const LOGS_IN_FLIGHT: usize = 64;

pub(crate) struct Execution {
    pub(crate) key: Key,
    pub(crate) id: RequestId,
    pub(crate) peer: Arc<Peer>,
    /// Who sent the request, if the transport knows.
    pub(crate) principal: Option<Principal>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) runtime: Arc<dyn Runtime>,
    wants_progress: bool,
    /// What it asks of its client in several rounds, where that is how clients are asked.
    input_rounds: Option<Box<InputRounds>>,
    /// Zero while it runs, then the reason.
    stop: AtomicU8,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who is to be woken when something changes: the fence, shields, whoever awaits the cancellation.
    watchers: Vec<Waker>,
    cleanups: Vec<Task>,
    shields: usize,
    abandoned: bool,
    /// The newest progress that the driver has not fetched.
    progress: Option<Progress>,
    logs: usize,
}

impl Execution {
    pub(crate) fn new(request: &Request, mailbox: Arc<Mailbox>, runtime: Arc<dyn Runtime>) -> Arc<Self> {
        Self::asking(request, mailbox, runtime, None)
    }

    /// An execution that may ask its client in several rounds.
    pub(crate) fn asking(
        request: &Request,
        mailbox: Arc<Mailbox>,
        runtime: Arc<dyn Runtime>,
        input_rounds: Option<Box<InputRounds>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key: request.key,
            id: request.id.clone(),
            peer: Arc::clone(&request.peer),
            principal: mailbox.principal(),
            mailbox,
            runtime,
            wants_progress: request.progress_token.is_some(),
            input_rounds,
            stop: AtomicU8::new(0),
            state: Mutex::default(),
        })
    }

    /// What it asks of its client in several rounds; `None` where clients are not asked like that.
    pub(crate) fn input_rounds(&self) -> Option<&InputRounds> {
        self.input_rounds.as_deref()
    }

    /// Why it is to stop, if it is.
    pub(crate) fn stopping(&self) -> Option<CancelReason> {
        match self.stop.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(CancelReason::Peer),
            2 => Some(CancelReason::ConnectionClosed),
            3 => Some(CancelReason::Deadline),
            _ => Some(CancelReason::Shutdown),
        }
    }

    /// Tells it to stop. The first reason stays.
    pub(crate) fn stop(&self, reason: CancelReason) {
        let code = match reason {
            CancelReason::Peer => 1,
            CancelReason::ConnectionClosed => 2,
            CancelReason::Deadline => 3,
            _ => 4,
        };
        if self.stop.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.wake_watchers();
        }
    }

    /// The connection is gone and its time is up.
    pub(crate) fn abandon(&self) {
        self.stop(CancelReason::ConnectionClosed);
        self.lock().abandoned = true;
        self.wake_watchers();
    }

    /// It has ended. A context that somebody has kept can start nothing behind it any more.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        let cleanups = std::mem::take(&mut state.cleanups);
        let wake = state.shields > 0;
        drop(state);
        for cleanup in cleanups {
            super::task::drop_quietly(cleanup);
        }
        if wake {
            self.wake_watchers();
        }
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Wakes `waker` at the next change. Look at what may have changed after this, not before.
    pub(crate) fn watch(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.watchers.iter().any(|known| known.will_wake(waker)) {
            state.watchers.push(waker.clone());
        }
    }

    /// Adds a cleanup that runs if the execution is stopped.
    pub(crate) fn add_cleanup(&self, cleanup: Task) {
        let mut state = self.lock();
        if state.abandoned {
            // Nobody is left who would run or drop it, and it may hold this execution: the two would keep each other.
            drop(state);
            return super::task::drop_quietly(cleanup);
        }
        state.cleanups.push(cleanup);
    }

    /// Everything is over, unless a shield or a cleanup has come in between. After this none can.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.lock();
        let over = state.shields == 0 && state.cleanups.is_empty();
        state.abandoned |= over;
        over
    }

    /// The cleanup that was added last and has not run: the reverse of the order in which things were built up.
    pub(crate) fn next_cleanup(&self) -> Option<Task> {
        self.lock().cleanups.pop()
    }

    /// The handler ended by itself: there is nothing to clean up.
    pub(crate) fn drop_cleanups(&self) {
        let cleanups = std::mem::take(&mut self.lock().cleanups);
        for cleanup in cleanups {
            super::task::drop_quietly(cleanup);
        }
    }

    /// Leave to outlive the handler; none once the execution has ended, because nobody would wait for it.
    pub(crate) fn enter_shield(self: &Arc<Self>) -> Option<ShieldPass> {
        let mut state = self.lock();
        if state.abandoned {
            return None;
        }
        state.shields += 1;
        Some(ShieldPass(Arc::clone(self)))
    }

    pub(crate) fn has_shields(&self) -> bool {
        self.lock().shields > 0
    }

    /// Keeps the newest progress for the driver to fetch.
    pub(crate) fn report(&self, progress: Progress) {
        if !self.wants_progress || self.stopping().is_some() {
            return;
        }
        let fetched = self.lock().progress.replace(progress).is_none();
        if fetched {
            // If the connection is closed nobody wants to know.
            let _ = self.mailbox.post(DriverCommand::Progress { key: self.key });
        }
    }

    pub(crate) fn fetch_progress(&self) -> Option<Progress> {
        self.lock().progress.take()
    }

    /// Whether another log message may go into the mailbox.
    pub(crate) fn admit_log(&self) -> bool {
        let mut state = self.lock();
        let admitted = state.logs < LOGS_IN_FLIGHT && self.stopping().is_none();
        state.logs += usize::from(admitted);
        admitted
    }

    pub(crate) fn log_fetched(&self) {
        let mut state = self.lock();
        state.logs = state.logs.saturating_sub(1);
    }

    fn wake_watchers(&self) {
        let watchers = std::mem::take(&mut self.lock().watchers);
        watchers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by a shield while it runs.
pub(crate) struct ShieldPass(Arc<Execution>);

impl Drop for ShieldPass {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.shields -= 1;
        drop(state);
        self.0.wake_watchers();
    }
}

/// A future that is dropped when its execution is abandoned, and that never lets a panic out.
pub(crate) struct Shielded<F> {
    future: Option<Pin<Box<F>>>,
    pass: Option<ShieldPass>,
}

impl<F: Future<Output = ()>> Shielded<F> {
    pub(crate) fn new(future: F, pass: ShieldPass) -> Self {
        Self { future: Some(Box::pin(future)), pass: Some(pass) }
    }
}

impl<F: Future<Output = ()>> Future for Shielded<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let Some(pass) = &self.pass else { return std::task::Poll::Ready(()) };
        let execution = Arc::clone(&pass.0);
        execution.watch(cx.waker());
        let pending = !execution.is_abandoned()
            && self.future.as_mut().is_some_and(|future| {
                super::task::poll_quietly(future.as_mut(), cx).is_ok_and(|poll| poll.is_pending())
            });
        if pending {
            return std::task::Poll::Pending;
        }
        if let Some(future) = self.future.take() {
            super::task::drop_quietly(future);
        }
        self.pass = None;
        std::task::Poll::Ready(())
    }
}
