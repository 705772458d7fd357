//! Who hears what a server of the older revisions tells everyone, on one connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use steadfast_model::{Method, SubscriptionFilter};
use steadfast_proto::envelope::OwnedParams;
use tokio::sync::oneshot;

use super::Change;
use super::subscriptions::SubscribedResources;
use crate::error::Error;
use crate::runtime::Backlog;
use crate::runtime::connection::call_result::CallLoss;

/// Those who hear it.
#[derive(Clone)]
pub(crate) struct ChangeListeners {
    hearers: Arc<Mutex<ListenerTable>>,
    pub(crate) subscribed: Arc<SubscribedResources>,
}

#[derive(Default)]
struct ListenerTable {
    listeners: Vec<Weak<Listener>>,
    /// The connection is gone: there is nothing more to hear.
    closed: bool,
}

/// Changes beyond this many, or told in more bytes than these, that nobody has looked at are dropped, the oldest first.
const UNSEEN: usize = 1_024;
const UNSEEN_BYTES: usize = 4 << 20;

pub(crate) struct Listener {
    pub(crate) filter: SubscriptionFilter,
    backlog: Backlog<Result<Change, Failure>>,
    /// It has been said that it listens.
    begun: AtomicBool,
    /// Dropping it takes the subscriptions back.
    _listening: oneshot::Sender<()>,
}

/// Why it cannot be heard.
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Set if it was the way to the server.
    pub(crate) loss: Option<CallLoss>,
}

impl ChangeListeners {
    /// On a connection with room for as many calls.
    pub(crate) fn new(calls: usize) -> Self {
        Self { hearers: Arc::default(), subscribed: Arc::new(SubscribedResources::new(calls)) }
    }

    fn lock(&self) -> MutexGuard<'_, ListenerTable> {
        self.hearers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, listener: &Arc<Listener>) {
        let mut hearers = self.lock();
        hearers.listeners.retain(|known| known.strong_count() > 0);
        hearers.listeners.push(Arc::downgrade(listener));
        if hearers.closed {
            listener.backlog.close();
        }
    }

    /// Whether somebody wants to hear of a resource.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        let hearers = self.lock();
        let mut listeners = hearers.listeners.iter().filter_map(Weak::upgrade);
        listeners.any(|known| known.filter.resource_subscriptions.iter().any(|wanted| wanted == uri))
    }

    /// The server says something.
    pub(crate) fn tell(&self, method: Method, params: &OwnedParams) {
        let Some(change) = Change::read(method, params) else { return };
        let bytes = params.text().len();
        for listener in self.lock().listeners.iter().filter_map(Weak::upgrade) {
            // What changes before it listens is not told.
            if change.is_wanted(&listener.filter) && listener.begun.load(Ordering::SeqCst) {
                listener.backlog.push(Ok(change.clone()), bytes);
            }
        }
    }

    /// There will be nothing more to hear.
    pub(crate) fn close(&self) {
        let mut hearers = self.lock();
        hearers.closed = true;
        hearers.listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener.backlog.close());
    }
}

impl Listener {
    /// One who wants to hear this, and what tells that it does not any more.
    pub(crate) fn new(filter: SubscriptionFilter) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (listening, gone) = oneshot::channel();
        let backlog = Backlog::new(UNSEEN, UNSEEN_BYTES);
        (Arc::new(Self { filter, backlog, begun: AtomicBool::new(false), _listening: listening }), gone)
    }

    /// It listens from here on.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.backlog.push(Ok(Change::Listening(self.filter.clone())), 0);
    }

    /// It cannot listen.
    pub(crate) fn fail(&self, failure: Failure) {
        self.backlog.push(Err(failure), 0);
    }

    /// The next change; `None` when there will be none.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Change, Failure>>> {
        self.backlog.poll(cx)
    }
}
