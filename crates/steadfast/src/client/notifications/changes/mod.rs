//! The changes at a server, as a stream for the client's program, in every revision.
//!
//! Since 2026-07-28 a client sends `subscriptions/listen`, and the notifications of each such request are a stream. Up
//! to 2025-11-25 a server notifies every client of changes to the server's lists, and of changes to the resources that
//! the client has subscribed to.
//!
//! On a client that reconnects, a stream of changes whose connection is lost continues on the next connection.

mod listeners;
mod subscribe;
mod subscriptions;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use steadfast_model::{DetailedTask, Method, ResourceUriParams, SubscriptionFilter, SubscriptionParams, request};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::{Moment, mutant};

use crate::client::Client;
use crate::client::connection::live::ClientConnection;
use crate::client::connection::reconnect::ReconnectFailureStreak;
use crate::client::connection::reconnecting::CallLossReport;
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, CallLossScope, result_of};
use crate::runtime::timeout::{sleep_until, unless_stopped};
use crate::runtime::{OutboundCallOptions, PendingCall};
use listeners::{ChangeListenerFailure, ClientChangeListener};
use subscribe::listen;

pub(crate) use listeners::ClientChangeListeners;

/// A change at the server that a client listens to, such as a changed list or resource.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The server sends change notifications from now on, for this filter, which may be less than was requested.
    /// Changes before [`Change::Listening`] are not reported, so read the current state now. The stream yields
    /// [`Change::Listening`] again after each reconnect, because changes during the disconnect are not reported.
    Listening(SubscriptionFilter),
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources or of resource templates has changed.
    Resources,
    /// The server reported that the resource at this URI has changed, so read the resource again.
    Resource(String),
    /// The status of an MCP task has changed.
    Task(Box<DetailedTask>),
}

impl Change {
    /// Returns the change that a notification of the server reports; `None` if it reports no change.
    fn from_notification(method: Method, params: &OwnedParams) -> Option<Self> {
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
                let params: ResourceUriParams = serde_json::from_str(text).ok()?;
                Some(Self::Resource(params.uri))
            }
            Method::TaskUpdated | Method::TaskStatus => serde_json::from_str(text).ok().map(Box::new).map(Self::Task),
            _ => None,
        }
    }

    /// Whether a change listener with this filter wants the change.
    fn matches(&self, filter: &SubscriptionFilter) -> bool {
        match self {
            Self::Listening(_) => true,
            Self::Tools => filter.tools(),
            Self::Prompts => filter.prompts(),
            Self::Resources => filter.resources(),
            Self::Resource(uri) => filter.resource_subscriptions.iter().any(|resource| is_part_of(uri, resource)),
            Self::Task(task) => filter.task_ids.contains(&task.task.task_id),
        }
    }
}

/// Whether `uri` is the URI of `resource` or of a part of that resource: a server may notify the subscriber of a folder
/// of changes to the files in the folder.
fn is_part_of(uri: &str, resource: &str) -> bool {
    let is_part = |rest: &str| rest.is_empty() || resource.ends_with('/') || rest.starts_with(['/', '?', '#']);
    uri.strip_prefix(resource).is_some_and(is_part)
}

/// A stream of the changes at a server: see [`Client::changes`]. Dropping the stream ends the subscription.
#[must_use = "streams do nothing unless polled"]
pub struct ChangeStream {
    client: Client,
    filter: SubscriptionFilter,
    source: ClientChangeSource,
    /// The connection on which the source of the changes listens.
    live: Arc<ClientConnection>,
    /// When the source of the changes was created.
    started_at: Moment,
    /// Whether the stream has yielded [`Change::Listening`] for this connection.
    listening: bool,
    /// The failed attempts to listen to changes, in a row.
    streak: ReconnectFailureStreak,
}

/// Where the changes of a [`ChangeStream`] come from.
enum ClientChangeSource {
    /// A `subscriptions/listen` in flight (since 2026-07-28).
    Subscription(Box<PendingCall>),
    /// The notifications that the server sends to every client (up to 2025-11-25).
    Broadcast(Arc<ClientChangeListener>),
    /// The connection was lost, and the stream of changes waits for the next connection.
    Reconnecting(Pin<Box<dyn Future<Output = Result<Arc<ClientConnection>, Error>> + Send>>),
    /// The `subscriptions/listen` request could not be encoded.
    Failed(Error),
    Ended,
}

/// What a [`ClientChangeSource`] yields, such as a change at the server or a reconnect.
enum ClientChangeSourceEvent {
    Change(Change),
    /// The server sent a notification that reports no change.
    Ignored,
    Reconnected(Arc<ClientConnection>),
    /// The source of changes has ended, with an error or without. The `CallLoss` is set if the connection failed.
    Ended(Option<Error>, Option<CallLoss>),
}

impl Client {
    /// Listens to changes at the server.
    ///
    /// The first item of the stream is [`Change::Listening`]; changes before it are not reported. The stream yields
    /// [`Change::Listening`] again after each reconnect, because changes during the disconnect are not reported. The
    /// stream of changes ends when the server ends the subscription, or with an error when the connection is lost for
    /// good. The stream holds at most 1,024 unread changes; if there are more, the oldest are dropped.
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
    pub fn changes(&self, filter: SubscriptionFilter) -> ChangeStream {
        let live = self.inner.connection.live();
        let started_at = self.inner.runtime().now();
        let (source, streak) = (ClientChangeSource::Ended, ReconnectFailureStreak::default());
        let mut changes =
            ChangeStream { client: self.clone(), filter, source, live, started_at, listening: false, streak };
        changes.start();
        changes
    }
}

impl ChangeStream {
    /// Returns the next change, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Starts to listen to changes on the current connection.
    fn start(&mut self) {
        self.started_at = self.client.inner.runtime().now();
        self.listening = false;
        self.source = if self.live.peer.revision.is_stateless() {
            self.send_listen()
                .map_or_else(ClientChangeSource::Failed, |call| ClientChangeSource::Subscription(Box::new(call)))
        } else {
            ClientChangeSource::Broadcast(listen(&self.client, &self.live, self.filter.clone()))
        };
    }

    fn send_listen(&self) -> Result<PendingCall, Error> {
        let params = SubscriptionParams::new(self.filter.clone());
        // Without a timeout: the server responds when the subscription ends.
        self.live.sender.send::<request::Listen>(&params, OutboundCallOptions::default())
    }

    /// Returns the source of changes after a loss, which waits for the next connection. Returns `None` if the client
    /// does not reconnect or has no attempts left.
    fn source_after(&mut self, loss: Option<CallLoss>) -> Option<ClientChangeSource> {
        let (loss, connection) = (loss?, Arc::clone(&self.client.inner.connection));
        let runtime = Arc::clone(self.client.inner.runtime());
        let now = runtime.now();
        self.streak.record_loss(now, now.since(self.started_at));
        if self.streak.is_exhausted(connection.policy()) {
            return None;
        }
        // `ReconnectingConnection` waits before it replaces a lost connection. If only the request was lost, this has
        // to wait itself.
        let when = if loss.kind == CallLossScope::Call {
            self.streak.next_attempt_at(connection.policy(), &*runtime)
        } else {
            now
        };
        let live = Arc::clone(&self.live);
        let lost = CallLossReport { live, call_sent_at: self.started_at, kind: loss.kind, resend_at_once: false };
        Some(ClientChangeSource::Reconnecting(Box::pin(async move {
            // If the client is closed, `replace` fails at once.
            unless_stopped(connection.wait_until_closing(), sleep_until(&*runtime, when)).await;
            connection.replace(lost).await
        })))
    }
}

impl ClientChangeSource {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ClientChangeSourceEvent> {
        Poll::Ready(match self {
            Self::Subscription(call) => match std::task::ready!(call.poll_notification(cx)) {
                Ok((method, params)) => match Change::from_notification(method, &params) {
                    Some(change) => ClientChangeSourceEvent::Change(change),
                    // Without a `Change::Listening` all later changes would be withheld.
                    None if method == Method::SubscriptionAcknowledged => {
                        let why = "the acknowledgement of the subscription is malformed";
                        ClientChangeSourceEvent::Ended(Some(Error::unreadable(Method::Listen, why)), None)
                    }
                    None => ClientChangeSourceEvent::Ignored,
                },
                Err(end) => {
                    let loss = CallLoss::from_end(&end);
                    ClientChangeSourceEvent::Ended(result_of::<request::Listen>(end).err(), loss)
                }
            },
            Self::Broadcast(listener) => match std::task::ready!(listener.poll(cx)) {
                Some(Ok(change)) => ClientChangeSourceEvent::Change(change),
                Some(Err(ChangeListenerFailure { error, loss })) => ClientChangeSourceEvent::Ended(Some(error), loss),
                None => ClientChangeSourceEvent::Ended(
                    Some(Error::closed(Outcome::Unknown)),
                    Some(CallLoss { sent: true, kind: CallLossScope::Connection }),
                ),
            },
            Self::Reconnecting(connection) => match std::task::ready!(connection.as_mut().poll(cx)) {
                Ok(live) => ClientChangeSourceEvent::Reconnected(live),
                Err(error) => ClientChangeSourceEvent::Ended(Some(error), None),
            },
            Self::Failed(_) => match std::mem::replace(self, Self::Ended) {
                Self::Failed(error) => ClientChangeSourceEvent::Ended(Some(error), None),
                _ => ClientChangeSourceEvent::Ended(None, None),
            },
            Self::Ended => ClientChangeSourceEvent::Ended(None, None),
        })
    }
}

impl Stream for ChangeStream {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let changes = &mut *self;
        loop {
            match std::task::ready!(changes.source.poll(cx)) {
                ClientChangeSourceEvent::Change(change) => {
                    changes.listening |= matches!(change, Change::Listening(_));
                    // A server may send some changes before its acknowledgement, and not others: the early ones are
                    // withheld, and the program reads the current state after the acknowledgement.
                    if changes.listening || mutant!(ReportChangeBeforeListening) {
                        return Poll::Ready(Some(Ok(change)));
                    }
                }
                ClientChangeSourceEvent::Ignored => {}
                ClientChangeSourceEvent::Reconnected(live) => {
                    changes.live = live;
                    changes.start();
                }
                ClientChangeSourceEvent::Ended(error, loss) => {
                    let next = changes.source_after(loss);
                    let ended = next.is_none();
                    changes.source = next.unwrap_or(ClientChangeSource::Ended);
                    if ended {
                        return Poll::Ready(error.map(Err));
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for ChangeStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ChangeStream").field("client", &self.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_to_a_resource_covers_its_parts_and_no_other_resource() {
        let filter = SubscriptionFilter::new().with_resource_subscriptions(vec!["file:///log".to_owned()]);
        let matches = |uri: &str| Change::Resource(uri.to_owned()).matches(&filter);
        assert!(matches("file:///log") && matches("file:///log/today") && matches("file:///log#end"));
        assert!(!matches("file:///logs") && !matches("file:///"));
    }
}
