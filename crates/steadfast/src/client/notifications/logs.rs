//! The log messages of a server, as a stream, in every revision.
//!
//! Up to 2025-11-25 a client sets the log level of the connection with `logging/setLevel`. Since 2026-07-28 each
//! request carries the level for its own log messages; the client adds this level to every call while the program
//! listens to log messages.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_core::Stream;
use steadfast_model::meta::key;
use steadfast_model::wire::PerMessageMembers;
use steadfast_model::{LoggingLevel, LoggingMessageParams, SetLevelParams, request};
use steadfast_proto::envelope::OwnedParams;

use crate::client::Client;
use crate::client::cache::ClientCache;
use crate::client::call::pending::CallResultFuture;
use crate::client::connection::live::ClientConnection;
use crate::client::connection::opening::ClientConnectionOpener;
use crate::client::dispatch::{ClientOutgoingRequestInfo, ClientRequestInterceptor, ClientRequestOrigin};
use crate::error::Error;
use crate::runtime::{LossyChannel, OutboundCallOptions};

/// The maximum number of unread log messages of one log stream, and their maximum size. If the unread log messages of
/// a log stream exceed a limit, the oldest messages are dropped.
const MAX_UNREAD: usize = 1_024;
const MAX_UNREAD_BYTES: usize = 4 << 20;

impl Client {
    /// Listens to the server's log messages of this level and above.
    ///
    /// Up to 2025-11-25 the server sends all its log messages; since 2026-07-28 the server sends only those about
    /// requests that the client sends while the program listens. If the server has no logging capability, or refuses
    /// the log level, the log stream ends with an error. A client can have several log streams with different levels.
    ///
    /// Dropping the log stream ends the listening. Closing the client ends its log streams. The loss of the connection
    /// ends them too, unless the client reconnects
    /// ([`ConnectBuilder::reconnect`](crate::client::ConnectBuilder::reconnect)): then a log stream continues on the
    /// next connection.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use steadfast::{prelude::*, LoggingLevel};
    /// # let deploy = ServerTool::new("deploy").handler(|ctx: Context| async move { ctx.log(LoggingLevel::Info, "begun") });
    /// # let client = Client::connect(Server::builder("ships", "1.0.0").tool(deploy).build()).await?;
    /// let mut logs = client.logs(LoggingLevel::Info);
    /// let listener = tokio::spawn(async move {
    ///     let mut count = 0;
    ///     while let Some(message) = logs.next().await {
    ///         let message = message?;
    ///         println!("{}: {}", message.level, message.data);
    ///         count += 1;
    ///     }
    ///     Ok::<_, steadfast::Error>(count)
    /// });
    /// client.call_tool("deploy", ()).await?;
    /// client.close().await;
    /// assert_eq!(listener.await.unwrap()?, 1);
    /// # Ok::<_, steadfast::Error>(()) }).unwrap();
    /// ```
    pub fn logs(&self, level: LoggingLevel) -> LogStream {
        if self.server().server_capabilities.logging.is_none() {
            let error = Error::unsupported("the server did not declare the logging capability");
            return LogStream {
                client: self.clone(),
                listener: ClientLogStreamEntry::new(level),
                set_level: None,
                error: Some(error),
                ended: false,
            };
        }
        let (listener, lowest) = self.inner.cache().logs.add(level);
        let set_level = (!self.revision().is_stateless()).then(|| self.set_log_level(lowest).start());
        LogStream { client: self.clone(), listener, set_level, error: None, ended: false }
    }
}

/// A stream of the server's log messages: see [`Client::logs`]. The stream holds at most 1,024 unread messages; if
/// there are more, the oldest are dropped.
#[must_use = "streams do nothing unless polled"]
pub struct LogStream {
    /// The client of the log stream, which keeps the connection open.
    client: Client,
    listener: Arc<ClientLogStreamEntry>,
    /// The `logging/setLevel` that is in flight.
    set_level: Option<CallResultFuture<request::SetLevel>>,
    /// The error with which the log stream will end.
    error: Option<Error>,
    ended: bool,
}

impl LogStream {
    /// Waits until the server has set the log level: up to 2025-11-25, log messages before that may be missing. Since
    /// 2026-07-28 a log stream is ready at once. If [`LogStream::ready`] returns an error, the log stream has ended.
    pub async fn ready(&mut self) -> Result<(), Error> {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(set_level) = &mut self.set_level {
            let Poll::Ready(result) = Pin::new(set_level).poll(cx) else { return Poll::Pending };
            self.set_level = None;
            self.error = result.err();
        }
        match self.error.take() {
            Some(error) => {
                self.ended = true;
                Poll::Ready(Err(error))
            }
            None => Poll::Ready(Ok(())),
        }
    }

    /// Returns the next log message, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Result<LoggingMessageParams, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for LogStream {
    type Item = Result<LoggingMessageParams, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let logs = &mut *self;
        if logs.ended {
            return Poll::Ready(None);
        }
        // Messages that arrive while the level is being set are delivered as well.
        if let Poll::Ready(Err(error)) = logs.poll_ready(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        logs.listener.backlog.poll(cx).map(|message| message.map(Ok))
    }
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LogStream")
            .field("client", &self.client)
            .field("level", &self.listener.level)
            .finish_non_exhaustive()
    }
}

/// The log streams of one client, each with its log level.
pub(crate) struct ClientLogStreams {
    /// Whether the client replaces a lost connection, so that its log streams do not end with the connection.
    reconnects: bool,
    table: Mutex<ClientLogStreamTable>,
}

#[derive(Default)]
struct ClientLogStreamTable {
    listeners: Vec<Weak<ClientLogStreamEntry>>,
    /// Whether the client's log streams have ended, so that no more log messages will arrive.
    closed: bool,
}

struct ClientLogStreamEntry {
    level: LoggingLevel,
    backlog: LossyChannel<LoggingMessageParams>,
}

impl ClientLogStreamEntry {
    fn new(level: LoggingLevel) -> Arc<Self> {
        Arc::new(Self { level, backlog: LossyChannel::new(MAX_UNREAD, MAX_UNREAD_BYTES) })
    }
}

impl ClientLogStreams {
    /// `reconnects`: the client replaces a lost connection.
    pub(crate) fn new(reconnects: bool) -> Self {
        Self { reconnects, table: Mutex::default() }
    }

    /// Adds a listener for log messages. Returns the listener, and the least severe level that any listener wants.
    fn add(&self, level: LoggingLevel) -> (Arc<ClientLogStreamEntry>, LoggingLevel) {
        let listener = ClientLogStreamEntry::new(level);
        let mut table = self.lock();
        if table.closed {
            listener.backlog.close();
        }
        table.listeners.retain(|listener| listener.strong_count() > 0);
        table.listeners.push(Arc::downgrade(&listener));
        let lowest = table.each().map(|listener| listener.level).min().unwrap_or(level);
        (listener, lowest)
    }

    /// Sets the log level again after a reconnect (up to 2025-11-25). A failure to set the log level is ignored: the
    /// log streams then receive what the server sends by default.
    pub(crate) fn restore(&self, live: &ClientConnection, opener: &ClientConnectionOpener) {
        let Some(level) = self.lowest_level().filter(|_| !live.peer.revision.is_stateless()) else { return };
        let options = OutboundCallOptions { timeout: Some(opener.timeout), ..OutboundCallOptions::default() };
        let Ok(call) = live.sender.send::<request::SetLevel>(&SetLevelParams::new(level), options) else { return };
        opener.runtime.spawn(Box::pin(async move { drop(call.await) }));
    }

    /// The lowest level that a log stream of this client asks for, which is the log level to set at the server.
    fn lowest_level(&self) -> Option<LoggingLevel> {
        self.lock().each().map(|listener| listener.level).min()
    }

    /// Delivers a log message of the server to the client's log streams. A malformed log message of the server is
    /// dropped.
    pub(crate) fn deliver(&self, params: &OwnedParams) {
        let listeners: Vec<_> = self.lock().each().collect();
        if listeners.is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_str::<LoggingMessageParams>(params.text()) else { return };
        for listener in listeners.iter().filter(|listener| message.level >= listener.level) {
            listener.backlog.push(message.clone(), params.text().len());
        }
    }

    /// Ends the client's log streams when a connection is closed, unless the client reconnects.
    pub(crate) fn handle_disconnect(&self) {
        if !self.reconnects {
            self.close();
        }
    }

    /// Ends the client's log streams.
    pub(crate) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        table.each().for_each(|listener| listener.backlog.close());
    }

    fn lock(&self) -> MutexGuard<'_, ClientLogStreamTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientLogStreamTable {
    fn each(&self) -> impl Iterator<Item = Arc<ClientLogStreamEntry>> + '_ {
        self.listeners.iter().filter_map(Weak::upgrade)
    }
}

/// Adds the lowest log level that the client's log streams ask for to each call (since 2026-07-28).
pub(crate) struct ClientLogLevelInterceptor(pub(crate) Arc<ClientCache>);

impl ClientRequestInterceptor for ClientLogLevelInterceptor {
    fn on_request(
        &self,
        request: &ClientOutgoingRequestInfo,
        members: &mut Cow<'_, PerMessageMembers>,
    ) -> Result<(), Error> {
        if request.origin == ClientRequestOrigin::Call
            && request.revision.is_stateless()
            && let Some(level) = self.0.logs.lowest_level()
        {
            *members = Cow::Owned(members.clone().into_owned().with_meta(key::LOG_LEVEL, &level));
        }
        Ok(())
    }
}
