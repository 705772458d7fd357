//! Calls to the peer, as futures: dropping one gives the call up and tells the peer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast_model::{Method, ProgressParams, ProgressToken, Revision};
use steadfast_proto::connection::{Call, CallEnd, CallKey, CallRefused, Key};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;

use super::mailbox::{DriverCommand, Mailbox};
use crate::runtime::bounded_queue::BoundedQueue;
use crate::runtime::threads::driver_migration::Callers;

/// Called with the progress of a call.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

/// Where the driver puts the end of a call.
pub(crate) struct CallSlot {
    state: Mutex<State>,
    /// Its result matters also if nobody looks at it.
    expects_late_answer: bool,
}

struct State {
    ending: Option<CallEnd>,
    /// Nobody will look at it.
    abandoned: bool,
    /// Progress that the caller has not seen.
    progress: BoundedQueue<ProgressParams>,
    /// What a subscription was told and has not seen.
    notifications: BoundedQueue<(Method, OwnedParams)>,
    waker: Option<Waker>,
}

/// So much progress is kept for a caller that does not keep up.
const UNSEEN: usize = 64;

/// More of the same, and only the newest say anything new: what has changed is to be looked at again.
const UNSEEN_NOTICES: usize = 1_024;

/// And no more than this of either.
const UNSEEN_BYTES: usize = 4 << 20;

impl Default for State {
    fn default() -> Self {
        Self {
            ending: None,
            abandoned: false,
            progress: BoundedQueue::new(UNSEEN, UNSEEN_BYTES),
            notifications: BoundedQueue::new(UNSEEN_NOTICES, UNSEEN_BYTES),
            waker: None,
        }
    }
}

/// What a report counts for: whatever of it the server may make as long as it likes.
pub(crate) fn progress_bytes(progress: &ProgressParams) -> usize {
    let beside = progress.meta.as_ref().and_then(|meta| serde_json::to_string(meta).ok());
    progress.message.as_ref().map_or(0, String::len) + beside.map_or(0, |text| text.len())
}

impl State {
    fn take_progress(&mut self) -> Vec<ProgressParams> {
        std::iter::from_fn(|| self.progress.pop()).collect()
    }
}

impl CallSlot {
    /// Puts the end in. Gives the result back if it matters and nobody will look at it.
    pub(crate) fn end(&self, ending: CallEnd) -> Option<Box<str>> {
        let mut unseen = None;
        self.change(|state| match ending {
            CallEnd::Answered(result) if state.abandoned && self.expects_late_answer => {
                unseen = Some(result);
            }
            ending => state.ending = Some(ending),
        });
        unseen
    }

    /// Looks at the answer, if it has come and nobody has taken it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&str) -> T) -> Option<T> {
        match &self.lock().ending {
            Some(CallEnd::Answered(result)) => Some(look(result)),
            _ => None,
        }
    }

    pub(crate) fn progress(&self, progress: ProgressParams) {
        let bytes = progress_bytes(&progress);
        self.change(|state| state.progress.push(progress, bytes));
    }

    pub(crate) fn notice(&self, method: Method, params: OwnedParams) {
        let bytes = params.text().len();
        self.change(|state| state.notifications.push((method, params), bytes));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call is to be made.
#[derive(Default)]
pub(crate) struct CallOptions {
    pub(crate) parent: Option<Key>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) total_timeout: Option<Duration>,
    pub(crate) progress: Option<(ProgressToken, OnProgress)>,
    /// The probe of the era is not taken back, nor is what is taken back in another way.
    pub(crate) keep_when_given_up: bool,
    /// Its result matters when it has been given up: see [`Service::answered_late`](crate::runtime::Service::answered_late).
    pub(crate) expects_late_answer: bool,
}

/// A call that waits for its end.
pub(crate) struct PendingCall {
    key: CallKey,
    slot: Arc<CallSlot>,
    mailbox: Arc<Mailbox>,
    /// Called where the call is awaited, never on the driver's thread.
    on_progress: Option<OnProgress>,
    ended: bool,
}

impl PendingCall {
    /// Makes a call.
    pub(crate) fn new(mailbox: &Arc<Mailbox>, method: Method, params: Option<Box<str>>, options: CallOptions) -> Self {
        Self::post(mailbox, options, |key, mut call, slot| {
            (call.method, call.params) = (method, params);
            DriverCommand::Call { key, call, slot }
        })
    }

    /// Makes the call that opens a connection of an older revision.
    pub(crate) fn initialize(mailbox: &Arc<Mailbox>, offered: Revision, options: CallOptions) -> Self {
        Self::post(mailbox, options, |key, call, slot| DriverCommand::Initialize { key, call, offered, slot })
    }

    fn post(
        mailbox: &Arc<Mailbox>,
        options: CallOptions,
        command: impl FnOnce(CallKey, Call, Arc<CallSlot>) -> DriverCommand,
    ) -> Self {
        let mut call = Call::new(Method::Ping, None);
        call.parent = options.parent;
        if !mutant!(ForgetCallDeadlines) {
            call.timeout = options.timeout;
            call.total_timeout = options.total_timeout;
        }
        call.cancellable = !options.keep_when_given_up;
        call.expects_late_answer = options.expects_late_answer;
        let (token, on_progress) = options.progress.unzip();
        call.progress_token = token;
        let slot = Arc::new(CallSlot { state: Mutex::default(), expects_late_answer: options.expects_late_answer });
        let key = mailbox.next_call();
        mailbox.callers().into_iter().for_each(Callers::note);
        if mailbox.post(command(key, call, Arc::clone(&slot))).is_err() {
            slot.end(CallEnd::NotMade(CallRefused::Closed));
        }
        Self { key, slot, mailbox: Arc::clone(mailbox), on_progress, ended: false }
    }
}

impl PendingCall {
    /// What a subscription is told; `Err` at its end.
    pub(crate) fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Method, OwnedParams), CallEnd>> {
        let mut state = self.slot.lock();
        if let Some(notice) = state.notifications.pop() {
            return Poll::Ready(Ok(notice));
        }
        let Some(ending) = state.ending.take() else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        self.ended = true;
        Poll::Ready(Err(ending))
    }

    /// The way to the driver, and the name under which it knows the call.
    pub(crate) fn handle(&self) -> (Arc<Mailbox>, CallKey) {
        (Arc::clone(&self.mailbox), self.key)
    }

    /// Whether somebody has looked at how it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Where its end is put.
    pub(crate) fn slot(&self) -> &Arc<CallSlot> {
        &self.slot
    }

    /// Nobody will look at it any more. Gives how it ended, if it has and nobody has looked.
    pub(crate) fn abandon(&mut self) -> Option<CallEnd> {
        let mut state = self.slot.lock();
        state.abandoned = true;
        let ending = state.ending.take();
        drop(state);
        self.ended |= ending.is_some();
        ending
    }

    /// What is called with progress, for another call.
    pub(crate) fn take_on_progress(&mut self) -> Option<OnProgress> {
        self.on_progress.take()
    }
}

impl PendingCall {
    /// Tells of progress. Ready when it has ended, which nobody has looked at then: see [`take_ending`](Self::take_ending).
    pub(crate) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.slot.lock();
        if let Some(on_progress) = &mut self.on_progress {
            let mut progress = state.take_progress();
            while !progress.is_empty() {
                drop(state);
                progress.into_iter().for_each(&mut *on_progress);
                state = self.slot.lock();
                // Nothing comes behind the end, and what came before it is told before it is.
                progress = if state.ending.is_some() { state.take_progress() } else { Vec::new() };
            }
        }
        if state.ending.is_some() {
            return Poll::Ready(());
        }
        // What came while the callback ran is seen at once.
        if !state.progress.is_empty() {
            cx.waker().wake_by_ref();
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// How it ended, once, if it has.
    pub(crate) fn take_ending(&mut self) -> Poll<CallEnd> {
        let ending = self.slot.lock().ending.take();
        self.ended |= ending.is_some();
        ending.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Future for PendingCall {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        std::task::ready!(self.poll_ended(cx));
        self.take_ending()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.ended && !mutant!(KeepDroppedCalls) {
            // If the connection is closed there is nobody to tell.
            let _ = self.mailbox.post(DriverCommand::CancelCall(self.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_proto::connection::Limits;

    use super::*;

    /// A call whose callback hears of more, and of the end, while it looks at the first report.
    #[tokio::test]
    async fn what_comes_while_progress_is_looked_at_is_told_before_the_end() {
        let report = |step| ProgressParams::new(ProgressToken::from(1), f64::from(step));
        let (heard, slot) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None::<Arc<CallSlot>>)));
        let (hears, ends) = (Arc::clone(&heard), Arc::clone(&slot));
        let on_progress: OnProgress = Box::new(move |progress| {
            hears.lock().unwrap().push(progress.progress);
            if let Some(slot) = ends.lock().unwrap().take() {
                slot.progress(report(2));
                slot.end(CallEnd::NotMade(CallRefused::Closed));
            }
        });
        let options = CallOptions { progress: Some((ProgressToken::from(1), on_progress)), ..CallOptions::default() };
        let mailbox = Mailbox::new(&Limits::default());
        let call = PendingCall::new(&mailbox, Method::CallTool, None, options);
        *slot.lock().unwrap() = Some(Arc::clone(&call.slot));
        call.slot.progress(report(1));
        call.await;
        assert_eq!(*heard.lock().unwrap(), [1.0, 2.0]);
    }
}
