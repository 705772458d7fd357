//! What a server tells of its changes, as a stream, in every revision.
//!
//! Since 2026-07-28 a client asks for it with `subscriptions/listen`, and each such request is a stream of its own. Before,
//! a server tells every client of changes of its lists, and of resources that were subscribed to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use steadfast_model::era;
use steadfast_model::{DetailedTask, Method, ResourceParams, SubscriptionFilter, SubscriptionParams, request};
use steadfast_proto::envelope::OwnedParams;
use tokio::sync::oneshot;

use super::{Client, result_of};
use crate::error::Error;
use crate::runtime::{CallOptions, PendingCall};

/// Something that has changed at the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The server tells of changes from here on: of these, which may be less than was asked for. Look once at what you
    /// want to keep up with.
    Listening(SubscriptionFilter),
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of templates.
    Resources,
    /// The resource at this URI.
    Resource(String),
    /// A task.
    Task(Box<DetailedTask>),
}

impl Change {
    /// What a notification says; `None` if it says something else.
    fn read(method: Method, params: &OwnedParams) -> Option<Self> {
        let text = params.text();
        match method {
            Method::SubscriptionAcknowledged => {
                let params: SubscriptionParams = serde_json::from_str(text).ok()?;
                Some(Self::Listening(params.notifications))
            }
            Method::ToolListChanged => Some(Self::Tools),
            Method::PromptListChanged => Some(Self::Prompts),
            Method::ResourceListChanged => Some(Self::Resources),
            Method::ResourceUpdated => {
                let params: ResourceParams = serde_json::from_str(text).ok()?;
                Some(Self::Resource(params.uri))
            }
            Method::TaskUpdated | Method::TaskStatus => serde_json::from_str(text).ok().map(Box::new).map(Self::Task),
            _ => None,
        }
    }

    /// Whether somebody who asked for `filter` wants to hear it.
    fn is_wanted(&self, filter: &SubscriptionFilter) -> bool {
        match self {
            Self::Listening(_) => true,
            Self::Tools => filter.tools(),
            Self::Prompts => filter.prompts(),
            Self::Resources => filter.resources(),
            Self::Resource(uri) => filter.resource_subscriptions.contains(uri),
            Self::Task(task) => filter.task_ids.contains(&task.task.task_id),
        }
    }
}

/// What a server tells of its changes: see [`Client::changes`]. Dropping it ends the subscription.
#[must_use = "nothing is heard unless this is polled"]
pub struct Changes {
    client: Client,
    source: Source,
}

enum Source {
    /// A subscription of 2026-07-28.
    Call(Box<PendingCall>),
    /// What the server tells everyone.
    Told(Arc<Listener>),
    /// It could not begin.
    Failed(Option<Error>),
    Over,
}

impl Client {
    /// Listens to the server's changes.
    ///
    /// The first thing to come is [`Change::Listening`]: what was changed before is not told. The stream ends when the server
    /// ends it, with an error if that is why. Who leaves more than a thousand changes unread loses the oldest.
    ///
    /// ```
    /// # use steadfast::{Client, SubscriptionFilter, client::Change};
    /// # async fn example(client: Client) -> Result<(), steadfast::Error> {
    /// let wanted = SubscriptionFilter::new()
    ///     .with_tools_list_changed(true)
    ///     .with_resource_subscriptions(vec!["file:///log".to_owned()]);
    /// let mut changes = client.changes(wanted);
    /// while let Some(change) = changes.next().await {
    ///     match change? {
    ///         Change::Tools => println!("{} tools", client.list_tools().await?.len()),
    ///         Change::Resource(uri) => println!("{uri} has changed"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn changes(&self, filter: SubscriptionFilter) -> Changes {
        let source = if self.revision().is_modern() { self.listen(filter) } else { self.hear(filter) };
        Changes { client: self.clone(), source }
    }

    fn listen(&self, filter: SubscriptionFilter) -> Source {
        let mut text = Vec::new();
        let params = SubscriptionParams::new(filter);
        let written = era::write_params(self.revision(), &params, &self.inner.decoration, &mut text);
        match written.map_err(Error::encode).and_then(|()| String::from_utf8(text).map_err(Error::encode)) {
            Ok(text) => {
                // It lasts as long as it is wanted.
                let options = CallOptions::default();
                let call = PendingCall::new(&self.inner.mailbox, Method::Listen, Some(text.into()), options);
                Source::Call(Box::new(call))
            }
            Err(error) => Source::Failed(Some(error)),
        }
    }

    fn hear(&self, filter: SubscriptionFilter) -> Source {
        let (listening, gone) = oneshot::channel();
        let listener = Arc::new(Listener { filter, queue: Mutex::default(), _listening: listening });
        self.inner.told.add(&listener);
        let subscribing = subscribe(self.clone(), Arc::downgrade(&listener), listener.filter.clone(), gone);
        self.inner.runtime.spawn(Box::pin(subscribing));
        Source::Told(listener)
    }
}

impl Changes {
    /// The next change; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Changes {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let ended = match &mut self.source {
                Source::Call(call) => match std::task::ready!(call.poll_notice(cx)) {
                    Ok((method, params)) => match Change::read(method, &params) {
                        Some(change) => return Poll::Ready(Some(Ok(change))),
                        None => continue,
                    },
                    Err(ending) => result_of::<request::Listen>(ending).err(),
                },
                Source::Told(listener) => match std::task::ready!(listener.poll(cx)) {
                    Some(Ok(change)) => return Poll::Ready(Some(Ok(change))),
                    Some(Err(error)) => Some(error),
                    None => None,
                },
                Source::Failed(error) => error.take(),
                Source::Over => None,
            };
            self.source = Source::Over;
            return Poll::Ready(ended.map(Err));
        }
    }
}

/// Subscribes to what has to be subscribed to, says so, and takes it back when nobody listens any more.
async fn subscribe(client: Client, listener: Weak<Listener>, filter: SubscriptionFilter, gone: oneshot::Receiver<()>) {
    let mut subscribed = Vec::new();
    for uri in &filter.resource_subscriptions {
        if listener.strong_count() == 0 {
            break;
        }
        match client.subscribe(uri).await {
            Ok(_) => subscribed.push(uri),
            Err(error) => {
                if let Some(listener) = listener.upgrade() {
                    listener.push(Err(error), 0);
                }
                break;
            }
        }
    }
    if let Some(listener) = listener.upgrade()
        && subscribed.len() == filter.resource_subscriptions.len()
    {
        listener.lock().begun = true;
        listener.push(Ok(Change::Listening(filter.clone())), 0);
    }
    // Nothing is ever sent: that it is dropped says so.
    let _ = gone.await;
    for uri in subscribed {
        // Others may still want to hear of it. If the server cannot be told, it tells for nothing.
        if !client.inner.told.wants(uri) {
            let _ = client.unsubscribe(uri).await;
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Changes").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Who hears what a server of the older revisions tells everyone.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<Hearers>>);

#[derive(Default)]
struct Hearers {
    listeners: Vec<Weak<Listener>>,
    /// The connection is gone: there is nothing more to hear.
    closed: bool,
}

/// Changes beyond this many, or told in more bytes than these, that nobody has looked at are dropped, the oldest first.
const UNSEEN: usize = 1_024;
const UNSEEN_BYTES: usize = 4 << 20;

struct Listener {
    filter: SubscriptionFilter,
    queue: Mutex<Queue>,
    /// Dropping it takes the subscriptions back.
    _listening: oneshot::Sender<()>,
}

#[derive(Default)]
struct Queue {
    /// Each with the bytes that told of it.
    changes: VecDeque<(Result<Change, Error>, usize)>,
    bytes: usize,
    closed: bool,
    /// It has been said that it listens.
    begun: bool,
    waker: Option<Waker>,
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Hearers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, listener: &Arc<Listener>) {
        let mut hearers = self.lock();
        hearers.listeners.retain(|known| known.strong_count() > 0);
        hearers.listeners.push(Arc::downgrade(listener));
        listener.lock().closed = hearers.closed;
    }

    /// Whether somebody wants to hear of a resource.
    fn wants(&self, uri: &str) -> bool {
        let hearers = self.lock();
        let mut listeners = hearers.listeners.iter().filter_map(Weak::upgrade);
        listeners.any(|known| known.filter.resource_subscriptions.iter().any(|wanted| wanted == uri))
    }

    /// The server says something.
    pub(super) fn tell(&self, method: Method, params: &OwnedParams) {
        let Some(change) = Change::read(method, params) else { return };
        let bytes = params.text().len();
        for listener in self.lock().listeners.iter().filter_map(Weak::upgrade) {
            // What changes before it listens is not told.
            if change.is_wanted(&listener.filter) && listener.lock().begun {
                listener.push(Ok(change.clone()), bytes);
            }
        }
    }

    /// There will be nothing more to hear.
    pub(super) fn close(&self) {
        let mut hearers = self.lock();
        hearers.closed = true;
        for listener in hearers.listeners.iter().filter_map(Weak::upgrade) {
            let mut queue = listener.lock();
            queue.closed = true;
            let waker = queue.waker.take();
            drop(queue);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl Listener {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, change: Result<Change, Error>, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes += bytes;
        queue.changes.push_back((change, bytes));
        while queue.changes.len() > 1 && (queue.changes.len() > UNSEEN || queue.bytes > UNSEEN_BYTES) {
            let dropped = queue.changes.pop_front().map_or(0, |(_, bytes)| bytes);
            queue.bytes -= dropped;
        }
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Change, Error>>> {
        let mut queue = self.lock();
        if let Some((change, bytes)) = queue.changes.pop_front() {
            queue.bytes -= bytes;
            return Poll::Ready(Some(change));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
