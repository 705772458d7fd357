//! Calls to the peer, as futures. Dropping the future of a call cancels the call.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast_model::{Method, ProgressParams, ProgressToken, Revision};
use steadfast_proto::connection::{Call, CallEnd, CallKey, InboundRequestKey, NotSentReason};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;

use super::mailbox::{DriverCommand, DriverMailbox};
use crate::runtime::bounded_queue::LossyQueue;
use crate::runtime::threads::driver_migration::WorkerCallCounter;

/// Callback for the progress of a call.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

/// The state that a call shares with the driver of its connection: the driver stores the outcome, the progress and the
/// notifications of the call here.
pub(crate) struct CallSlot {
    state: Mutex<CallSlotState>,
    /// Whether the response is needed even after the caller has dropped the call: the response may create an MCP task,
    /// which then has to be cancelled.
    expects_late_response: bool,
}

struct CallSlotState {
    end: Option<CallEnd>,
    /// The caller has dropped the future of the call.
    abandoned: bool,
    /// The peer's progress notifications for this call that the caller has not read yet.
    progress: LossyQueue<ProgressParams>,
    /// If the call is a subscription, its notifications that the caller has not read yet.
    notifications: LossyQueue<(Method, OwnedParams)>,
    waker: Option<Waker>,
}

/// The maximum number of progress notifications that are queued for a slow caller. When the queue of a call's
/// progress notifications is full, the oldest is dropped.
const MAX_PROGRESS: usize = 64;

/// The maximum number of notifications that are queued for a slow subscriber. When the queue of a subscription's
/// notifications is full, the oldest is dropped.
const MAX_NOTIFICATIONS: usize = 1_024;

/// The maximum size, in bytes, of the queued progress notifications of one call, and of its other queued notifications.
const MAX_QUEUED_BYTES: usize = 4 << 20;

impl Default for CallSlotState {
    fn default() -> Self {
        Self {
            end: None,
            abandoned: false,
            progress: LossyQueue::new(MAX_PROGRESS, MAX_QUEUED_BYTES),
            notifications: LossyQueue::new(MAX_NOTIFICATIONS, MAX_QUEUED_BYTES),
            waker: None,
        }
    }
}

/// Returns the size, in bytes, of those parts of a progress notification whose length the peer chooses.
pub(crate) fn progress_bytes(progress: &ProgressParams) -> usize {
    let meta = progress.meta.as_ref().and_then(|meta| serde_json::to_string(meta).ok());
    progress.message.as_ref().map_or(0, String::len) + meta.map_or(0, |text| text.len())
}

impl CallSlotState {
    fn take_progress(&mut self) -> Vec<ProgressParams> {
        std::iter::from_fn(|| self.progress.pop()).collect()
    }
}

impl CallSlot {
    /// Stores the outcome of the call. Returns the result instead if the caller has dropped the call and the result is
    /// needed nevertheless.
    pub(crate) fn end(&self, end: CallEnd) -> Option<Box<str>> {
        let mut late = None;
        self.update(|state| match end {
            CallEnd::Answered(result) if state.abandoned && self.expects_late_response => {
                late = Some(result);
            }
            end => state.end = Some(end),
        });
        late
    }

    /// Reads the result of the call without taking it, if it has arrived and the caller has not taken it.
    pub(crate) fn peek_result<T>(&self, read: impl FnOnce(&str) -> T) -> Option<T> {
        match &self.lock().end {
            Some(CallEnd::Answered(result)) => Some(read(result)),
            _ => None,
        }
    }

    pub(crate) fn push_progress(&self, progress: ProgressParams) {
        let bytes = progress_bytes(&progress);
        self.update(|state| state.progress.push(progress, bytes));
    }

    pub(crate) fn push_notification(&self, method: Method, params: OwnedParams) {
        let bytes = params.text().len();
        self.update(|state| match method {
            // A subscriber that has not read this one withholds all that follow.
            Method::SubscriptionAcknowledged => state.notifications.push_kept((method, params), bytes),
            _ => state.notifications.push((method, params), bytes),
        });
    }

    /// Changes the state of the call, and wakes its caller.
    fn update(&self, change: impl FnOnce(&mut CallSlotState)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, CallSlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The options of an outbound call, such as its timeouts and its progress callback.
#[derive(Default)]
pub(crate) struct OutboundCallOptions {
    /// The request of the peer whose handler makes this call, if a handler does.
    pub(crate) parent: Option<InboundRequestKey>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) progress: Option<(ProgressToken, OnProgress)>,
    /// Whether no `notifications/cancelled` is sent when the call is cancelled, because the call probes the server or
    /// is cancelled with `tasks/cancel`.
    pub(crate) uncancellable: bool,
    /// Whether the result of the call is needed even after the call was cancelled: see
    /// [`InboundDispatcher::on_late_result`](crate::runtime::InboundDispatcher::on_late_result).
    pub(crate) expects_late_response: bool,
    /// Whether the call does not count towards the limit of calls in flight. The limit of calls in flight is for calls
    /// of the program: a ping or probe of this library must not take the place of such a call, nor be refused.
    pub(crate) exempt_from_limit: bool,
}

/// A call in flight, as a future that completes with the outcome of the call.
pub(crate) struct PendingCall {
    key: CallKey,
    slot: Arc<CallSlot>,
    mailbox: Arc<DriverMailbox>,
    /// The callback for progress, which runs on the thread that awaits the call, never on the driver's thread.
    on_progress: Option<OnProgress>,
    /// Whether the outcome of the call was already taken from the call's slot.
    ended: bool,
}

impl PendingCall {
    /// Starts a call.
    pub(crate) fn new(
        mailbox: &Arc<DriverMailbox>,
        method: Method,
        params: Option<Box<str>>,
        options: OutboundCallOptions,
    ) -> Self {
        Self::post(mailbox, options, |key, mut call, slot| {
            (call.method, call.params) = (method, params);
            DriverCommand::Call { key, call, slot }
        })
    }

    /// Starts the `initialize` call, with which connections of older revisions begin.
    pub(crate) fn initialize(mailbox: &Arc<DriverMailbox>, offered: Revision, options: OutboundCallOptions) -> Self {
        Self::post(mailbox, options, |key, call, slot| DriverCommand::Initialize { key, call, offered, slot })
    }

    fn post(
        mailbox: &Arc<DriverMailbox>,
        options: OutboundCallOptions,
        command: impl FnOnce(CallKey, Call, Arc<CallSlot>) -> DriverCommand,
    ) -> Self {
        let mut call = Call::new(Method::Ping, None);
        call.parent = options.parent;
        if !mutant!(ForgetCallDeadlines) {
            call.timeout = options.timeout;
            call.total_timeout = options.total_timeout;
        }
        call.cancellable = !options.uncancellable;
        call.exempt_from_limit = options.exempt_from_limit;
        call.expects_late_response = options.expects_late_response;
        let (token, on_progress) = options.progress.unzip();
        call.progress_token = token;
        let slot = Arc::new(CallSlot { state: Mutex::default(), expects_late_response: options.expects_late_response });
        let key = mailbox.next_call_key();
        mailbox.callers().into_iter().for_each(WorkerCallCounter::note);
        if mailbox.post(command(key, call, Arc::clone(&slot))).is_err() {
            slot.end(CallEnd::NotSent(NotSentReason::Closed));
        }
        Self { key, slot, mailbox: Arc::clone(mailbox), on_progress, ended: false }
    }
}

impl PendingCall {
    /// Returns the next notification of a subscription, or `Err` when the subscription has ended.
    pub(crate) fn poll_notification(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Method, OwnedParams), CallEnd>> {
        let mut state = self.slot.lock();
        if let Some(notification) = state.notifications.pop() {
            return Poll::Ready(Ok(notification));
        }
        let Some(end) = state.end.take() else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        self.ended = true;
        Poll::Ready(Err(end))
    }

    /// Returns the mailbox of the driver and the key of the call, with which the call can be cancelled.
    pub(crate) fn handle(&self) -> (Arc<DriverMailbox>, CallKey) {
        (Arc::clone(&self.mailbox), self.key)
    }

    /// Whether the outcome of the call was already taken from the call's slot.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The slot in which the driver stores the outcome of the call.
    pub(crate) fn slot(&self) -> &Arc<CallSlot> {
        &self.slot
    }

    /// Marks the call as abandoned by its caller. Returns the outcome of the call, if the call has ended and its
    /// outcome was not taken.
    pub(crate) fn abandon(&mut self) -> Option<CallEnd> {
        let mut state = self.slot.lock();
        state.abandoned = true;
        let end = state.end.take();
        drop(state);
        self.ended |= end.is_some();
        end
    }

    /// Takes the callback for progress, to use it for another call.
    pub(crate) fn take_on_progress(&mut self) -> Option<OnProgress> {
        self.on_progress.take()
    }
}

impl PendingCall {
    /// Passes progress notifications to the callback. Ready when the call has ended; then [`take_end`](Self::take_end)
    /// returns the outcome of the call.
    pub(crate) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.slot.lock();
        if let Some(on_progress) = &mut self.on_progress {
            let mut progress = state.take_progress();
            while !progress.is_empty() {
                drop(state);
                progress.into_iter().for_each(&mut *on_progress);
                state = self.slot.lock();
                // No progress is stored after the end, and progress from before the end reaches the callback before it.
                progress = if state.end.is_some() { state.take_progress() } else { Vec::new() };
            }
        }
        if state.end.is_some() {
            return Poll::Ready(());
        }
        // Progress that arrived while the callback ran has to be read at once.
        if !state.progress.is_empty() {
            cx.waker().wake_by_ref();
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes the outcome of the call, if the call has ended.
    pub(crate) fn take_end(&mut self) -> Poll<CallEnd> {
        let end = self.slot.lock().end.take();
        self.ended |= end.is_some();
        end.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Future for PendingCall {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        std::task::ready!(self.poll_ended(cx));
        self.take_end()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.ended && !mutant!(KeepDroppedCalls) {
            // If the connection is closed, the call has ended with it.
            let _ = self.mailbox.post(DriverCommand::CancelCall(self.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_proto::connection::Limits;

    use super::*;

    /// More progress and the end arrive while the callback runs for the first progress.
    #[tokio::test]
    async fn progress_that_arrives_during_the_callback_is_reported_before_the_end() {
        let report = |step| ProgressParams::new(ProgressToken::from(1), f64::from(step));
        let (reported, slot) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None::<Arc<CallSlot>>)));
        let (recorder, ending_slot) = (Arc::clone(&reported), Arc::clone(&slot));
        let on_progress: OnProgress = Box::new(move |progress| {
            recorder.lock().unwrap().push(progress.progress);
            if let Some(slot) = ending_slot.lock().unwrap().take() {
                slot.push_progress(report(2));
                slot.end(CallEnd::NotSent(NotSentReason::Closed));
            }
        });
        let options = OutboundCallOptions {
            progress: Some((ProgressToken::from(1), on_progress)),
            ..OutboundCallOptions::default()
        };
        let mailbox = DriverMailbox::new(&Limits::default(), None);
        let call = PendingCall::new(&mailbox, Method::CallTool, None, options);
        *slot.lock().unwrap() = Some(Arc::clone(&call.slot));
        call.slot.push_progress(report(1));
        call.await;
        assert_eq!(*reported.lock().unwrap(), [1.0, 2.0]);
    }
}
