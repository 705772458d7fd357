//! One call, before and while it is made.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_model::era::{self, Decoration};
use steadfast_model::request::Request;
use steadfast_model::{ProgressParams, ProgressToken};

use super::{Client, result_of};
use crate::error::Error;
use crate::runtime::{CallOptions, PendingCall};

/// How long a call may take unless told: tools run for minutes.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long a call may take in all unless told, however much progress is reported.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A call about to be made: await it, or [`start`](Call::start) it.
#[must_use = "nothing is called until this is awaited or started"]
pub struct Call<R: Request> {
    client: Client,
    params: Result<R::Params, Error>,
    timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    on_progress: Option<Box<dyn FnMut(ProgressParams) + Send>>,
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: Client, params: R::Params) -> Self {
        Self {
            client,
            params: Ok(params),
            timeout: Some(TIMEOUT),
            total_timeout: Some(TOTAL_TIMEOUT),
            on_progress: None,
        }
    }

    pub(super) fn failed(client: Client, error: Error) -> Self {
        Self { client, params: Err(error), timeout: None, total_timeout: None, on_progress: None }
    }

    /// How long to wait without an answer or progress. Five minutes unless told; `None` for ever.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// How long to wait in all, whatever progress is reported. A day unless told.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = Some(timeout);
        self
    }

    /// Asks for progress, and has `callback` called with it where the call is awaited.
    pub fn on_progress(mut self, callback: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Makes the call. Dropping what this returns takes the call back.
    pub fn start(self) -> PendingResult<R> {
        let prepared = self.params.and_then(|params| {
            let mut decoration = self.client.inner.decoration.clone();
            let progress = self.on_progress.map(|callback| (next_token(), callback));
            if let Some((token, _)) = &progress {
                decoration = decoration.with_progress_token(token);
            }
            let text = params_text::<R>(&self.client, &params, &decoration)?;
            Ok((text, progress))
        });
        match prepared {
            Ok((text, progress)) => {
                let (timeout, total_timeout) = (self.timeout, self.total_timeout);
                let options = CallOptions { timeout, total_timeout, progress, ..CallOptions::default() };
                let call = PendingCall::new(&self.client.inner.mailbox, R::METHOD, Some(text), options);
                PendingResult { state: State::Waiting(call), client: Some(self.client), request: PhantomData }
            }
            Err(error) => PendingResult { state: State::Failed(Some(error)), client: None, request: PhantomData },
        }
    }
}

fn params_text<R: Request>(client: &Client, params: &R::Params, decoration: &Decoration) -> Result<Box<str>, Error> {
    let mut text = Vec::new();
    era::write_params(client.revision(), params, decoration, &mut text).map_err(Error::encode)?;
    String::from_utf8(text).map(String::into_boxed_str).map_err(Error::encode)
}

/// Tokens are unique in the process, and so on each connection.
fn next_token() -> ProgressToken {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    ProgressToken(NEXT.fetch_add(1, Ordering::Relaxed).into())
}

impl<R: Request> IntoFuture for Call<R> {
    type Output = Result<R::Result, Error>;
    type IntoFuture = PendingResult<R>;

    fn into_future(self) -> PendingResult<R> {
        self.start()
    }
}

/// A call that was made, and waits for its end.
#[must_use = "dropping this takes the call back"]
pub struct PendingResult<R> {
    state: State,
    /// Keeps the connection open while the call waits.
    client: Option<Client>,
    request: PhantomData<fn() -> R>,
}

enum State {
    Waiting(PendingCall),
    Failed(Option<Error>),
}

impl<R: Request> Future for PendingResult<R> {
    type Output = Result<R::Result, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Waiting(call) => {
                let ending = std::task::ready!(Pin::new(call).poll(cx));
                self.client = None;
                Poll::Ready(result_of::<R>(ending))
            }
            // Polled after its end, as no future should be: it stays pending, rather than panic.
            State::Failed(error) => error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error))),
        }
    }
}

impl<R: Request> std::fmt::Debug for Call<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Call").field("method", &R::METHOD).finish_non_exhaustive()
    }
}

impl<R: Request> std::fmt::Debug for PendingResult<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PendingResult").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
