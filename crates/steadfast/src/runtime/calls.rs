//! Calls to the peer, as futures: dropping one gives the call up and tells the peer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast_model::{Method, ProgressParams, ProgressToken, Revision};
use steadfast_proto::connection::{Call, CallKey, CallRefused, Key, Outcome};

use super::mailbox::{Letter, Mailbox};

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallEnding {
    /// As the connection says.
    Ended(Outcome),
    /// It was never made.
    Refused(CallRefused),
}

type OnProgress = Box<dyn Fn(ProgressParams) + Send + Sync>;

/// Where the driver puts the end of a call.
pub(crate) struct Slot {
    state: Mutex<State>,
    on_progress: Option<OnProgress>,
}

#[derive(Default)]
struct State {
    ending: Option<CallEnding>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn end(&self, ending: CallEnding) {
        let mut state = self.lock();
        state.ending = Some(ending);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn progress(&self, progress: ProgressParams) {
        if let Some(on_progress) = &self.on_progress {
            // A callback that panics must not take the driver with it.
            let call = std::panic::AssertUnwindSafe(|| on_progress(progress));
            let _ = std::panic::catch_unwind(call);
        }
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
    /// The probe of the era is not taken back.
    pub(crate) keep_when_given_up: bool,
}

/// A call that waits for its end.
pub(crate) struct PendingCall {
    key: CallKey,
    slot: Arc<Slot>,
    mailbox: Arc<Mailbox>,
    ended: bool,
}

impl PendingCall {
    /// Makes a call.
    pub(crate) fn new(mailbox: &Arc<Mailbox>, method: Method, params: Option<Box<str>>, options: CallOptions) -> Self {
        Self::post(mailbox, options, |key, mut call, slot| {
            (call.method, call.params) = (method, params);
            Letter::Call { key, call, slot }
        })
    }

    /// Makes the call that opens a connection of an older revision.
    pub(crate) fn initialize(mailbox: &Arc<Mailbox>, offered: Revision, options: CallOptions) -> Self {
        Self::post(mailbox, options, |key, call, slot| Letter::Initialize { key, call, offered, slot })
    }

    fn post(
        mailbox: &Arc<Mailbox>,
        options: CallOptions,
        letter: impl FnOnce(CallKey, Call, Arc<Slot>) -> Letter,
    ) -> Self {
        let mut call = Call::new(Method::Ping, None);
        call.parent = options.parent;
        call.timeout = options.timeout;
        call.total_timeout = options.total_timeout;
        call.cancellable = !options.keep_when_given_up;
        let (token, on_progress) = options.progress.unzip();
        call.progress_token = token;
        let slot = Arc::new(Slot { state: Mutex::default(), on_progress });
        let key = mailbox.next_call();
        if mailbox.post(letter(key, call, Arc::clone(&slot))).is_err() {
            slot.end(CallEnding::Refused(CallRefused::Closed));
        }
        Self { key, slot, mailbox: Arc::clone(mailbox), ended: false }
    }
}

impl Future for PendingCall {
    type Output = CallEnding;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnding> {
        let mut state = self.slot.lock();
        let Some(ending) = state.ending.take() else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        self.ended = true;
        Poll::Ready(ending)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.ended {
            // If the connection is closed there is nobody to tell.
            let _ = self.mailbox.post(Letter::CancelCall(self.key));
        }
    }
}
