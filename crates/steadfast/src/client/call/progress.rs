//! The progress of a call as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use steadfast_model::ProgressParams;
use steadfast_model::request::Request;
use tokio::sync::oneshot;

use super::Call;
use super::canceller::Canceller;
use super::outcome::CallOutcome;
use super::pending::{ClientCallResultAndFlow, outcome_of};
use crate::error::{Error, Outcome};
use crate::runtime::{LossyChannel, progress_bytes};

/// The maximum number of unread progress reports of a call, and their maximum size. If the unread progress reports of
/// a call exceed a limit, the oldest reports are dropped.
const MAX_UNREAD: usize = 64;
const MAX_UNREAD_BYTES: usize = 1 << 20;

impl<R: Request> Call<R> {
    /// Starts the call with progress: returns a stream of progress reports and a future of the result.
    ///
    /// The call runs in a spawned task, so the progress stream and the result can be awaited in any order, or only one
    /// of them. The progress stream ends when the call ends. Dropping the progress stream has no effect on the call;
    /// dropping the [`CallHandle`] cancels the call.
    ///
    /// ```
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// let (mut progress, result) = client.call_tool("build", ()).start_with_progress();
    /// while let Some(step) = progress.next().await {
    ///     println!("{} of {:?}", step.progress, step.total);
    /// }
    /// println!("{:?}", result.await?.content);
    /// # Ok(()) }
    /// ```
    pub fn start_with_progress(self) -> (ProgressStream, CallHandle<R>) {
        let backlog = Arc::new(LossyChannel::new(MAX_UNREAD, MAX_UNREAD_BYTES));
        let (reports, close_stream) = (Arc::clone(&backlog), ProgressStreamCloseGuard(Arc::clone(&backlog)));
        let runtime = Arc::clone(self.client.inner.runtime());
        let call = self.on_progress(move |progress: ProgressParams| {
            let bytes = progress_bytes(&progress);
            reports.push(progress, bytes);
        });
        let mut call = call.start();
        let canceller = call.canceller();
        let (mut sender, result) = oneshot::channel();
        runtime.spawn(Box::pin(async move {
            let _close_stream = close_stream;
            let ended = std::future::poll_fn(|cx| match call.poll_end(cx) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                // The `CallHandle` was dropped: so is the call, which cancels it.
                Poll::Pending => sender.poll_closed(cx).map(|()| None),
            })
            .await;
            drop(call);
            if let Some(ended) = ended {
                // An error means that the `CallHandle` was dropped just now.
                let _ = sender.send(ended);
            }
        }));
        (ProgressStream(backlog), CallHandle { result: Some(result), canceller })
    }
}

/// Ends the progress stream, however the call ends.
struct ProgressStreamCloseGuard(Arc<LossyChannel<ProgressParams>>);

impl Drop for ProgressStreamCloseGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A stream of the progress reports of a call: see [`Call::start_with_progress`]. The stream holds at most 64 unread
/// reports; if there are more, the oldest are dropped.
#[must_use = "streams do nothing unless polled"]
pub struct ProgressStream(Arc<LossyChannel<ProgressParams>>);

impl ProgressStream {
    /// Returns the next progress report, or `None` when the call has ended.
    pub async fn next(&mut self) -> Option<ProgressParams> {
        std::future::poll_fn(|cx| self.0.poll(cx)).await
    }
}

impl Stream for ProgressStream {
    type Item = ProgressParams;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProgressParams>> {
        self.0.poll(cx)
    }
}

/// A call that runs in a spawned task: await the handle for the result of the call. Dropping the handle cancels the
/// call.
#[must_use = "dropping this cancels the call"]
pub struct CallHandle<R: Request> {
    /// `None` once the result of the call was returned.
    result: Option<oneshot::Receiver<ClientCallResultAndFlow<R>>>,
    canceller: Canceller,
}

impl<R: Request> CallHandle<R> {
    /// A handle that cancels this call from another task.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the end of the call, as a [`CallOutcome`]: an enum that has to be matched.
    pub async fn outcome(mut self) -> CallOutcome<R> {
        outcome_of(std::future::poll_fn(|cx| self.poll_end(cx)).await)
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<ClientCallResultAndFlow<R>> {
        // After its end it stays pending, rather than panic.
        let Some(result) = &mut self.result else { return Poll::Pending };
        let ended = std::task::ready!(Pin::new(result).poll(cx));
        self.result = None;
        // If the runtime was shut down, its task and the call were dropped.
        Poll::Ready(ended.unwrap_or_else(|_| (Err(Error::cancelled(Outcome::Unknown)), None)))
    }
}

impl<R: Request> Future for CallHandle<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_end(cx).map(|(result, _)| result)
    }
}

impl std::fmt::Debug for ProgressStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ProgressStream").finish_non_exhaustive()
    }
}

impl<R: Request> std::fmt::Debug for CallHandle<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CallHandle").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
