//! What a peer is to be told and has not been: each thing once, however often it happens before the driver comes by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use steadfast_model::Method;
use steadfast_proto::connection::{Connection, Key};

use super::mailbox::{DriverCommand, Mailbox};

/// Notifications on their way to a connection.
pub(crate) struct PendingNotifications {
    mailbox: Weak<Mailbox>,
    /// The request that they belong to, if they belong to one.
    about: Option<Key>,
    waiting: Mutex<NotificationState>,
}

#[derive(Default)]
struct NotificationState {
    /// They wait for the acknowledgement of their stream.
    held: bool,
    acknowledged: Option<Box<str>>,
    /// What they are about, and the parameters if these are not the same text.
    told: BTreeMap<NotificationKey, Option<Box<str>>>,
}

/// What a notification is about: without a subject, what its method says.
type NotificationKey = (Method, Option<Box<str>>);

impl PendingNotifications {
    /// For a connection, or for one of its requests.
    pub(crate) fn new(mailbox: &Arc<Mailbox>, about: Option<Key>) -> Arc<Self> {
        Arc::new(Self { mailbox: Arc::downgrade(mailbox), about, waiting: Mutex::default() })
    }

    /// For a stream that will be acknowledged: until then they are kept.
    pub(crate) fn held(mailbox: &Arc<Mailbox>, about: Key) -> Arc<Self> {
        let waiting = Mutex::new(NotificationState { held: true, ..NotificationState::default() });
        Arc::new(Self { mailbox: Arc::downgrade(mailbox), about: Some(about), waiting })
    }

    /// Has the stream acknowledged, and lets the others follow.
    pub(crate) fn acknowledge(self: &Arc<Self>, params: Box<str>) {
        let mut waiting = self.lock();
        waiting.held = false;
        waiting.acknowledged = Some(params);
        drop(waiting);
        self.send();
    }

    /// Has the peer told, with the text of an object as parameters. How many different texts there may be is for the
    /// caller to bound.
    pub(crate) fn post(self: &Arc<Self>, method: Method, params: Option<Box<str>>) {
        self.insert((method, params), None);
    }

    /// The same, but what is told of one subject takes the place of what was to be told of it before.
    pub(crate) fn post_newest(self: &Arc<Self>, method: Method, subject: &str, params: Box<str>) {
        self.insert((method, Some(subject.into())), Some(params));
    }

    /// Gives them to the connection.
    pub(crate) fn hand_over(&self, connection: &mut Connection) {
        let waiting = std::mem::take(&mut *self.lock());
        if let (Some(key), Some(acknowledged)) = (self.about, waiting.acknowledged) {
            connection.notify_about(key, Method::SubscriptionAcknowledged, &acknowledged);
        }
        for ((method, subject), params) in waiting.told {
            match (self.about, params) {
                // A request that has ended is told nothing more.
                (Some(key), Some(params)) => {
                    connection.notify_newest(key, method, subject.as_deref().unwrap_or_default(), &params);
                }
                (Some(key), None) => drop(connection.notify_about(key, method, subject.as_deref().unwrap_or("{}"))),
                (None, params) => drop(connection.notify_once_of(method, params.as_deref().or(subject.as_deref()))),
            }
        }
    }

    fn insert(self: &Arc<Self>, about: NotificationKey, params: Option<Box<str>>) {
        let mut waiting = self.lock();
        // There is a letter on its way for those that wait already, or there will be one with the acknowledgement.
        let first = waiting.told.is_empty() && waiting.acknowledged.is_none() && !waiting.held;
        waiting.told.insert(about, params);
        drop(waiting);
        if first {
            self.send();
        }
    }

    fn send(self: &Arc<Self>) {
        if let Some(mailbox) = self.mailbox.upgrade() {
            // If the connection is closed nobody wants to know.
            let _ = mailbox.post(DriverCommand::Notices(Arc::clone(self)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, NotificationState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
