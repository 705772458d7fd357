//! What a server tells of its changes, as a stream, in every revision.
//!
//! Since 2026-07-28 a client asks for it with `subscriptions/listen`, and each such request is a stream of its own. Before,
//! a server tells every client of changes of its lists, and of resources that were subscribed to.
//!
//! On a client that comes back, a stream whose connection is lost begins again on the next one.

mod listeners;
mod subscribe;
mod subscriptions;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use steadfast_model::era;
use steadfast_model::{DetailedTask, Method, ResourceParams, SubscriptionFilter, SubscriptionParams, request};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::{Moment, mutant};

use crate::client::Client;
use crate::client::connection::live::LiveConnection;
use crate::client::connection::reconnect::FailureStreak;
use crate::client::connection::reconnecting::LostConnection;
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, LossKind, result_of};
use crate::runtime::timeout::{sleep_until, unless_stopped};
use crate::runtime::{CallOptions, PendingCall};
use listeners::{Failure, Listener};
use subscribe::hear;

pub(crate) use listeners::ChangeListeners;

/// Something that has changed at the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The server tells of changes from here on: of these, which may be less than was asked for. Look once at what you
    /// want to keep up with. It comes again when the connection was lost: what changed in between was not told.
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
            Self::Resource(uri) => filter.resource_subscriptions.iter().any(|of| is_part(uri, of)),
            Self::Task(task) => filter.task_ids.contains(&task.task.task_id),
        }
    }
}

/// Whether a URI is that of a resource, or of something below it: who subscribes to a folder may be told of its files.
fn is_part(uri: &str, of: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || of.ends_with('/') || rest.starts_with(['/', '?', '#']);
    uri.strip_prefix(of).is_some_and(below)
}

/// What a server tells of its changes: see [`Client::changes`]. Dropping it ends the subscription.
#[must_use = "nothing is heard unless this is polled"]
pub struct Changes {
    client: Client,
    filter: SubscriptionFilter,
    /// What is listened to, over what, and since when.
    source: Source,
    live: Arc<LiveConnection>,
    since: Moment,
    /// It was said that the server tells of changes.
    listening: bool,
    /// How often in a row it was listened to in vain.
    streak: FailureStreak,
}

enum Source {
    /// A subscription of 2026-07-28.
    Call(Box<PendingCall>),
    /// What the server tells everyone.
    Told(Arc<Listener>),
    /// The connection was lost, and there will be another.
    Returning(Pin<Box<dyn Future<Output = Result<Arc<LiveConnection>, Error>> + Send>>),
    /// It could not begin.
    Failed(Error),
    Over,
}

/// What comes of a source.
enum ChangeEvent {
    Change(Change),
    /// Nothing of interest.
    Nothing,
    /// Another link.
    Back(Arc<LiveConnection>),
    /// It has ended: by itself, or because the way to the server was lost.
    Ended(Option<Error>, Option<CallLoss>),
}

impl Client {
    /// Listens to the server's changes.
    ///
    /// The first thing to come is [`Change::Listening`]: what was changed before is not told. It comes again when the
    /// connection was lost and the client has come back. The stream ends when the server ends it or cannot be reached any
    /// more, with an error if that is why. Who leaves more than a thousand changes unread loses the oldest.
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
        let live = self.inner.connection.live();
        let since = self.inner.runtime().now();
        let (source, streak) = (Source::Over, FailureStreak::default());
        let mut changes = Changes { client: self.clone(), filter, source, live, since, listening: false, streak };
        changes.begin();
        changes
    }
}

impl Changes {
    /// The next change; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Listens on the link that there is.
    fn begin(&mut self) {
        self.since = self.client.inner.runtime().now();
        self.listening = false;
        self.source = if self.live.peer.revision.is_modern() {
            self.listen().map_or_else(Source::Failed, |call| Source::Call(Box::new(call)))
        } else {
            Source::Told(hear(&self.client, &self.live, self.filter.clone()))
        };
    }

    fn listen(&self) -> Result<PendingCall, Error> {
        let params = SubscriptionParams::new(self.filter.clone());
        let decoration = &self.client.inner.connection.opener.decoration;
        let text = era::params_text(self.live.peer.revision, &params, decoration).map_err(Error::encode)?;
        // It lasts as long as it is wanted.
        Ok(PendingCall::new(&self.live.mailbox, Method::Listen, Some(text), CallOptions::default()))
    }

    /// What is to be listened to after a loss: another link, if the client comes back and this was not in vain too often.
    fn after(&mut self, loss: Option<CallLoss>) -> Option<Source> {
        let (loss, connection) = (loss?, Arc::clone(&self.client.inner.connection));
        let runtime = Arc::clone(self.client.inner.runtime());
        let now = runtime.now();
        self.streak.lost(now, now.since(self.since));
        if self.streak.is_spent(connection.policy()) {
            return None;
        }
        // A link that is lost has the line wait; one that lives is not to be asked again and again.
        let when = if loss.kind == LossKind::Call { self.streak.next(connection.policy(), &*runtime) } else { now };
        let failed = LostConnection { live: Arc::clone(&self.live), at: self.since, lost: loss.kind };
        Some(Source::Returning(Box::pin(async move {
            // A line that is closed says so at once.
            unless_stopped(connection.wait_until_closing(), sleep_until(&*runtime, when)).await;
            connection.another(failed).await
        })))
    }
}

impl Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ChangeEvent> {
        Poll::Ready(match self {
            Self::Call(call) => match std::task::ready!(call.poll_notification(cx)) {
                Ok((method, params)) => match Change::read(method, &params) {
                    Some(change) => ChangeEvent::Change(change),
                    // Nothing that comes behind it would be told.
                    None if method == Method::SubscriptionAcknowledged => {
                        let why = "it is not said what is listened to";
                        ChangeEvent::Ended(Some(Error::unreadable(Method::Listen, why)), None)
                    }
                    None => ChangeEvent::Nothing,
                },
                Err(ending) => {
                    let loss = CallLoss::from_end(&ending);
                    ChangeEvent::Ended(result_of::<request::Listen>(ending).err(), loss)
                }
            },
            Self::Told(listener) => match std::task::ready!(listener.poll(cx)) {
                Some(Ok(change)) => ChangeEvent::Change(change),
                Some(Err(Failure { error, loss })) => ChangeEvent::Ended(Some(error), loss),
                None => ChangeEvent::Ended(
                    Some(Error::closed(Outcome::Unknown)),
                    Some(CallLoss { sent: true, kind: LossKind::Connection }),
                ),
            },
            Self::Returning(returning) => match std::task::ready!(returning.as_mut().poll(cx)) {
                Ok(live) => ChangeEvent::Back(live),
                Err(error) => ChangeEvent::Ended(Some(error), None),
            },
            Self::Failed(_) => match std::mem::replace(self, Self::Over) {
                Self::Failed(error) => ChangeEvent::Ended(Some(error), None),
                _ => ChangeEvent::Ended(None, None),
            },
            Self::Over => ChangeEvent::Ended(None, None),
        })
    }
}

impl Stream for Changes {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let changes = &mut *self;
        loop {
            match std::task::ready!(changes.source.poll(cx)) {
                ChangeEvent::Change(change) => {
                    changes.listening |= matches!(change, Change::Listening(_));
                    // A server may tell of changes before it has said of which: who looks then has not seen them all.
                    if changes.listening || mutant!(TellEarly) {
                        return Poll::Ready(Some(Ok(change)));
                    }
                }
                ChangeEvent::Nothing => {}
                ChangeEvent::Back(live) => {
                    changes.live = live;
                    changes.begin();
                }
                ChangeEvent::Ended(error, loss) => {
                    let next = changes.after(loss);
                    let over = next.is_none();
                    changes.source = next.unwrap_or(Source::Over);
                    if over {
                        return Poll::Ready(error.map(Err));
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Changes").field("client", &self.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_to_hear_of_a_resource_hears_of_what_is_below_it_and_of_no_other() {
        let filter = SubscriptionFilter::new().with_resource_subscriptions(vec!["file:///log".to_owned()]);
        let wanted = |uri: &str| Change::Resource(uri.to_owned()).is_wanted(&filter);
        assert!(wanted("file:///log") && wanted("file:///log/today") && wanted("file:///log#end"));
        assert!(!wanted("file:///logs") && !wanted("file:///"));
    }
}
