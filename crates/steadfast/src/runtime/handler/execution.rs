//! The execution of one request: the state that the driver, the handler task and the handler's context share.
//!
//! ```text
//!   running --> stopping (reason) --> ended
//!        \__________________________/
//! ```
//!
//! The driver sets the reason why an execution has to stop. When an execution has to stop, the handler task drops the
//! handler, or lets a cooperative handler finish; shields and cleanups still run. When the handler, its shields and its
//! cleanups have ended, the handler task tells the driver, once. An execution is abandoned when its connection is gone
//! and the drain deadline has passed: its remaining futures are dropped at their next poll.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use steadfast_model::{Principal, RequestId};
use steadfast_proto::connection::{CancelReason, InboundRequestKey, PeerInfo, ProgressReport, Request};

use super::input_rounds::HandlerInputs;
use crate::runtime::connection::mailbox::{DriverCommand, DriverMailbox};
use crate::runtime::{Runtime, RuntimeTask, TokioRuntime};

/// The maximum number of log messages and vendor notifications of one request in the mailbox of the connection's
/// driver. Further log messages and vendor notifications of the request are dropped.
const MAX_QUEUED_LOGS: usize = 64;

pub(crate) struct HandlerExecution {
    pub(crate) key: InboundRequestKey,
    pub(crate) id: RequestId,
    pub(crate) peer: Arc<PeerInfo>,
    /// The authenticated sender of the request, if the transport knows it.
    pub(crate) principal: Option<Principal>,
    pub(crate) mailbox: Arc<DriverMailbox>,
    pub(crate) runtime: Arc<dyn Runtime>,
    wants_progress: bool,
    /// The input requests of the handler, if its client supplies input by retrying the request; otherwise `None`.
    input_rounds: Option<Box<HandlerInputs>>,
    /// Zero while the execution runs, then the code of the reason why the handler has to stop.
    stop_code: AtomicU8,
    state: Mutex<HandlerExecutionState>,
}

#[derive(Default)]
struct HandlerExecutionState {
    /// The wakers of the handler task and of shields, which are woken at the next change of the execution.
    watchers: Vec<Waker>,
    /// The wakers to wake when the execution has to stop, a slot for each [`ExecutionStopFuture`] that was polled.
    stop_wakers: Vec<Option<Waker>>,
    /// The slots in `stop_wakers` whose future was dropped.
    free_stop_slots: Vec<usize>,
    cleanups: Vec<RuntimeTask>,
    /// The current number of running shields.
    shields: usize,
    abandoned: bool,
    /// Whether the driver has taken the end of the execution, and with it the response.
    closed: bool,
    /// The newest progress report of the handler, if the driver has not taken it.
    progress: Option<ProgressReport>,
    /// The current number of log messages and vendor notifications of this request in the mailbox of the connection's
    /// driver.
    queued_logs: usize,
}

impl HandlerExecution {
    pub(crate) fn new(request: &Request, mailbox: Arc<DriverMailbox>, runtime: Arc<dyn Runtime>) -> Arc<Self> {
        Self::with_input_rounds(request, mailbox, runtime, None)
    }

    /// Creates an execution whose handler may request input that the client supplies by retrying the request.
    pub(crate) fn with_input_rounds(
        request: &Request,
        mailbox: Arc<DriverMailbox>,
        runtime: Arc<dyn Runtime>,
        input_rounds: Option<Box<HandlerInputs>>,
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
            stop_code: AtomicU8::new(0),
            state: Mutex::default(),
        })
    }

    /// Returns the input requests of the handler; `None` if its client does not supply input by retrying the request.
    pub(crate) fn input_rounds(&self) -> Option<&HandlerInputs> {
        self.input_rounds.as_deref()
    }

    /// Returns the reason why the execution has to stop, or `None` if it may go on.
    pub(crate) fn stop_reason(&self) -> Option<CancelReason> {
        match self.stop_code.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(CancelReason::Peer),
            2 => Some(CancelReason::ConnectionClosed),
            3 => Some(CancelReason::Deadline),
            _ => Some(CancelReason::Shutdown),
        }
    }

    /// Stops the execution. If an execution is stopped twice, the first reason stays.
    pub(crate) fn stop(&self, reason: CancelReason) {
        let code = match reason {
            CancelReason::Peer => 1,
            CancelReason::ConnectionClosed => 2,
            CancelReason::Deadline => 3,
            _ => 4,
        };
        if self.stop_code.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.wake_watchers();
            let stop_wakers: Vec<Waker> = self.lock().stop_wakers.iter_mut().filter_map(Option::take).collect();
            stop_wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Abandons the execution, because the connection is gone and the drain deadline has passed.
    pub(crate) fn abandon(&self) {
        self.stop(CancelReason::ConnectionClosed);
        self.lock().abandoned = true;
        self.wake_watchers();
    }

    /// Closes an execution that has ended: user code that still holds its context can add no more cleanups or shields.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.closed = true;
        let cleanups = std::mem::take(&mut state.cleanups);
        let stop_wakers: Vec<Waker> = state.stop_wakers.iter_mut().filter_map(Option::take).collect();
        let wake = state.shields > 0;
        drop(state);
        stop_wakers.into_iter().for_each(Waker::wake);
        for cleanup in cleanups {
            super::catch_panic::drop_catching_panics(cleanup);
        }
        if wake {
            self.wake_watchers();
        }
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Registers `waker` to be woken at the next change of the execution. To miss no change, read the state after this
    /// call, not before.
    pub(crate) fn wake_on_change(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.watchers.iter().any(|known| known.will_wake(waker)) {
            state.watchers.push(waker.clone());
        }
    }

    /// Returns a future that completes with the reason when the execution has to stop.
    #[cfg(feature = "server")]
    pub(crate) fn stopped(&self) -> ExecutionStopFuture<'_> {
        ExecutionStopFuture { execution: self, slot: None }
    }

    /// Waits until the driver has taken the end of the execution. Returns the reason if the execution was stopped before: then
    /// the peer gets no response of its handler.
    #[cfg(feature = "server")]
    pub(crate) async fn closed(&self) -> Option<CancelReason> {
        let mut stopped = self.stopped();
        std::future::poll_fn(|cx| match Pin::new(&mut stopped).poll(cx) {
            Poll::Ready(reason) => Poll::Ready(Some(reason)),
            Poll::Pending if self.lock().closed => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Adds a cleanup that runs if the execution is stopped.
    pub(crate) fn add_cleanup(&self, cleanup: RuntimeTask) {
        let mut state = self.lock();
        if state.abandoned {
            // Nothing would run or drop the cleanup any more. It may hold this execution, so storing it would be a leak.
            drop(state);
            return super::catch_panic::drop_catching_panics(cleanup);
        }
        state.cleanups.push(cleanup);
    }

    /// Ends the execution if no shield and no cleanup is left, and returns whether it did. No shield or cleanup can be
    /// added after the end of an execution.
    pub(crate) fn try_end(&self) -> bool {
        let mut state = self.lock();
        let ended = state.shields == 0 && state.cleanups.is_empty();
        state.abandoned |= ended;
        ended
    }

    /// Takes the cleanup that was added last: cleanups run in reverse order, as destructors do.
    pub(crate) fn pop_cleanup(&self) -> Option<RuntimeTask> {
        self.lock().cleanups.pop()
    }

    /// Drops all cleanups without running them, because the handler was not cancelled.
    pub(crate) fn drop_cleanups(&self) {
        let cleanups = std::mem::take(&mut self.lock().cleanups);
        for cleanup in cleanups {
            super::catch_panic::drop_catching_panics(cleanup);
        }
    }

    /// Starts a shield: the execution does not end before the shield has ended. Returns `None` once the execution has
    /// ended.
    pub(crate) fn start_shield(self: &Arc<Self>) -> Option<ShieldGuard> {
        let mut state = self.lock();
        if state.abandoned {
            return None;
        }
        state.shields += 1;
        Some(ShieldGuard(Arc::clone(self)))
    }

    pub(crate) fn has_shields(&self) -> bool {
        self.lock().shields > 0
    }

    /// Stores a progress report for the driver to send. The report replaces one that the driver has not taken yet.
    pub(crate) fn report_progress(&self, progress: ProgressReport) {
        if !self.wants_progress || self.stop_reason().is_some() {
            return;
        }
        let was_empty = self.lock().progress.replace(progress).is_none();
        if was_empty {
            // If the connection is closed, the progress is dropped with it.
            let _ = self.mailbox.post(DriverCommand::SendProgress { key: self.key });
        }
    }

    pub(crate) fn take_progress(&self) -> Option<ProgressReport> {
        self.lock().progress.take()
    }

    /// Reserves a slot in the driver's mailbox for a log message or vendor notification of this request, and returns
    /// whether a slot was free.
    pub(crate) fn reserve_log(&self) -> bool {
        let mut state = self.lock();
        let reserved = state.queued_logs < MAX_QUEUED_LOGS && self.stop_reason().is_none();
        state.queued_logs += usize::from(reserved);
        reserved
    }

    /// Frees the slot of a log message or vendor notification that the driver has taken from its mailbox.
    pub(crate) fn release_log(&self) {
        let mut state = self.lock();
        state.queued_logs = state.queued_logs.saturating_sub(1);
    }

    fn wake_watchers(&self) {
        let watchers = std::mem::take(&mut self.lock().watchers);
        watchers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, HandlerExecutionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that completes when an execution has to stop. User code may create any number of these futures, so each of
/// them has a slot for its waker, and frees the slot when it is dropped.
#[cfg(feature = "server")]
pub(crate) struct ExecutionStopFuture<'a> {
    execution: &'a HandlerExecution,
    slot: Option<usize>,
}

#[cfg(feature = "server")]
impl Future for ExecutionStopFuture<'_> {
    type Output = CancelReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<CancelReason> {
        let waker = cx.waker().clone();
        let mut state = self.execution.lock();
        let slot = self.slot.or_else(|| state.free_stop_slots.pop()).unwrap_or(state.stop_wakers.len());
        // A waker is dropped without the lock: that may drop a task of the user.
        if slot >= state.stop_wakers.len() {
            state.stop_wakers.push(None);
        }
        let replaced = state.stop_wakers.get_mut(slot).and_then(|known| known.replace(waker));
        drop(state);
        drop(replaced);
        self.slot = Some(slot);
        // Read after the waker is stored, so that no stop is missed.
        self.execution.stop_reason().map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(feature = "server")]
impl Drop for ExecutionStopFuture<'_> {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut state = self.execution.lock();
        let waker = state.stop_wakers.get_mut(slot).and_then(Option::take);
        state.free_stop_slots.push(slot);
        drop(state);
        drop(waker);
    }
}

/// Counts a shield as running until this guard is dropped.
pub(crate) struct ShieldGuard(Arc<HandlerExecution>);

impl Drop for ShieldGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.shields -= 1;
        drop(state);
        self.0.wake_watchers();
    }
}

/// The future that a handler passed to `Context::shield`. A shield goes on when its request is cancelled, and is
/// dropped only when the execution is abandoned at the drain deadline. Panics of the shielded future are caught.
pub(crate) struct ShieldFuture<F> {
    future: Option<Pin<Box<F>>>,
    guard: Option<ShieldGuard>,
}

impl<F: Future<Output = ()>> ShieldFuture<F> {
    pub(crate) fn new(future: F, guard: ShieldGuard) -> Self {
        Self { future: Some(Box::pin(future)), guard: Some(guard) }
    }
}

impl<F: Future<Output = ()>> Future for ShieldFuture<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let Some(guard) = &self.guard else { return Poll::Ready(()) };
        let execution = Arc::clone(&guard.0);
        execution.wake_on_change(cx.waker());
        let _watch = execution.runtime.as_tokio().map(TokioRuntime::watch_poll);
        let pending = !execution.is_abandoned()
            && self.future.as_mut().is_some_and(|future| {
                super::catch_panic::poll_catching_panics(future.as_mut(), cx).is_ok_and(|poll| poll.is_pending())
            });
        if pending {
            return Poll::Pending;
        }
        if let Some(future) = self.future.take() {
            super::catch_panic::drop_catching_panics(future);
        }
        self.guard = None;
        Poll::Ready(())
    }
}
