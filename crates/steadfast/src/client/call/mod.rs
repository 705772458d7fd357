//! One call of a client: its settings before it starts, and its states until it ends.
//!
//! [`Call`] is the builder for one call of a client. [`Call::start`] returns a [`CallResultFuture`], which holds the
//! state of the call from then on in one enum, `pending::StartedCallState`. Polling the `CallResultFuture` is the
//! only thing that changes the state of the call:
//!
//! ```text
//!                       the request cannot be sent
//!   Call ---start---+--------------------------------------> Failed ----------------------+
//!                   |   a fresh response is in the cache                                  |
//!                   +-------------------> Cached -----------------+                       |
//!                   |                                             | it is a result,       |
//!                   |   request sent                              | or an error           v
//!                   +-------------------> InFlight ---------------+-------------------> Ended
//!                                         ^      |                                        ^
//!                        another request  |      | the response does not end the call,    |
//!                        is sent          |      | or was lost                            |
//!                                         |      v                                        |
//!                                        Continuing --------------------------------------+
//!                                                        result of a task, or an error
//! ```
//!
//! | state | contains | ends when |
//! |---|---|---|
//! | `Failed` | the error | it is polled |
//! | `Cached` | the text of the response | it is polled |
//! | `InFlight` | `pending::SentCallRequest`: one request | its response has arrived, or is lost |
//! | `Continuing` | the future of one `flow::CallStep` | that step is done |
//! | `Ended` | nothing | never |
//!
//! A call in the state `Continuing` does one of these: wait for another connection and send the request again
//! (`Reconnect`, as `retries` allows); answer the server's input requests and send the next round (`AnswerInput`, see
//! `rounds`); list the tools because the server misses an HTTP header (`ListTools`, see `retries`); follow the MCP task
//! that the server made of the call (`FollowTask`, see `client::tasks`); wait for the exit reason of a server that has
//! died (`AwaitExitReason`).
//!
//! The state of a call goes together with a `flow::CallFlow`, which has the data that outlive a request (parameters,
//! settings, the connection, attempts, rounds) and decides on the next step. Three other types hold parts of the
//! state of a call, but only `CallFlow` decides how the call goes on:
//!
//! - `CallSlot` of the runtime: the end of one request, from when the driver has stored it until the call takes it.
//! - `tasks::registry::FollowedTaskRegistration`: an entry for a call that may become an MCP task, and for an MCP task
//!   that is followed, so that the client can cancel all tasks when it is closed.
//! - [`Canceller`](canceller::Canceller): whether the call was cancelled, and which request to cancel.
//!
//! Dropping a `CallResultFuture` cancels the call in every state: the request that is in flight, or the MCP task that
//! is followed.

pub(crate) mod canceller;
pub(crate) mod flow;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod progress;
pub(crate) mod retries;
pub(crate) mod rounds;

use std::time::Duration;

use steadfast_model::ProgressParams;
use steadfast_model::request::Request;

use super::Client;
use crate::error::Error;
use crate::runtime::OnProgress;
use flow::CallFlow;
use outcome::CallOutcome;
use pending::CallResultFuture;

/// The default of [`Call::timeout`], which allows for tools that run for minutes.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The default of [`Call::total_timeout`], which is one day.
const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A call that has not started: await it, or [`start`](Call::start) it.
///
/// On a client that reconnects (see [`ReconnectPolicy`](super::ReconnectPolicy)), a call that was lost before it was
/// sent is sent again. A call that was lost after it was sent is sent again too, if its method only reads or the call
/// is [idempotent](Call::idempotent). Every other lost call ends with [`Outcome::Unknown`](crate::Outcome::Unknown).
#[must_use = "a call does nothing until it is awaited or started"]
pub struct Call<R: Request> {
    pub(super) client: Client,
    pub(super) params: Result<R::Params, Error>,
    pub(super) settings: CallSettings,
}

/// The settings of one call of a client, such as its timeouts.
pub(super) struct CallSettings {
    pub(super) timeout: Option<Duration>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) idempotent: bool,
    /// Whether the response to the call must not come from the cache.
    pub(super) fresh: bool,
}

impl Default for CallSettings {
    fn default() -> Self {
        let (timeout, total_timeout) = (Some(DEFAULT_TIMEOUT), Some(DEFAULT_TOTAL_TIMEOUT));
        Self { timeout, total_timeout, on_progress: None, idempotent: false, fresh: false }
    }
}

impl<R: Request> Call<R> {
    pub(super) fn new(client: Client, params: R::Params) -> Self {
        Self { client, params: Ok(params), settings: CallSettings::default() }
    }

    /// Creates a call that ends with this error when it is started.
    pub(super) fn failed(client: Client, error: Error) -> Self {
        Self { client, params: Err(error), settings: CallSettings::default() }
    }

    /// How long to wait for a response or for progress; each report of progress starts the wait anew. By default a
    /// call times out after five minutes without a response or progress. If the timeout of a call is `None`, only its
    /// [total timeout](Call::total_timeout) limits the wait for a response.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.timeout = timeout.into();
        self
    }

    /// The maximum time for the whole call, including progress, reconnecting, input requests and MCP tasks. The total
    /// timeout is one day by default; with `None` there is no limit.
    pub fn total_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.total_timeout = timeout.into();
        self
    }

    /// Requests progress notifications for the call, and calls `callback` with each report, on the thread that polls
    /// the call. If the server makes an MCP task of the call, no more progress is reported: a task reports its status
    /// instead.
    pub fn on_progress(mut self, callback: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.settings.on_progress = Some(Box::new(callback));
        self
    }

    /// Declares that the call may run twice without harm: if it is lost, it is sent again.
    pub fn idempotent(mut self) -> Self {
        self.settings.idempotent = true;
        self
    }

    /// Sends the request even if the cache has a fresh response. The new response replaces the cached one.
    pub fn fresh(mut self) -> Self {
        self.settings.fresh = true;
        self
    }

    /// Sends the request. Dropping the returned future cancels the call.
    pub fn start(mut self) -> CallResultFuture<R> {
        let params = match std::mem::replace(&mut self.params, Err(Error::usage("the call was already started"))) {
            Ok(params) => params,
            Err(error) => return CallResultFuture::failed(error),
        };
        let token = self.settings.on_progress.is_some().then(|| self.client.inner.next_token());
        CallResultFuture::start(Box::new(CallFlow::new(self, params, token)))
    }

    /// Sends the request and waits for the end of the call, as a [`CallOutcome`]: an enum that has to be matched.
    pub async fn outcome(self) -> CallOutcome<R> {
        self.start().outcome().await
    }
}

impl<R: Request> IntoFuture for Call<R> {
    type Output = Result<R::Result, Error>;
    type IntoFuture = CallResultFuture<R>;

    fn into_future(self) -> CallResultFuture<R> {
        self.start()
    }
}

impl<R: Request> std::fmt::Debug for Call<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Call").field("method", &R::METHOD).finish_non_exhaustive()
    }
}
