//! The listeners of a client to changes on one connection, up to 2025-11-25: the server sends its change notifications
//! to every client, and the client passes them on to the listeners that want them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use steadfast_model::{Method, SubscriptionFilter};
use steadfast_proto::envelope::OwnedParams;
use tokio::sync::oneshot;

use super::Change;
use super::subscriptions::ClientResourceSubscriptions;
use crate::error::Error;
use crate::runtime::LossyChannel;
use crate::runtime::connection::call_result::CallLoss;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct ClientChangeListeners {
    table: Arc<Mutex<ClientChangeListenerTable>>,
    pub(crate) subscribed: Arc<ClientResourceSubscriptions>,
}

#[derive(Default)]
struct ClientChangeListenerTable {
    listeners: Vec<Weak<ClientChangeListener>>,
    /// The connection is closed: no more changes will arrive.
    closed: bool,
}

/// The maximum number of unread changes of one change listener, and their maximum size. If the unread changes of a
/// change listener exceed a limit, the oldest changes are dropped.
const MAX_UNREAD: usize = 1_024;
const MAX_UNREAD_BYTES: usize = 4 << 20;

pub(crate) struct ClientChangeListener {
    pub(crate) filter: SubscriptionFilter,
    backlog: LossyChannel<Result<Change, ChangeListenerFailure>>,
    /// Whether the subscriptions of the listener are in place, and changes are delivered to it.
    active: AtomicBool,
    /// Nothing is sent on this channel. When the channel is dropped together with the change listener, the client
    /// unsubscribes.
    _drop_signal: oneshot::Sender<()>,
}

/// Why a change listener of the client cannot listen.
pub(crate) struct ChangeListenerFailure {
    pub(crate) error: Error,
    /// Set if the connection failed, so that a reconnect may help.
    pub(crate) loss: Option<CallLoss>,
}

impl ClientChangeListeners {
    /// `max_calls`: the maximum number of calls that the connection may have in flight.
    pub(crate) fn new(max_calls: usize) -> Self {
        Self { table: Arc::default(), subscribed: Arc::new(ClientResourceSubscriptions::new(max_calls)) }
    }

    fn lock(&self) -> MutexGuard<'_, ClientChangeListenerTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, listener: &Arc<ClientChangeListener>) {
        let mut table = self.lock();
        table.listeners.retain(|listener| listener.strong_count() > 0);
        table.listeners.push(Arc::downgrade(listener));
        if table.closed {
            listener.backlog.close();
        }
    }

    /// Whether any listener of this client still wants the changes of this resource.
    pub(crate) fn has_listener_for(&self, uri: &str) -> bool {
        let table = self.lock();
        let mut listeners = table.listeners.iter().filter_map(Weak::upgrade);
        listeners.any(|listener| listener.filter.resource_subscriptions.iter().any(|wanted| wanted == uri))
    }

    /// Delivers a notification of the server to the change listeners that want it.
    pub(crate) fn deliver(&self, method: Method, params: &OwnedParams) {
        let Some(change) = Change::from_notification(method, params) else { return };
        let bytes = params.text().len();
        for listener in self.lock().listeners.iter().filter_map(Weak::upgrade) {
            // `Change::Listening` comes before all other changes.
            if change.matches(&listener.filter) && listener.active.load(Ordering::SeqCst) {
                listener.backlog.push(Ok(change.clone()), bytes);
            }
        }
    }

    /// Ends all change listeners of the connection, because the connection is closed.
    pub(crate) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        table.listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener.backlog.close());
    }
}

impl ClientChangeListener {
    /// Creates a change listener, and a receiver that completes with an error when the listener is dropped.
    pub(crate) fn new(filter: SubscriptionFilter) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (sender, dropped) = oneshot::channel();
        let backlog = LossyChannel::new(MAX_UNREAD, MAX_UNREAD_BYTES);
        (Arc::new(Self { filter, backlog, active: AtomicBool::new(false), _drop_signal: sender }), dropped)
    }

    /// Delivers [`Change::Listening`] to the change listener, and all changes from now on.
    pub(crate) fn activate(&self) {
        self.active.store(true, Ordering::SeqCst);
        self.backlog.push_kept(Ok(Change::Listening(self.filter.clone())));
    }

    /// Ends the change listener with an error.
    pub(crate) fn fail(&self, failure: ChangeListenerFailure) {
        self.backlog.push_kept(Err(failure));
    }

    /// Returns the next change, or `None` when the connection is closed.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Change, ChangeListenerFailure>>> {
        self.backlog.poll(cx)
    }
}
