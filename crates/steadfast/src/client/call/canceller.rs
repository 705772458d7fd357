//! A handle that cancels a call from another task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use steadfast_proto::connection::CallKey;

use crate::runtime::{DriverCommand, DriverMailbox, PendingCall};

/// Cancels a call from any task or thread. Cheap to clone.
///
/// A cancelled call ends with an error of [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), whose outcome says
/// whether the server may have acted on the call; or with its response, if that arrives first. A cancelled call that
/// waits for a connection, for input or for an MCP task ends at once.
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
#[derive(Clone)]
pub struct Canceller(Arc<Mutex<CancelState>>);

#[derive(Default)]
struct CancelState {
    cancelled: bool,
    /// The current or last request of the call: its key, and the mailbox of the driver that cancels it.
    request: Option<(Arc<DriverMailbox>, CallKey)>,
    waker: Option<Waker>,
}

impl Canceller {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Cancels the call. Does nothing if the call has ended.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let (request, waker) = (state.request.take(), state.waker.take());
        drop(state);
        cancel_request(request);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether [`Canceller::cancel`] was called for the call.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Sets the request that [`cancel`](Self::cancel) cancels from now on.
    pub(crate) fn track(&self, request: &PendingCall) {
        let mut state = self.lock();
        let request = Some(request.handle());
        if state.cancelled {
            drop(state);
            cancel_request(request);
        } else {
            state.request = request;
        }
    }

    /// Completes when the call is cancelled.
    pub(crate) async fn cancelled(&self) {
        std::future::poll_fn(|cx| self.poll_cancelled(cx)).await;
    }

    fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.cancelled {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, CancelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cancel_request(request: Option<(Arc<DriverMailbox>, CallKey)>) {
    if let Some((mailbox, key)) = request {
        // If the connection is closed, the call has ended.
        let _ = mailbox.post(DriverCommand::CancelCall(key));
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Canceller").field("cancelled", &self.is_cancelled()).finish()
    }
}
