//! Handlers for notifications of a vendor.
//!
//! The handlers of one connection run one at a time, in the order in which the notifications arrived, on the workers. They may
//! take their time: the driver does not wait for them, and if too many notifications wait, the oldest are dropped. When the
//! connection ends, the handler that runs is dropped, and what waits is not handled (law L5).

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use steadfast_model::notification::Notification;
use steadfast_model::{Implementation, Method, Principal, Revision, VendorMethod};
use steadfast_proto::connection::Peer;
use steadfast_proto::envelope::OwnedParams;

use super::mailbox::Mailbox;
use crate::runtime::Runtime;
use crate::runtime::bounded_queue::LossyChannel;
use crate::runtime::handler::catch_panic::{call_catching_panics, drop_catching_panics, poll_catching_panics};

/// How many notifications of one connection wait for their handlers.
const MAX_WAITING: usize = 1_024;

/// How many bytes of parameters these may have.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// The side that sent a notification of a vendor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotificationSender {
    /// Its name and version, if it has sent them.
    pub info: Option<Implementation>,
    /// The revision of the connection.
    pub revision: Revision,
    /// The authenticated principal, if the transport knows one. Always `None` on a client.
    pub principal: Option<Principal>,
}

/// A notification of the peer that belongs to no subscription.
pub(crate) struct PeerNotification<'a> {
    pub(crate) method: Method,
    pub(crate) params: OwnedParams,
    pub(crate) peer: Option<&'a Arc<Peer>>,
    pub(crate) mailbox: &'a Arc<Mailbox>,
    pub(crate) runtime: &'a Arc<dyn Runtime>,
}

impl PeerNotification<'_> {
    fn sender(&self) -> NotificationSender {
        NotificationSender {
            info: self.peer.and_then(|peer| peer.info.clone()),
            revision: self.peer.map_or(Revision::LATEST, |peer| peer.revision),
            principal: self.mailbox.principal(),
        }
    }
}

type RunningHandler = Pin<Box<dyn Future<Output = ()> + Send>>;

type Handler = Arc<dyn Fn(&str, NotificationSender) -> Result<RunningHandler, serde_json::Error> + Send + Sync>;

/// The handlers of a server or client, by method.
#[derive(Clone, Default)]
pub(crate) struct NotificationHandlers {
    by_method: BTreeMap<VendorMethod, Handler>,
}

impl NotificationHandlers {
    pub(crate) fn add<N, F, A>(&mut self, handler: F)
    where
        N: Notification,
        F: Fn(N::Params, NotificationSender) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let Method::Vendor(method) = N::METHOD else { return };
        let handler: Handler =
            Arc::new(move |params, sender| Ok(Box::pin(handler(serde_json::from_str(params)?, sender))));
        self.by_method.insert(method, handler);
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = VendorMethod> {
        self.by_method.keys().copied()
    }

    /// The future of one notification. It catches panics.
    pub(crate) async fn handle(&self, method: VendorMethod, params: &str, sender: NotificationSender) {
        let Some(handler) = self.by_method.get(&method) else { return };
        let mut running = match call_catching_panics(|| handler(params, sender)) {
            Ok(Ok(running)) => running,
            Ok(Err(error)) => {
                return tracing::warn!(method = method.name(), %error, "ignored a notification: its parameters could not be decoded");
            }
            Err(_) => return tracing::error!(method = method.name(), "the handler of a notification panicked"),
        };
        let panicked = std::future::poll_fn(|cx| match poll_catching_panics(running.as_mut(), cx) {
            Ok(Poll::Ready(())) => Poll::Ready(false),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(true),
        })
        .await;
        if panicked {
            tracing::error!(method = method.name(), "the handler of a notification panicked");
        }
        drop_catching_panics(running);
    }
}

impl std::fmt::Debug for NotificationHandlers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.methods().map(VendorMethod::name)).finish()
    }
}

type Waiting = LossyChannel<(VendorMethod, OwnedParams, NotificationSender)>;

/// The notifications of one connection that wait for their handlers. Dropping it ends the task that runs them.
#[derive(Default)]
pub(crate) struct IncomingNotificationQueue {
    waiting: Option<Arc<Waiting>>,
}

impl IncomingNotificationQueue {
    /// Queues a notification. The first one starts the task that runs the handlers.
    pub(crate) fn push(&mut self, handlers: &NotificationHandlers, notification: PeerNotification<'_>) {
        let Method::Vendor(method) = notification.method else { return };
        let sender = notification.sender();
        let waiting = self.waiting.get_or_insert_with(|| {
            let waiting = Arc::new(Waiting::new(MAX_WAITING, MAX_WAITING_BYTES));
            notification.runtime.spawn(Box::pin(run(Arc::clone(&waiting), handlers.clone())));
            waiting
        });
        let bytes = notification.params.text().len();
        waiting.push((method, notification.params, sender), bytes);
    }
}

impl Drop for IncomingNotificationQueue {
    fn drop(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.stop();
        }
    }
}

/// Runs the handlers of one connection, one after the other, until the queue is stopped.
async fn run(waiting: Arc<Waiting>, handlers: NotificationHandlers) {
    while let Some((method, params, sender)) = std::future::poll_fn(|cx| waiting.poll(cx)).await {
        let mut running = pin!(handlers.handle(method, params.text(), sender));
        std::future::poll_fn(|cx| {
            if waiting.poll_stopped(cx) {
                return Poll::Ready(());
            }
            running.as_mut().poll(cx)
        })
        .await;
    }
}
