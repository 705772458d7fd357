//! Notifications that wait for the connection's driver to send them: equal notifications that are queued at the same
//! time are sent once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use steadfast_model::Method;
use steadfast_proto::connection::{Connection, InboundRequestKey};

use super::mailbox::{DriverCommand, DriverMailbox};

/// Notifications that wait to be sent on one connection.
pub(crate) struct OutboundNotifications {
    mailbox: Weak<DriverMailbox>,
    /// The request on whose stream the notifications are sent; `None` if they belong to no request.
    request: Option<InboundRequestKey>,
    state: Mutex<OutboundNotificationsState>,
}

#[derive(Default)]
struct OutboundNotificationsState {
    /// Whether the notifications of a subscription are still held back, because the subscription is not acknowledged
    /// yet.
    awaits_acknowledgement: bool,
    /// The parameters of the acknowledgement of a subscription, until it is sent.
    acknowledgement: Option<Box<str>>,
    /// The parameters of the queued notifications, by key. `None` if the key contains the parameters.
    pending: BTreeMap<OutboundNotificationKey, Option<Box<str>>>,
}

/// The method of a notification, and its subject or, without a subject, its parameters. A notification replaces a
/// queued one with an equal key.
type OutboundNotificationKey = (Method, Option<Box<str>>);

impl OutboundNotifications {
    /// Creates the queue of notifications for a connection or, with `request`, for the stream of that request.
    pub(crate) fn new(mailbox: &Arc<DriverMailbox>, request: Option<InboundRequestKey>) -> Arc<Self> {
        Arc::new(Self { mailbox: Arc::downgrade(mailbox), request, state: Mutex::default() })
    }

    /// Creates the queue of notifications for a subscription. The notifications of a new subscription are held back
    /// until `acknowledge` is called.
    pub(crate) fn before_acknowledgement(mailbox: &Arc<DriverMailbox>, request: InboundRequestKey) -> Arc<Self> {
        let state = Mutex::new(OutboundNotificationsState {
            awaits_acknowledgement: true,
            ..OutboundNotificationsState::default()
        });
        Arc::new(Self { mailbox: Arc::downgrade(mailbox), request: Some(request), state })
    }

    /// Acknowledges a subscription, and sends the notifications that were held back until then.
    pub(crate) fn acknowledge(self: &Arc<Self>, params: Box<str>) {
        let mut state = self.lock();
        state.awaits_acknowledgement = false;
        state.acknowledgement = Some(params);
        drop(state);
        self.wake_driver();
    }

    /// Queues a notification for the connection's driver to send, unless an equal one is queued already. `params` is
    /// the text of a JSON object. The caller has to limit the number of different `params`, because the queue has no
    /// limit of its own.
    pub(crate) fn post(self: &Arc<Self>, method: Method, params: Option<Box<str>>) {
        self.insert((method, params), None);
    }

    /// Queues a notification for the connection's driver to send. The notification replaces a queued notification about
    /// the same subject.
    pub(crate) fn post_newest(self: &Arc<Self>, method: Method, subject: &str, params: Box<str>) {
        self.insert((method, Some(subject.into())), Some(params));
    }

    /// Moves all queued notifications to the connection, which sends them.
    pub(crate) fn send_on(&self, connection: &mut Connection) {
        let state = std::mem::take(&mut *self.lock());
        if let (Some(key), Some(acknowledgement)) = (self.request, state.acknowledgement) {
            connection.notify_about(key, Method::SubscriptionAcknowledged, &acknowledgement);
        }
        for ((method, subject), params) in state.pending {
            match (self.request, params) {
                // The connection drops notifications on the stream of a request that has ended.
                (Some(key), Some(params)) => {
                    connection.notify_newest(key, method, subject.as_deref().unwrap_or_default(), &params);
                }
                (Some(key), None) => drop(connection.notify_about(key, method, subject.as_deref().unwrap_or("{}"))),
                (None, params) => drop(connection.notify_once_of(method, params.as_deref().or(subject.as_deref()))),
            }
        }
    }

    fn insert(self: &Arc<Self>, key: OutboundNotificationKey, params: Option<Box<str>>) {
        let mut state = self.lock();
        // If others wait, a command for them is in the mailbox already. The acknowledgement posts one too.
        let first = state.pending.is_empty() && state.acknowledgement.is_none() && !state.awaits_acknowledgement;
        state.pending.insert(key, params);
        drop(state);
        if first {
            self.wake_driver();
        }
    }

    fn wake_driver(self: &Arc<Self>) {
        if let Some(mailbox) = self.mailbox.upgrade() {
            // If the connection is closed, the notifications are dropped with it.
            let _ = mailbox.post(DriverCommand::Notify(Arc::clone(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutboundNotificationsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
