//! Handlers for vendor notifications of the peer.
//!
//! The notification handlers of one connection run one at a time, in the order in which the notifications arrived, on
//! the worker threads. A slow notification handler does not block the driver: if too many notifications wait for their
//! handlers, the oldest are dropped. When the connection ends, the running handler is dropped, and notifications that
//! still wait are not handled (law L5).

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use steadfast_model::notification::Notification;
use steadfast_model::{Implementation, Method, Principal, Revision, VendorMethod};
use steadfast_proto::connection::PeerInfo;
use steadfast_proto::envelope::OwnedParams;

use super::mailbox::DriverMailbox;
use crate::runtime::Runtime;
use crate::runtime::bounded_queue::LossyChannel;
use crate::runtime::handler::async_handler::AsyncHandlerFn;
use crate::runtime::threads::workers::poll_as_handler;

/// The maximum number of vendor notifications of one connection that wait for their handlers.
const MAX_WAITING: usize = 1_024;

/// The maximum size, in bytes, of the parameters of all vendor notifications of one connection that wait for their
/// handlers.
const MAX_WAITING_BYTES: usize = 4 << 20;

/// The context of a vendor notification, for its handler: information about the peer that sent the notification.
#[derive(Clone, Debug)]
pub struct VendorNotificationContext {
    peer: Option<Arc<PeerInfo>>,
    principal: Option<Principal>,
}

impl VendorNotificationContext {
    /// The name and version of the peer, if it has sent them.
    pub fn info(&self) -> Option<&Implementation> {
        self.peer.as_ref().and_then(|peer| peer.info.as_ref())
    }

    /// The protocol revision of the connection.
    pub fn revision(&self) -> Revision {
        self.peer.as_ref().map_or(Revision::LATEST, |peer| peer.revision)
    }

    /// The authenticated sender of the notification, if the transport knows it. On a client, the authenticated sender
    /// of a notification is always `None`.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }
}

/// A notification of the peer that belongs to no subscription.
pub(crate) struct PeerNotification<'a> {
    pub(crate) method: Method,
    pub(crate) params: OwnedParams,
    pub(crate) peer: Option<&'a Arc<PeerInfo>>,
    pub(crate) mailbox: &'a Arc<DriverMailbox>,
    pub(crate) runtime: &'a Arc<dyn Runtime>,
}

impl PeerNotification<'_> {
    fn context(&self) -> VendorNotificationContext {
        VendorNotificationContext { peer: self.peer.cloned(), principal: self.mailbox.principal() }
    }
}

type NotificationHandlerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

type VendorNotificationHandler =
    Arc<dyn Fn(&str, VendorNotificationContext) -> Result<NotificationHandlerFuture, serde_json::Error> + Send + Sync>;

/// The handlers of a server or client for vendor notifications, by method.
#[derive(Clone, Default)]
pub(crate) struct VendorNotificationHandlers {
    by_method: BTreeMap<VendorMethod, VendorNotificationHandler>,
}

impl VendorNotificationHandlers {
    pub(crate) fn add<N: Notification>(
        &mut self,
        handler: impl AsyncHandlerFn<N::Params, VendorNotificationContext, ()>,
    ) {
        let Method::Vendor(method) = N::METHOD else { return };
        let handler: VendorNotificationHandler =
            Arc::new(move |params, ctx| Ok(Box::pin(handler(serde_json::from_str(params)?, ctx))));
        self.by_method.insert(method, handler);
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = VendorMethod> {
        self.by_method.keys().copied()
    }

    /// Handles one notification. A notification handler runs like a request handler: its panics are caught, and if it
    /// blocks its worker thread, another worker takes over timers and I/O.
    async fn handle(&self, runtime: &dyn Runtime, method: VendorMethod, params: &str, ctx: VendorNotificationContext) {
        let Some(handler) = self.by_method.get(&method) else { return };
        let handled = poll_as_handler(runtime, async {
            match handler(params, ctx) {
                Ok(running) => running.await,
                Err(error) => {
                    let method = method.name();
                    tracing::warn!(method, %error, "ignored a notification: its parameters could not be decoded");
                }
            }
        });
        if handled.await.is_none() {
            tracing::error!(method = method.name(), "the handler of a notification panicked");
        }
    }
}

impl std::fmt::Debug for VendorNotificationHandlers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.methods().map(VendorMethod::name)).finish()
    }
}

type VendorNotificationChannel = LossyChannel<(VendorMethod, OwnedParams, VendorNotificationContext)>;

/// The vendor notifications received on one connection that wait for their handlers. Dropping the queue ends the task that runs
/// the handlers.
#[derive(Default)]
pub(crate) struct VendorNotificationQueue {
    waiting: Option<Arc<VendorNotificationChannel>>,
}

impl VendorNotificationQueue {
    /// Queues a vendor notification for its handler. The first notification of a connection starts the task that runs
    /// the handlers.
    pub(crate) fn push(&mut self, handlers: &VendorNotificationHandlers, notification: PeerNotification<'_>) {
        let Method::Vendor(method) = notification.method else { return };
        let context = notification.context();
        let waiting = self.waiting.get_or_insert_with(|| {
            let waiting = Arc::new(VendorNotificationChannel::new(MAX_WAITING, MAX_WAITING_BYTES));
            let runtime = Arc::clone(notification.runtime);
            notification.runtime.spawn(Box::pin(run(runtime, Arc::clone(&waiting), handlers.clone())));
            waiting
        });
        let bytes = notification.params.text().len();
        waiting.push((method, notification.params, context), bytes);
    }
}

impl VendorNotificationQueue {
    /// Called when the connection has ended: the running notification handler is dropped, and notifications that wait
    /// are not handled.
    pub(crate) fn stop(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.stop();
        }
    }
}

impl Drop for VendorNotificationQueue {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs the notification handlers of one connection, one after the other, until the queue is stopped. Yields between
/// two handlers: a peer that sends many notifications must not occupy a worker thread.
async fn run(runtime: Arc<dyn Runtime>, waiting: Arc<VendorNotificationChannel>, handlers: VendorNotificationHandlers) {
    while let Some((method, params, sender)) = std::future::poll_fn(|cx| waiting.poll(cx)).await {
        let mut running = pin!(handlers.handle(&*runtime, method, params.text(), sender));
        std::future::poll_fn(|cx| {
            if waiting.poll_stopped(cx) {
                return Poll::Ready(());
            }
            running.as_mut().poll(cx)
        })
        .await;
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}
