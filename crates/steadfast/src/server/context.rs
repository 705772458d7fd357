//! The context of a running handler: progress and logging, requests to the client, cancellation and cleanup.

mod shield;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_model::request::Request;
use steadfast_model::{
    ClientCapabilities, EmptyParams, Implementation, LoggingLevel, Principal, RequestId, Revision, request, wire,
};
use steadfast_proto::connection::{CancelReason, ProgressReport};

use super::Server;
use crate::error::{Error, Outcome};
use crate::runtime::{DriverCommand, HandlerExecution, OutboundCallOptions, PendingCall};

/// A handler's access to its request.
///
/// Take the context as a parameter of a tool's function, at any position; it is not one of the tool's arguments. Clones
/// of a context refer to the same request and may outlive it: after the request has ended, reports are discarded and
/// calls fail.
///
/// ```
/// use steadfast::prelude::*;
///
/// #[tool]
/// async fn index(folder: String, ctx: Context) -> steadfast::ToolResult<String> {
///     let lock = format!("{folder}/.lock");
///     std::fs::write(&lock, "")?;
///     ctx.on_cancel(async move { _ = std::fs::remove_file(lock); });
///     for step in 0..10 {
///         ctx.progress(f64::from(step) / 10.0, format!("part {step}"));
///         tokio::task::yield_now().await;
///     }
///     Ok("done".to_owned())
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    execution: Option<Arc<HandlerExecution>>,
    server: Option<Server>,
}

/// The default timeout of a server's call to the client. The timeout is long, because a person may have to answer the
/// call.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Methods about the request that a handler serves, and about its sender.
impl Context {
    pub(crate) fn new(execution: Arc<HandlerExecution>, server: &Server) -> Self {
        Self { execution: Some(execution), server: Some(server.clone()) }
    }

    /// Creates a context without a request, for tests: progress and log messages are discarded, the request is never
    /// cancelled, and there is no client to call.
    pub fn detached() -> Self {
        Self { execution: None, server: None }
    }

    /// The id of the request, as the client chose it.
    pub fn request_id(&self) -> RequestId {
        self.execution.as_ref().map_or_else(|| RequestId::from("detached"), |execution| execution.id.clone())
    }

    /// The authenticated sender of the request: the result of `HttpServerOptions::identify`, or what a layer in front of the
    /// HTTP service, such as `BearerLayer` of `steadfast-auth`, left in the extensions of the HTTP request. `None` on
    /// stdio.
    ///
    /// The principal belongs to this request: in an MCP session that outlives an access token, the scopes are those of
    /// the token that came with this request.
    ///
    /// ```
    /// use steadfast::prelude::*;
    ///
    /// #[tool]
    /// async fn forget(name: String, ctx: Context) -> steadfast::ToolResult<String> {
    ///     match ctx.principal() {
    ///         Some(who) if who.scopes().contains("notes:write") => Ok(format!("{} forgot {name}", who.name())),
    ///         _ => Err(ToolError::new("the scope `notes:write` is required")),
    ///     }
    /// }
    /// ```
    pub fn principal(&self) -> Option<&Principal> {
        self.execution.as_ref().and_then(|execution| execution.principal.as_ref())
    }

    /// What the client says about itself: its name, version and capabilities.
    pub fn client(&self) -> ClientInfo<'_> {
        ClientInfo { execution: self.execution.as_deref() }
    }
}

/// Methods about the server that the handler belongs to.
impl Context {
    /// The server of the handler, whose tools, prompts and resources can be changed; `None` if the handler runs without
    /// a server, as in unit tests.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Notifies the clients that are subscribed to the resource at this URI that it has changed: see
    /// [`Server::resource_updated`].
    pub fn resource_updated(&self, uri: &str) {
        if let Some(server) = &self.server {
            server.resource_updated(uri);
        }
    }
}

/// Methods to send progress and log messages to the client. Reporting progress and logging never block and never
/// fail; messages that the client did not ask for are discarded.
impl Context {
    /// Reports the progress of the request, from 0 to 1, with a message for people. The progress has to grow with each
    /// report.
    ///
    /// Progress reports are merged when they come faster than they can be sent, and are sent only if the client asked
    /// for them.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.report(ProgressReport::new(fraction).with_total(1.0).with_message(message));
    }

    /// Reports as the progress of the request that `done` of `total` is done, in any unit.
    pub fn progress_of(&self, done: f64, total: f64) {
        self.report(ProgressReport::new(done).with_total(total));
    }

    /// Reports progress with or without a total and a message.
    pub fn report(&self, progress: ProgressReport) {
        if let Some(execution) = &self.execution {
            execution.report_progress(progress);
        }
    }

    /// Sends the client a log message about this request, if the client wants messages of this level.
    ///
    /// ```
    /// # use steadfast::{Context, LoggingLevel};
    /// # let ctx = Context::detached();
    /// ctx.log(LoggingLevel::Warning, "the station is slow today");
    /// ctx.log(LoggingLevel::Debug, serde_json::json!({ "station": 7, "ms": 900 }));
    /// ```
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// Like [`Context::log`], with the name of a logger.
    pub fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        let Some(execution) = self.execution.as_ref().filter(|execution| execution.reserve_log()) else { return };
        let data = serde_json::to_value(data)
            .unwrap_or_else(|error| format!("log message could not be encoded: {error}").into());
        let logger = logger.map(str::to_owned);
        // If the connection is closed, the message is discarded.
        let _ = execution.mailbox.post(DriverCommand::Log { key: execution.key, level, logger, data });
    }
}

/// The connection.
impl Context {
    /// Closes the HTTP response stream of this request while the handler goes on: the client reconnects by itself to
    /// get the response. Use `release_connection` for long calls, where an idle open connection costs more than a
    /// reconnect.
    ///
    /// Releasing the connection has an effect only over HTTP in revision 2025-11-25, whose clients can resume a stream.
    pub fn release_connection(&self) {
        if let Some(execution) = &self.execution {
            // If the connection is closed, there is no stream to release.
            let _ = execution.mailbox.post(DriverCommand::ReleaseStream { key: execution.key });
        }
    }
}

/// Cancellation.
impl Context {
    /// Whether the request was cancelled. A handler that is a plain `fn` cannot be stopped from outside, and has to
    /// check this now and then.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason().is_some()
    }

    /// Why the request was cancelled, if it was.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.execution.as_ref().and_then(|execution| execution.stop_reason())
    }

    /// Completes with the reason when the request is cancelled.
    ///
    /// An `async` tool is dropped when its request is cancelled, so this method is for tools with `#[tool(cancel =
    /// cooperative)]`, and for tokio tasks that a tool has spawned.
    pub async fn cancelled(&self) -> CancelReason {
        match &self.execution {
            Some(execution) => execution.stopped().await,
            None => std::future::pending().await,
        }
    }

    /// Registers `cleanup` to run if the request is cancelled, after its handler was dropped and its shields have
    /// ended; the cleanup registered last runs first. A cleanup has until the drain deadline, also if the connection is
    /// closed. A cleanup is dropped without running if the handler finishes, and immediately if the request has ended
    /// already.
    ///
    /// A plain `fn` is not dropped when it is cancelled: its cleanups run after it has returned.
    pub fn on_cancel(&self, cleanup: impl Future<Output = ()> + Send + 'static) {
        if let Some(execution) = &self.execution {
            execution.add_cleanup(Box::pin(cleanup));
        }
    }
}

/// Calls to the client, for revisions in which servers may send requests (up to 2025-11-25).
impl Context {
    /// Sends a request to the client and waits for its response, at most ten minutes.
    ///
    /// If the request that the handler serves is cancelled, the handler's call to the client is cancelled too, and
    /// the client is notified. Dropping the future also cancels the call. [`Error::outcome`] says whether the client
    /// may have acted on the call.
    ///
    /// # Errors
    ///
    /// Fails if the client has not declared the capability for this request or its revision has no such request, if the
    /// client responds with an error, if the call times out, or if the connection closes.
    pub async fn call<R: Request>(&self, params: R::Params) -> Result<R::Result, Error> {
        self.call_with_timeout::<R>(params, CALL_TIMEOUT).await
    }

    /// Sends a request to the client like [`Context::call`], with another timeout.
    pub async fn call_with_timeout<R: Request>(
        &self,
        params: R::Params,
        timeout: Duration,
    ) -> Result<R::Result, Error> {
        let Some(execution) = &self.execution else { return Err(Error::closed(Outcome::NotSent)) };
        let none = wire::PerMessageMembers::none();
        let text = wire::request_params::<R>(execution.peer.revision, &params, &none).map_err(Error::encode)?;
        let options = OutboundCallOptions {
            parent: Some(execution.key),
            timeout: Some(timeout),
            ..OutboundCallOptions::default()
        };
        let end = PendingCall::new(&execution.mailbox, R::METHOD, Some(text), options).await;
        crate::runtime::connection::call_result::result_of::<R>(end)
    }

    /// Sends a `ping` to the client, to check that the client responds.
    pub async fn ping(&self) -> Result<(), Error> {
        self.call::<request::Ping>(EmptyParams::default()).await.map(drop)
    }
}

/// Values that are remembered between the rounds of a request.
impl Context {
    /// Runs a future once per request, however often its handler runs because it asks for input (see
    /// [`Context::elicit`]): later rounds of the request get the value of the first round.
    ///
    /// The client carries the value from one round to the next, sealed. The future does **not** run exactly once: a
    /// round that ends without asking for input, or whose response is lost, is not remembered, and a client may send
    /// the same request state twice and have what follows it done twice. If something must not happen twice, store a
    /// record of it on the server.
    ///
    /// Each name is for one remembered value. Remembered values should be small: all of them are sent back and forth
    /// together with the client's answers.
    ///
    /// ```
    /// # use steadfast::Context;
    /// # async fn example(ctx: Context) -> steadfast::ToolResult<()> {
    /// let ticket: u64 = ctx.once("ticket", async { 7 }).await?;
    /// let agreed: bool = ctx.elicit(format!("Use ticket {ticket}?")).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be encoded as JSON, or if the remembered value has a different type.
    pub async fn once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        self.try_once(name, async { Ok::<T, Error>(future.await) }).await
    }

    /// Like [`Context::once`], for a future that may fail. An error of the future is not remembered for later rounds
    /// of the request.
    pub async fn try_once<T: Serialize + DeserializeOwned, E: From<Error>>(
        &self,
        name: &str,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(input_rounds) = self.execution.as_ref().and_then(|execution| execution.input_rounds()) else {
            return future.await;
        };
        if let Some(value) = input_rounds.remembered(name) {
            let unreadable = |error| {
                Error::internal(format!("the remembered value `{name}` has a different type")).with_source(error)
            };
            return serde_json::from_value(value).map_err(unreadable).map_err(E::from);
        }
        let value = future.await?;
        input_rounds.remember(name, serde_json::to_value(&value).map_err(Error::encode)?);
        Ok(value)
    }

    /// The execution of the handler that has this context; `None` for a detached context.
    pub(super) fn execution(&self) -> Option<&Arc<HandlerExecution>> {
        self.execution.as_ref()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Context");
        debug.field("request_id", &self.request_id()).field("cancelled", &self.cancel_reason()).finish()
    }
}

/// What the client says about itself, which is not verified.
#[derive(Clone, Copy)]
pub struct ClientInfo<'a> {
    execution: Option<&'a HandlerExecution>,
}

impl<'a> ClientInfo<'a> {
    /// The name and version of the client.
    pub fn info(&self) -> Option<&'a Implementation> {
        self.execution.and_then(|execution| execution.peer.info.as_ref())
    }

    /// The capabilities of the client.
    pub fn capabilities(&self) -> Option<&'a ClientCapabilities> {
        self.execution.map(|execution| &execution.peer.client_capabilities)
    }

    /// The protocol revision of the request.
    pub fn revision(&self) -> Revision {
        self.execution.map_or(Revision::LATEST, |execution| execution.peer.revision)
    }
}

impl fmt::Debug for ClientInfo<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientInfo").field("info", &self.info()).field("revision", &self.revision()).finish()
    }
}
