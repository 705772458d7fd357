//! What a running handler can do: report, ask, notice that it is not wanted any more, and clean up.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_model::request::Request;
use steadfast_model::{
    ClientCapabilities, EmptyParams, Implementation, LoggingLevel, Principal, RequestId, Revision, era, request,
};
use steadfast_proto::connection::{CancelReason, Progress};

use super::Server;
use crate::error::{Error, Outcome};
use crate::runtime::{CallOptions, DriverCommand, Execution, PendingCall, ShieldFuture};

/// The handle that a handler has on its request.
///
/// Take it as a parameter of a tool, anywhere among the arguments; it is not one of them. Clones are the same handle, and
/// may be kept: once the request has ended, reports go nowhere and calls fail.
///
/// ```
/// use steadfast::prelude::*;
///
/// #[tool]
/// async fn index(folder: String, ctx: Context) -> steadfast::Result<String> {
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
    execution: Option<Arc<Execution>>,
    server: Option<Server>,
}

/// How long a call to the client may take unless told. A person may have to answer it.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Who asks.
impl Context {
    pub(crate) fn new(execution: Arc<Execution>, server: &Server) -> Self {
        Self { execution: Some(execution), server: Some(server.clone()) }
    }

    /// A context without a request behind it, for tests: progress and log go nowhere, nobody cancels, and there is no
    /// client to call.
    pub fn detached() -> Self {
        Self { execution: None, server: None }
    }

    /// The id of the request, as the client chose it.
    pub fn request_id(&self) -> RequestId {
        self.execution.as_ref().map_or_else(|| RequestId::from("detached"), |execution| execution.id.clone())
    }

    /// Who asks, as it was established before the request came here: what `HttpOptions::identify` said of it, or what a layer
    /// in front of the HTTP service, such as `RequireBearer` of `steadfast-auth`, left in its extensions. Nobody on stdio.
    ///
    /// It is the principal of this very request: in a session that goes on for longer than a token does, its scopes are
    /// those of the token that came with the request.
    ///
    /// ```
    /// use steadfast::prelude::*;
    ///
    /// #[tool]
    /// async fn forget(name: String, ctx: Context) -> steadfast::Result<String> {
    ///     match ctx.principal() {
    ///         Some(who) if who.scopes().contains("notes:write") => Ok(format!("{} forgot {name}", who.name())),
    ///         _ => Err(ToolError::new("only who may write notes may forget them")),
    ///     }
    /// }
    /// ```
    pub fn principal(&self) -> Option<&Principal> {
        self.execution.as_ref().and_then(|execution| execution.principal.as_ref())
    }

    /// Who asks, as far as the client said.
    pub fn client(&self) -> ClientInfo<'_> {
        ClientInfo { execution: self.execution.as_deref() }
    }
}

/// The server that it runs in.
impl Context {
    /// The server, to change what it offers; `None` if there is none around the handler, as in tests of it alone.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Tells the clients that asked for it that the resource at this URI has changed: see [`Server::resource_updated`].
    pub fn resource_updated(&self, uri: &str) {
        if let Some(server) = &self.server {
            server.resource_updated(uri);
        }
    }
}

/// Reports. These never block and never fail; what nobody wants to hear is dropped.
impl Context {
    /// Reports how far the request is, from 0 to 1, with a word for people. It has to grow from one report to the next.
    ///
    /// Reports are merged when they come faster than they can be sent, and are sent only if the client asked for them.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.report(Progress { progress: fraction, total: Some(1.0), message: Some(message.into()) });
    }

    /// Reports that `done` of `total` is done, in whatever unit.
    pub fn progress_of(&self, done: f64, total: f64) {
        self.report(Progress { progress: done, total: Some(total), message: None });
    }

    /// Reports progress with or without a total and a message.
    pub fn report(&self, progress: Progress) {
        if let Some(execution) = &self.execution {
            execution.report_progress(progress);
        }
    }

    /// Sends the client a log message about this request, if it wants messages of this level.
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

    /// [`Context::log`] with the name of a logger.
    pub fn log_as(&self, level: LoggingLevel, logger: Option<&str>, data: impl Serialize) {
        let Some(execution) = self.execution.as_ref().filter(|execution| execution.reserve_log()) else { return };
        let data =
            serde_json::to_value(data).unwrap_or_else(|error| format!("a log message that is no JSON: {error}").into());
        let logger = logger.map(str::to_owned);
        // If the connection is closed nobody wants to hear it.
        let _ = execution.mailbox.post(DriverCommand::Log { key: execution.key, level, logger, data });
    }
}

/// The connection.
impl Context {
    /// Lets the client's connection go while the call goes on: the client comes back for the answer by itself. For calls that
    /// take long, where a connection that is held open for nothing costs more than one that is opened again.
    ///
    /// It has an effect over HTTP in revision 2025-11-25, where clients know how to come back, and none anywhere else.
    pub fn release_connection(&self) {
        if let Some(execution) = &self.execution {
            // If the connection is closed there is nothing to let go.
            let _ = execution.mailbox.post(DriverCommand::ReleaseStream { key: execution.key });
        }
    }
}

/// Cancellation.
impl Context {
    /// Whether nobody waits for the answer any more. For a plain `fn`, which cannot be stopped from outside: look now and
    /// then.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason().is_some()
    }

    /// Why nobody waits for the answer any more, if nobody does.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.execution.as_ref().and_then(|execution| execution.stop_reason())
    }

    /// Completes when nobody waits for the answer any more, and says why.
    ///
    /// An `async` tool is dropped at that moment, so this is for those with `#[tool(cancel = cooperative)]`, and for tasks
    /// that a tool has started.
    pub async fn cancelled(&self) -> CancelReason {
        std::future::poll_fn(|cx| {
            let Some(execution) = &self.execution else { return Poll::Pending };
            execution.wake_on_change(cx.waker());
            execution.stop_reason().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Has `cleanup` run if the request is cancelled, after its handler was dropped and its shields have ended; the one
    /// added last runs first. It has until the drain deadline, also when the connection is gone. It is dropped if the
    /// handler ends by itself, and at once if the request has ended already.
    ///
    /// A plain `fn` is not dropped when it is cancelled: its cleanups run when it has returned.
    pub fn on_cancel(&self, cleanup: impl Future<Output = ()> + Send + 'static) {
        if let Some(execution) = &self.execution {
            execution.add_cleanup(Box::pin(cleanup));
        }
    }

    /// Runs `future` to its end although this request may be cancelled and its handler dropped meanwhile. When the
    /// connection is gone it has until the drain deadline.
    ///
    /// For the step that must not be left half done: the write behind the read, the commit.
    ///
    /// # Panics
    ///
    /// If `future` panics, or is given up at the drain deadline while somebody still waits for it.
    pub async fn shield<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let Some(execution) = &self.execution else { return future.await };
        let Some(pass) = execution.start_shield() else { return future.await };
        let hand_over = Arc::new(Mutex::new(ShieldValue { value: None, gone: false, waker: None }));
        let giver = ShieldSender(Arc::clone(&hand_over));
        let shielded = async move {
            let value = future.await;
            giver.give(value);
        };
        execution.runtime.spawn(Box::pin(ShieldFuture::new(shielded, pass)));
        let taken = std::future::poll_fn(move |cx| {
            let mut hand_over = hand_over.lock().unwrap_or_else(PoisonError::into_inner);
            match hand_over.value.take() {
                Some(value) => Poll::Ready(Some(value)),
                None if hand_over.gone => Poll::Ready(None),
                None => {
                    hand_over.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        match taken {
            Some(value) => value,
            // What was shielded panicked: so does who waits for it, as if it had been awaited in place.
            None => std::panic::resume_unwind(Box::new("what was shielded did not finish")),
        }
    }
}

/// Where a shield leaves its value.
struct ShieldValue<T> {
    value: Option<T>,
    gone: bool,
    waker: Option<Waker>,
}

/// The end that gives; when it is dropped without, whoever waits learns it.
struct ShieldSender<T>(Arc<Mutex<ShieldValue<T>>>);

impl<T> ShieldSender<T> {
    fn give(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value = Some(value);
    }
}

impl<T> Drop for ShieldSender<T> {
    fn drop(&mut self) {
        let mut hand_over = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hand_over.gone = true;
        let waker = hand_over.waker.take();
        drop(hand_over);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Calls to the client, for revisions in which servers may call (up to 2025-11-25).
impl Context {
    /// Calls the client and waits for its answer, at most ten minutes.
    ///
    /// The call ends when this request does: if it is cancelled, the client is told. Dropping the future takes the call
    /// back too. [`Error::outcome`] says whether the client may have acted on it.
    ///
    /// # Errors
    ///
    /// If the client does not offer it or its revision has no such request, if it refuses, if no answer comes in time, and
    /// if the connection closes.
    pub async fn call<R: Request>(&self, params: R::Params) -> Result<R::Result, Error> {
        self.call_within::<R>(params, CALL_TIMEOUT).await
    }

    /// [`Context::call`] with another time limit.
    pub async fn call_within<R: Request>(&self, params: R::Params, timeout: Duration) -> Result<R::Result, Error> {
        let Some(execution) = &self.execution else { return Err(Error::closed(Outcome::NotSent)) };
        let none = era::Decoration::none();
        let text = era::params_text(execution.peer.revision, &params, &none).map_err(Error::encode)?;
        let options = CallOptions { parent: Some(execution.key), timeout: Some(timeout), ..CallOptions::default() };
        let ending = PendingCall::new(&execution.mailbox, R::METHOD, Some(text), options).await;
        crate::runtime::connection::call_result::result_of::<R>(ending)
    }

    /// Asks whether the client is there.
    pub async fn ping(&self) -> Result<(), Error> {
        self.call::<request::Ping>(EmptyParams::default()).await.map(drop)
    }
}

/// What is remembered between the rounds of a request.
impl Context {
    /// Does something once for a request, however often its handler runs because it asks (see [`Context::elicit`]): in later
    /// rounds the value of the first is given.
    ///
    /// The value is carried by the client, sealed. That is **not** exactly once: a round that ends without asking, or whose
    /// answer is lost, is not remembered, and a client may come back with the same state twice and have what follows it
    /// done twice. For what must not happen twice, keep a record of your own.
    ///
    /// A name is for one value. Values are small: all of them are carried together, with the answers.
    ///
    /// ```
    /// # use steadfast::Context;
    /// # async fn example(ctx: Context) -> steadfast::Result<()> {
    /// let ticket: u64 = ctx.once("ticket", async { 7 }).await?;
    /// let agreed: bool = ctx.elicit(format!("Use ticket {ticket}?")).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON, or read back.
    pub async fn once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        self.try_once(name, async { Ok::<T, Error>(future.await) }).await
    }

    /// [`Context::once`] for what may fail. A failure is not remembered.
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
                Error::internal(format!("what was remembered as `{name}` is something else")).with_source(error)
            };
            return serde_json::from_value(value).map_err(unreadable).map_err(E::from);
        }
        let value = future.await?;
        input_rounds.remember(name, serde_json::to_value(&value).map_err(Error::encode)?);
        Ok(value)
    }

    /// The request behind it.
    pub(super) fn execution(&self) -> Option<&Arc<Execution>> {
        self.execution.as_ref()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Context");
        debug.field("request_id", &self.request_id()).field("cancelled", &self.cancel_reason()).finish()
    }
}

/// Who asks, as far as the client said. Nothing of it is verified.
#[derive(Clone, Copy)]
pub struct ClientInfo<'a> {
    execution: Option<&'a Execution>,
}

impl<'a> ClientInfo<'a> {
    /// Its name and version.
    pub fn info(&self) -> Option<&'a Implementation> {
        self.execution.and_then(|execution| execution.peer.info.as_ref())
    }

    /// What it can do.
    pub fn capabilities(&self) -> Option<&'a ClientCapabilities> {
        self.execution.map(|execution| &execution.peer.client_capabilities)
    }

    /// The revision that this request is spoken in.
    pub fn revision(&self) -> Revision {
        self.execution.map_or(Revision::LATEST, |execution| execution.peer.revision)
    }
}

impl fmt::Debug for ClientInfo<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientInfo").field("info", &self.info()).field("revision", &self.revision()).finish()
    }
}
