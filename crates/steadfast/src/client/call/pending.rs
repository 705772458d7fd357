//! A call that was made, as a future.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use steadfast_model::request::Request;

use super::canceller::Canceller;
use super::flow::{CallFlow, Step};
use super::outcome::CallOutcome;
use super::request::InFlightRequest;
use crate::error::Error;

/// A call that was made, and waits for its end. What it takes beyond one request is done while it is polled.
#[must_use = "dropping this takes the call back"]
pub struct PendingResult<R: Request> {
    state: State<R>,
    canceller: Canceller,
}

enum State<R: Request> {
    /// For the first answer, which is all there is to most calls.
    Waiting(InFlightRequest<R>, Box<CallFlow<R>>),
    /// The answer was kept.
    Kept(Arc<str>, Box<CallFlow<R>>),
    /// It takes more than that.
    Going(Pin<Box<dyn Future<Output = CallEnd<R>> + Send>>),
    /// It was never made.
    Failed(Error, Option<Box<CallFlow<R>>>),
    Over,
}

/// What a call came to, and what it takes to make it again.
type CallEnd<R> = (Result<<R as Request>::Result, Error>, Box<CallFlow<R>>);

/// The same of one that may never have been made.
pub(crate) type CallEndOrFailure<R> = (Result<<R as Request>::Result, Error>, Option<Box<CallFlow<R>>>);

impl<R: Request> PendingResult<R> {
    pub(crate) fn begin(mut flow: Box<CallFlow<R>>) -> Self {
        let canceller = flow.canceller();
        if let Some(cache) = flow.cache() {
            return Self { state: State::Kept(cache, flow), canceller };
        }
        let state = match flow.request() {
            Ok(request) => State::Waiting(request, flow),
            Err(error) => State::Failed(error, Some(flow)),
        };
        Self { state, canceller }
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self { state: State::Failed(error, None), canceller: Canceller::default() }
    }

    /// What cancels the call from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Waits for the end, and says what became of the call in a way that has to be looked at: see [`CallOutcome`].
    pub async fn outcome(mut self) -> CallOutcome<R> {
        outcome_of(std::future::poll_fn(|cx| self.poll_end(cx)).await)
    }

    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<CallEndOrFailure<R>> {
        loop {
            match &mut self.state {
                State::Waiting(request, _) => {
                    let ending = std::task::ready!(Pin::new(request).poll(cx));
                    let State::Waiting(mut request, mut flow) = self.end() else { return Poll::Pending };
                    flow.take_back(&mut request);
                    let step = flow.read(ending);
                    drop(request);
                    match step {
                        Step::Over(result) => return Poll::Ready((result, Some(flow))),
                        Step::On(next) => self.state = State::Going(Box::pin(flow.go(next))),
                    }
                }
                State::Kept(..) => {
                    let State::Kept(text, mut flow) = self.end() else { return Poll::Pending };
                    match flow.take_answer(&text) {
                        Step::Over(result) => return Poll::Ready((result, Some(flow))),
                        Step::On(next) => self.state = State::Going(Box::pin(flow.go(next))),
                    }
                }
                State::Going(going) => {
                    let (result, flow) = std::task::ready!(going.as_mut().poll(cx));
                    self.state = State::Over;
                    return Poll::Ready((result, Some(flow)));
                }
                State::Failed(..) => {
                    let State::Failed(error, flow) = self.end() else { return Poll::Pending };
                    return Poll::Ready((Err(error), flow));
                }
                // Polled after its end, as no future should be: it stays pending, rather than panic.
                State::Over => return Poll::Pending,
            }
        }
    }

    fn end(&mut self) -> State<R> {
        std::mem::replace(&mut self.state, State::Over)
    }
}

/// What became of a call that has ended.
pub(crate) fn outcome_of<R: Request>((ended, flow): CallEndOrFailure<R>) -> CallOutcome<R> {
    CallOutcome::of(ended, flow.map(|flow| flow.into_call()))
}

// Nothing in it is pinned in place.
impl<R: Request> Unpin for PendingResult<R> {}

impl<R: Request> Future for PendingResult<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_end(cx).map(|(result, _)| result)
    }
}

impl<R: Request> std::fmt::Debug for PendingResult<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PendingResult").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
