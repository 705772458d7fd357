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
use super::pending::{CallEndOrFailure, outcome_of};
use crate::error::{Error, Outcome};
use crate::runtime::{Backlog, progress_bytes};

/// Who leaves more than this unread, or more bytes of messages, loses the oldest.
const UNSEEN: usize = 64;
const UNSEEN_BYTES: usize = 1 << 20;

impl<R: Request> Call<R> {
    /// Makes the call and asks for progress, which comes as a stream beside the result.
    ///
    /// The stream ends when the call does, and each may be awaited without the other: the call goes on by itself. Dropping
    /// the stream changes nothing; dropping the result takes the call back. It can be [cancelled](RunningCall::canceller) and
    /// [settled](RunningCall::settle) as any call.
    ///
    /// ```
    /// # async fn example(client: steadfast::Client) -> Result<(), steadfast::Error> {
    /// let (mut progress, result) = client.call_tool("build", ()).with_progress();
    /// while let Some(step) = progress.next().await {
    ///     println!("{} of {:?}", step.progress, step.total);
    /// }
    /// println!("{:?}", result.await?.content);
    /// # Ok(()) }
    /// ```
    pub fn with_progress(self) -> (Progress, RunningCall<R>) {
        let backlog = Arc::new(Backlog::new(UNSEEN, UNSEEN_BYTES));
        let (told, end) = (Arc::clone(&backlog), Closing(Arc::clone(&backlog)));
        let runtime = Arc::clone(self.client.inner.runtime());
        let call = self.on_progress(move |progress: ProgressParams| {
            let bytes = progress_bytes(&progress);
            told.push(progress, bytes);
        });
        let mut call = call.start();
        let canceller = call.canceller();
        let (mut done, result) = oneshot::channel();
        runtime.spawn(Box::pin(async move {
            let _end = end;
            let ended = std::future::poll_fn(|cx| match call.poll_end(cx) {
                Poll::Ready(ended) => Poll::Ready(Some(ended)),
                // Nobody waits for it any more: it is dropped, and so taken back.
                Poll::Pending => done.poll_closed(cx).map(|()| None),
            })
            .await;
            drop(call);
            if let Some(ended) = ended {
                // If nobody waits for it now, nobody is told.
                let _ = done.send(ended);
            }
        }));
        (Progress(backlog), RunningCall { result, canceller })
    }
}

/// Ends the stream, however the call ends.
struct Closing(Arc<Backlog<ProgressParams>>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The progress of a call: see [`Call::with_progress`]. Who leaves more than 64 reports unread loses the oldest.
#[must_use = "nothing is heard unless this is polled"]
pub struct Progress(Arc<Backlog<ProgressParams>>);

impl Progress {
    /// The next report; `None` when the call has ended.
    pub async fn next(&mut self) -> Option<ProgressParams> {
        std::future::poll_fn(|cx| self.0.poll(cx)).await
    }
}

impl Stream for Progress {
    type Item = ProgressParams;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ProgressParams>> {
        self.0.poll(cx)
    }
}

/// A call that goes on by itself: await it for its result. Dropping it takes the call back.
#[must_use = "dropping this takes the call back"]
pub struct RunningCall<R: Request> {
    result: oneshot::Receiver<CallEndOrFailure<R>>,
    canceller: Canceller,
}

impl<R: Request> RunningCall<R> {
    /// What cancels the call from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the end, and says what became of the call in a way that has to be looked at: see [`CallOutcome`].
    pub async fn outcome(mut self) -> CallOutcome<R> {
        outcome_of(std::future::poll_fn(|cx| self.poll_end(cx)).await)
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<CallEndOrFailure<R>> {
        // Its runtime may be gone, and with it the call.
        let gone = || (Err(Error::cancelled(Outcome::Unknown)), None);
        Pin::new(&mut self.result).poll(cx).map(|ended| ended.unwrap_or_else(|_| gone()))
    }
}

impl<R: Request> Future for RunningCall<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_end(cx).map(|(result, _)| result)
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Progress").finish_non_exhaustive()
    }
}

impl<R: Request> std::fmt::Debug for RunningCall<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Underway").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
