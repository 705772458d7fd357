//! Resource subscriptions up to 2025-11-25: a change listener sends one `resources/subscribe` per resource, and the
//! last listener of a resource sends one `resources/unsubscribe` when it is dropped. Resource subscriptions belong to
//! their connection.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_model::request::{self, Request};
use steadfast_model::{ResourceUriParams, SubscriptionFilter};
use steadfast_proto::mutant;
use tokio::sync::{oneshot, watch};

use super::listeners::{ChangeListenerFailure, ClientChangeListener, ClientChangeListeners};
use crate::client::connection::live::{ClientConnection, wait_until_notifications_arrive};
use crate::client::dispatch::ClientOutboundRequestSender;
use crate::client::{Client, ClientInner};
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, result_of};
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{OutboundCallOptions, PendingCall, Runtime};

/// The timeout of `resources/subscribe`.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout of `resources/unsubscribe`, and of a `resources/subscribe` whose listener was dropped. The timeout is
/// short, because other listeners may wait for the end of that request.
const UNSUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait until the HTTP stream for notifications is open. After `STREAM_TIMEOUT` the client subscribes to
/// resources even if the HTTP stream is not open.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);

/// Adds a change listener to a connection, and spawns the task that subscribes to the resources for the listener.
pub(crate) fn listen(
    client: &Client,
    live: &Arc<ClientConnection>,
    filter: SubscriptionFilter,
) -> Arc<ClientChangeListener> {
    let (listener, dropped) = ClientChangeListener::new(filter);
    live.change_listeners.add(&listener);
    let subscriptions = ListenerResourceSubscriber {
        client: Arc::downgrade(&client.inner),
        runtime: Arc::clone(client.inner.runtime()),
        listeners: live.change_listeners.clone(),
        sender: live.sender.clone(),
        receives_notifications: live.receives_notifications(),
        listener_dropped: ListenerDropReceiver { receiver: dropped, received: false },
    };
    let filter = listener.filter.clone();
    client.inner.runtime().spawn(Box::pin(subscriptions.run(Arc::downgrade(&listener), filter)));
    listener
}

/// The resource subscriptions of one change listener. The subscriber keeps neither the client nor the connection open.
struct ListenerResourceSubscriber {
    /// The client, which is never upgraded across an await: dropping the last `Client` has to close the connection.
    client: Weak<ClientInner>,
    runtime: Arc<dyn Runtime>,
    listeners: ClientChangeListeners,
    sender: ClientOutboundRequestSender,
    receives_notifications: watch::Receiver<bool>,
    listener_dropped: ListenerDropReceiver,
}

/// Tells the task that subscribes to resources that the change listener was dropped, so that the task unsubscribes.
/// [`wait`](Self::wait) may be called any number of times: once the change listener was dropped, every call returns at once.
struct ListenerDropReceiver {
    receiver: oneshot::Receiver<()>,
    received: bool,
}

impl ListenerDropReceiver {
    async fn wait(&mut self) {
        if !self.received {
            // Nothing is ever sent: the drop of the sender is the signal.
            let _ = (&mut self.receiver).await;
            self.received = true;
        }
    }
}

impl ListenerResourceSubscriber {
    /// Subscribes to the resources, activates the change listener, and unsubscribes when the listener is dropped, also
    /// if it is dropped while subscribing.
    async fn run(mut self, listener: Weak<ClientChangeListener>, filter: SubscriptionFilter) {
        if let Some(result) = self.subscribe_all(&filter).await {
            if let Some(listener) = listener.upgrade() {
                match result {
                    Ok(()) => listener.activate(),
                    Err(failure) => listener.fail(failure),
                }
            }
            self.listener_dropped.wait().await;
        }
        self.unsubscribe_all(&filter).await;
    }

    /// Subscribes to all resources of the filter. Returns `None` if the change listener was dropped.
    async fn subscribe_all(&mut self, filter: &SubscriptionFilter) -> Option<Result<(), ChangeListenerFailure>> {
        // A notification that the server sends before its stream is open may be lost. After a while this subscribes all
        // the same: some servers send no response headers before the first notification.
        let stream_open = wait_until_notifications_arrive(self.receives_notifications.clone());
        let opening = timeout_at(&*self.runtime, Some(self.runtime.now() + STREAM_TIMEOUT), stream_open);
        unless_stopped(self.listener_dropped.wait(), opening).await?;
        for uri in &filter.resource_subscriptions {
            if let Err(failure) = self.subscribe(uri).await? {
                return Some(Err(failure));
            }
        }
        Some(Ok(()))
    }

    /// Subscribes the client to one resource. Returns `None` if the change listener was dropped. A
    /// `resources/subscribe` that is in flight when the listener is dropped is awaited for a while: it must not reach
    /// the server after the `resources/unsubscribe`.
    async fn subscribe(&mut self, uri: &str) -> Option<Result<(), ChangeListenerFailure>> {
        let mut subscribed = unless_stopped(self.listener_dropped.wait(), self.listeners.subscribed.lock(uri)).await?;
        let mut call = match self.send::<request::Subscribe>(uri, SUBSCRIBE_TIMEOUT) {
            Ok(call) => call,
            Err(error) => return Some(Err(ChangeListenerFailure { error, loss: None })),
        };
        let was_subscribed = std::mem::replace(&mut *subscribed, true);
        let Some(end) = unless_stopped(self.listener_dropped.wait(), &mut call).await else {
            let _ = timeout_at(&*self.runtime, Some(self.runtime.now() + UNSUBSCRIBE_TIMEOUT), call).await;
            return None;
        };
        let loss = CallLoss::from_end(&end);
        Some(result_of::<request::Subscribe>(end).map(drop).map_err(|error| {
            // If the request was sent, the server may have subscribed although the response was lost.
            if matches!(error.outcome(), Outcome::NotSent | Outcome::Refused) || mutant!(ForgetLostSubscriptions) {
                *subscribed = was_subscribed;
            }
            ChangeListenerFailure { error, loss }
        }))
    }

    /// Unsubscribes from the resources that no other listener has subscribed to.
    async fn unsubscribe_all(self, filter: &SubscriptionFilter) {
        for uri in &filter.resource_subscriptions {
            let mut subscribed = self.listeners.subscribed.lock(uri).await;
            if *subscribed && !self.listeners.has_listener_for(uri) {
                let permit = self.listeners.subscribed.unsubscribe_permit();
                let _permit = if mutant!(UnsubscribeOverLimit) { None } else { permit.await };
                let holding = mutant!(KeepClientWhileUnsubscribing);
                let _held = holding.then(|| self.client.upgrade());
                let timeout = if holding { SUBSCRIBE_TIMEOUT } else { UNSUBSCRIBE_TIMEOUT };
                // If this fails, the server sends notifications that no listener wants.
                if let Ok(call) = self.send::<request::Unsubscribe>(uri, timeout) {
                    let result = result_of::<request::Unsubscribe>(call.await);
                    *subscribed = result.is_err_and(|error| error.outcome() == Outcome::NotSent);
                }
            }
        }
    }

    fn send<R: Request<Params = ResourceUriParams>>(&self, uri: &str, timeout: Duration) -> Result<PendingCall, Error> {
        // A client that is gone sends nothing more.
        if self.client.strong_count() == 0 {
            return Err(Error::closed(Outcome::NotSent));
        }
        let options = OutboundCallOptions { timeout: Some(timeout), ..OutboundCallOptions::default() };
        self.sender.send::<R>(&ResourceUriParams::new(uri), options)
    }
}
