//! What a server writes to its log for its client, as a stream, in every revision.
//!
//! Before 2026-07-28 a client sets a level once, for the connection. Since then each request says what it wants to hear
//! about itself, and every request does as long as somebody listens.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_core::Stream;
use steadfast_model::era::{self, Decoration};
use steadfast_model::meta::key;
use steadfast_model::{LoggingLevel, LoggingMessageParams, Method, SetLevelParams, request};
use steadfast_proto::envelope::OwnedParams;

use crate::client::Client;
use crate::client::call::pending::PendingResult;
use crate::client::connection::live::LiveConnection;
use crate::client::connection::opening::Opener;
use crate::error::Error;
use crate::runtime::{Backlog, CallOptions, PendingCall};

/// Who leaves more messages than this unread, or more bytes of them, loses the oldest.
const UNSEEN: usize = 1_024;
const UNSEEN_BYTES: usize = 4 << 20;

impl Client {
    /// Listens to the server's log messages of that severity and above.
    ///
    /// A server of the older revisions is told the level, and tells of all that it does. Since 2026-07-28 it tells of the
    /// requests that are made while somebody listens. If the server has no log for its clients, or refuses the level, the stream
    /// ends with an error. Several streams with levels of their own hear what each wants.
    ///
    /// Whoever listens does so beside the calls, and for as long as it likes: dropping the stream ends the listening, and closing
    /// the client ends the stream. So does the end of the connection, unless the client comes back
    /// ([`Connecting::reconnect`](crate::client::Connecting::reconnect)): then the stream goes on with the next one.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use steadfast::{prelude::*, LoggingLevel};
    /// # let deploy = Tool::new("deploy").handler(|ctx: Context| async move { ctx.log(LoggingLevel::Info, "begun") });
    /// # let client = Client::connect(Server::builder("ships", "1.0.0").tool(deploy).build()).await?;
    /// let mut logs = client.logs(LoggingLevel::Info);
    /// let listening = tokio::spawn(async move {
    ///     let mut heard = 0;
    ///     while let Some(message) = logs.next().await {
    ///         let message = message?;
    ///         println!("{}: {}", message.level, message.data);
    ///         heard += 1;
    ///     }
    ///     Ok::<_, steadfast::Error>(heard)
    /// });
    /// client.call_tool("deploy", ()).await?;
    /// client.close().await;
    /// assert_eq!(listening.await.unwrap()?, 1);
    /// # Ok::<_, steadfast::Error>(()) }).unwrap();
    /// ```
    pub fn logs(&self, level: LoggingLevel) -> Logs {
        if self.server().server_capabilities.logging.is_none() {
            let error = Error::unsupported("the server did not declare that it has a log for its clients");
            return Logs {
                client: self.clone(),
                hearer: LogListener::new(level),
                asking: None,
                failed: Some(error),
                over: false,
            };
        }
        let (hearer, lowest) = self.inner.cache().logs.add(level);
        let asking = (!self.revision().is_stateless()).then(|| self.set_log_level(lowest).start());
        Logs { client: self.clone(), hearer, asking, failed: None, over: false }
    }
}

/// A server's log messages: see [`Client::logs`]. Who leaves more than a thousand unread loses the oldest.
#[must_use = "nothing is heard unless this is polled"]
pub struct Logs {
    /// Keeps the connection open while somebody listens.
    client: Client,
    hearer: Arc<LogListener>,
    /// The level is being set.
    asking: Option<PendingResult<request::SetLevel>>,
    failed: Option<Error>,
    over: bool,
}

impl Logs {
    /// Waits until the server has taken the level: one of the older revisions may tell of what it is asked before that as
    /// it did until then. Since 2026-07-28 there is nothing to wait for. An error is the end of the stream.
    pub async fn ready(&mut self) -> Result<(), Error> {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(asking) = &mut self.asking {
            let Poll::Ready(asked) = Pin::new(asking).poll(cx) else { return Poll::Pending };
            self.asking = None;
            self.failed = asked.err();
        }
        match self.failed.take() {
            Some(error) => {
                self.over = true;
                Poll::Ready(Err(error))
            }
            None => Poll::Ready(Ok(())),
        }
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<LoggingMessageParams, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Logs {
    type Item = Result<LoggingMessageParams, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let logs = &mut *self;
        if logs.over {
            return Poll::Ready(None);
        }
        // What the server says meanwhile is heard.
        if let Poll::Ready(Err(error)) = logs.poll_ready(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        logs.hearer.backlog.poll(cx).map(|message| message.map(Ok))
    }
}

impl std::fmt::Debug for Logs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Logs")
            .field("client", &self.client)
            .field("level", &self.hearer.level)
            .finish_non_exhaustive()
    }
}

/// Who hears the server's log.
pub(crate) struct LogListeners {
    /// A connection that is lost is made again, and there is more to hear.
    comes_back: bool,
    hearers: Mutex<ListenerTable>,
}

#[derive(Default)]
struct ListenerTable {
    listening: Vec<Weak<LogListener>>,
    /// The connection is gone: there is nothing more to hear.
    closed: bool,
}

struct LogListener {
    level: LoggingLevel,
    backlog: Backlog<LoggingMessageParams>,
}

impl LogListener {
    fn new(level: LoggingLevel) -> Arc<Self> {
        Arc::new(Self { level, backlog: Backlog::new(UNSEEN, UNSEEN_BYTES) })
    }
}

impl LogListeners {
    /// `comes_back`: a connection that is lost is made again.
    pub(crate) fn new(comes_back: bool) -> Self {
        Self { comes_back, hearers: Mutex::default() }
    }

    /// One more, and the least severe messages that anybody wants.
    fn add(&self, level: LoggingLevel) -> (Arc<LogListener>, LoggingLevel) {
        let hearer = LogListener::new(level);
        let mut hearers = self.lock();
        if hearers.closed {
            hearer.backlog.close();
        }
        hearers.listening.retain(|known| known.strong_count() > 0);
        hearers.listening.push(Arc::downgrade(&hearer));
        let lowest = hearers.each().map(|hearer| hearer.level).min().unwrap_or(level);
        (hearer, lowest)
    }

    /// The decoration of a request: since 2026-07-28 it says which messages are wanted about it.
    pub(crate) fn decorate<'a>(&self, decoration: &'a Decoration) -> Cow<'a, Decoration> {
        match self.lowest() {
            Some(level) => Cow::Owned(decoration.clone().with_meta(key::LOG_LEVEL, &level)),
            None => Cow::Borrowed(decoration),
        }
    }

    /// A client has come back to a server that was told a level before: it is told again. Nobody waits for that: those who
    /// listen hear what the server has to say, or nothing.
    pub(crate) fn restore(&self, live: &LiveConnection, opener: &Opener) {
        let Some(level) = self.lowest().filter(|_| !live.peer.revision.is_stateless()) else { return };
        let params = SetLevelParams::new(level);
        let Ok(text) = era::params_text(live.peer.revision, &params, &Decoration::none()) else { return };
        let options = CallOptions { timeout: Some(opener.timeout), ..CallOptions::default() };
        let call = PendingCall::new(&live.mailbox, Method::SetLevel, Some(text), options);
        opener.runtime.spawn(Box::pin(async move { drop(call.await) }));
    }

    /// The least severe messages that anybody wants.
    fn lowest(&self) -> Option<LoggingLevel> {
        self.lock().each().map(|hearer| hearer.level).min()
    }

    /// The server has written a message. One that cannot be read is nobody's.
    pub(crate) fn tell(&self, params: &OwnedParams) {
        let hearers: Vec<_> = self.lock().each().collect();
        if hearers.is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_str::<LoggingMessageParams>(params.text()) else { return };
        for hearer in hearers.iter().filter(|hearer| message.level >= hearer.level) {
            hearer.backlog.push(message.clone(), params.text().len());
        }
    }

    /// The connection has ended.
    pub(crate) fn note_lost(&self) {
        if !self.comes_back {
            self.close();
        }
    }

    /// There will be nothing more to hear.
    pub(crate) fn close(&self) {
        let mut hearers = self.lock();
        hearers.closed = true;
        hearers.each().for_each(|hearer| hearer.backlog.close());
    }

    fn lock(&self) -> MutexGuard<'_, ListenerTable> {
        self.hearers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListenerTable {
    fn each(&self) -> impl Iterator<Item = Arc<LogListener>> + '_ {
        self.listening.iter().filter_map(Weak::upgrade)
    }
}
