//! Who hears what a server of the older revisions tells everyone, on one connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use steadfast_model::{Method, SubscriptionFilter};
use steadfast_proto::envelope::OwnedParams;
use tokio::sync::oneshot;

use super::Change;
use crate::client::ending::Loss;
use crate::error::Error;

/// Those who hear it.
#[derive(Clone, Default)]
pub(in crate::client) struct Told(Arc<Mutex<Hearers>>);

#[derive(Default)]
struct Hearers {
    listeners: Vec<Weak<Listener>>,
    /// The connection is gone: there is nothing more to hear.
    closed: bool,
}

/// Changes beyond this many, or told in more bytes than these, that nobody has looked at are dropped, the oldest first.
const UNSEEN: usize = 1_024;
const UNSEEN_BYTES: usize = 4 << 20;

pub(super) struct Listener {
    pub(super) filter: SubscriptionFilter,
    queue: Mutex<Queue>,
    /// Dropping it takes the subscriptions back.
    _listening: oneshot::Sender<()>,
}

/// Why it cannot be heard.
pub(super) struct Failure {
    pub(super) error: Error,
    /// Set if it was the way to the server.
    pub(super) loss: Option<Loss>,
}

#[derive(Default)]
struct Queue {
    /// Each with the bytes that told of it.
    changes: VecDeque<(Result<Change, Failure>, usize)>,
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

    pub(super) fn add(&self, listener: &Arc<Listener>) {
        let mut hearers = self.lock();
        hearers.listeners.retain(|known| known.strong_count() > 0);
        hearers.listeners.push(Arc::downgrade(listener));
        listener.lock().closed = hearers.closed;
    }

    /// Whether somebody wants to hear of a resource.
    pub(super) fn wants(&self, uri: &str) -> bool {
        let hearers = self.lock();
        let mut listeners = hearers.listeners.iter().filter_map(Weak::upgrade);
        listeners.any(|known| known.filter.resource_subscriptions.iter().any(|wanted| wanted == uri))
    }

    /// The server says something.
    pub(in crate::client) fn tell(&self, method: Method, params: &OwnedParams) {
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
    pub(in crate::client) fn close(&self) {
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
    /// One who wants to hear this, and what tells that it does not any more.
    pub(super) fn new(filter: SubscriptionFilter) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (listening, gone) = oneshot::channel();
        (Arc::new(Self { filter, queue: Mutex::default(), _listening: listening }), gone)
    }

    /// It listens from here on.
    pub(super) fn begin(&self) {
        self.lock().begun = true;
        self.push(Ok(Change::Listening(self.filter.clone())), 0);
    }

    /// It cannot listen.
    pub(super) fn fail(&self, failure: Failure) {
        self.push(Err(failure), 0);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, change: Result<Change, Failure>, bytes: usize) {
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

    /// The next change; `None` when there will be none.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Change, Failure>>> {
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
