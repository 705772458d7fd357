//! Cancelling a call from elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast_proto::connection::CallKey;

use crate::runtime::{DriverCommand, Mailbox, PendingCall};

/// Cancels a call from anywhere. Cheap to clone.
///
/// The call then ends with an error of [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), whose outcome says whether the
/// server may have acted on it; or with its answer, if that came first. A call that waits for a connection, or between two
/// rounds, ends as soon.
///
/// ```
/// # async fn example(client: steadfast::Client) {
/// let call = client.call_tool("slow", serde_json::json!({})).start();
/// let canceller = call.canceller();
/// tokio::spawn(async move { canceller.cancel() });
/// if let Err(error) = call.await {
///     println!("{error}: {:?}", error.outcome());
/// }
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Canceller(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    cancelled: bool,
    /// The request that is under way, or was last.
    request: Option<(Arc<Mailbox>, CallKey)>,
    waker: Option<Waker>,
}

impl Canceller {
    /// Cancels the call. Nothing happens if it has ended.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let (request, waker) = (state.request.take(), state.waker.take());
        drop(state);
        give_up(request);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// The call goes on with this request.
    pub(crate) fn follow(&self, request: &PendingCall) {
        let mut state = self.lock();
        let request = Some(request.handle());
        if state.cancelled {
            drop(state);
            give_up(request);
        } else {
            state.request = request;
        }
    }

    /// Completes when it is cancelled.
    pub(crate) async fn cancelled(&self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.cancelled {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn give_up(request: Option<(Arc<Mailbox>, CallKey)>) {
    if let Some((mailbox, key)) = request {
        // If the connection is closed, so is the call.
        let _ = mailbox.post(DriverCommand::CancelCall(key));
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Canceller").field("cancelled", &self.is_cancelled()).finish()
    }
}
