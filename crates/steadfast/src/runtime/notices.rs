//! What a peer is to be told and has not been: each thing once, however often it happens before the driver comes by.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use steadfast_model::Method;
use steadfast_proto::connection::{Connection, Key};

use super::mailbox::{Letter, Mailbox};

/// Notifications on their way to a connection.
pub(crate) struct Notices {
    mailbox: Weak<Mailbox>,
    /// The request that they belong to, if they belong to one.
    about: Option<Key>,
    waiting: Mutex<BTreeSet<(Method, Option<Box<str>>)>>,
}

impl Notices {
    /// For a connection, or for one of its requests.
    pub(crate) fn new(mailbox: &Arc<Mailbox>, about: Option<Key>) -> Arc<Self> {
        Arc::new(Self { mailbox: Arc::downgrade(mailbox), about, waiting: Mutex::default() })
    }

    /// Has the peer told, with the text of an object as parameters. How many different texts there may be is for the
    /// caller to bound.
    pub(crate) fn post(self: &Arc<Self>, method: Method, params: Option<Box<str>>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let first = waiting.is_empty();
        waiting.insert((method, params));
        drop(waiting);
        if first && let Some(mailbox) = self.mailbox.upgrade() {
            // If the connection is closed nobody wants to know.
            let _ = mailbox.post(Letter::Notices(Arc::clone(self)));
        }
    }

    /// Gives them to the connection.
    pub(super) fn hand_over(&self, connection: &mut Connection) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for (method, params) in waiting {
            match self.about {
                // A request that has ended is told nothing more.
                Some(key) => drop(connection.notify_about(key, method, params.as_deref().unwrap_or("{}"))),
                None => drop(connection.notify_once_of(method, params.as_deref())),
            }
        }
    }
}
