//! One call, before it is made.

pub(crate) mod attempts;
pub(crate) mod canceller;
pub(crate) mod flow;
pub(crate) mod header_lookup;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod request;
pub(crate) mod rounds;

use std::time::Duration;

use steadfast_model::ProgressParams;
use steadfast_model::request::Request;

use super::Client;
use crate::error::Error;
use crate::runtime::OnProgress;
use flow::CallFlow;
use outcome::CallOutcome;
use pending::PendingResult;

/// How long a call may take unless told: tools run for minutes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long a call may take in all unless told, however much progress is reported.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A call about to be made: await it, or [`start`](Call::start) it.
///
/// On a client that comes back (see [`Reconnect`](super::Reconnect)), a call that was not sent is made again by itself, and so
/// is one that was sent and lost if it only asks, or is said to do no harm twice. Every other call that is lost ends with
/// [`Outcome::Unknown`](crate::Outcome::Unknown).
#[must_use = "nothing is called until this is awaited or started"]
pub struct Call<R: Request> {
    pub(super) client: Client,
    pub(super) params: Result<R::Params, Error>,
    pub(super) settings: Settings,
}

/// How a call is to be made.
pub(super) struct Settings {
    pub(super) timeout: Option<Duration>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) idempotent: bool,
    pub(super) fresh: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (timeout, total_timeout) = (Some(TIMEOUT), Some(TOTAL_TIMEOUT));
        Self { timeout, total_timeout, on_progress: None, idempotent: false, fresh: false }
    }
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: Client, params: R::Params) -> Self {
        Self { client, params: Ok(params), settings: Settings::default() }
    }

    pub(super) fn failed(client: Client, error: Error) -> Self {
        Self { client, params: Err(error), settings: Settings::default() }
    }

    /// How long to wait without an answer or progress. Five minutes unless told; with `None` only the
    /// total time ends it.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.timeout = timeout.into();
        self
    }

    /// How long to wait in all, whatever progress is reported and whatever has to be waited for: connections, questions,
    /// tasks. A day unless told; `None` for ever.
    pub fn total_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.total_timeout = timeout.into();
        self
    }

    /// Asks for progress, and has `callback` called with it where the call is awaited. Where the server makes a task of the
    /// call, progress ends with that: what is known of a task is its status.
    pub fn on_progress(mut self, callback: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.settings.on_progress = Some(Box::new(callback));
        self
    }

    /// Says that it does no harm if the server does this twice: if it is lost, it is made again.
    pub fn idempotent(mut self) -> Self {
        self.settings.idempotent = true;
        self
    }

    /// Asks the server, also if an answer is kept that has not expired. The new one takes its place.
    pub fn fresh(mut self) -> Self {
        self.settings.fresh = true;
        self
    }

    /// Makes the call. Dropping what this returns takes the call back.
    pub fn start(mut self) -> PendingResult<R> {
        let params = match std::mem::replace(&mut self.params, Err(Error::usage("the call was made"))) {
            Ok(params) => params,
            Err(error) => return PendingResult::failed(error),
        };
        let token = self.settings.on_progress.is_some().then(|| self.client.inner.next_token());
        PendingResult::begin(Box::new(CallFlow::new(self, params, token)))
    }

    /// Makes the call, and says what became of it in a way that has to be looked at: see [`CallOutcome`].
    pub async fn outcome(self) -> CallOutcome<R> {
        self.start().outcome().await
    }
}

impl<R: Request> IntoFuture for Call<R> {
    type Output = Result<R::Result, Error>;
    type IntoFuture = PendingResult<R>;

    fn into_future(self) -> PendingResult<R> {
        self.start()
    }
}

impl<R: Request> std::fmt::Debug for Call<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Call").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
