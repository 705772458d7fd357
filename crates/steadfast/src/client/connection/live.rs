//! One connection of a client, from when it is opened until it is closed. [`reconnecting`](super::reconnecting)
//! replaces a connection that is lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::connection::PeerInfo;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::opening::{ClientConnectionOpener, NegotiationResult};
use super::target::OpenTransport;
use crate::client::cache::ClientCache;
use crate::client::dispatch::{ClientOutboundRequestSender, ClientRequestPipeline};
use crate::client::handlers::ClientInboundDispatcher;
use crate::client::notifications::changes::ClientChangeListeners;
use crate::runtime::connection::notification_handlers::VendorNotificationQueue;
use crate::runtime::threads::driver_migration;
use crate::runtime::timeout::timeout_at;
use crate::runtime::{ConnectionDriver, DriverCommand, DriverMailbox, PeerExitReason, Runtime, RuntimeTask};
#[cfg(feature = "http-client")]
use crate::transport::http::client::HttpClientDriver;

/// How long to wait for the exit reason of a server after the connection is lost. A process that exits is reaped at once.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection of a client whose revision is negotiated. Dropping a [`ClientConnection`] closes the connection.
pub(crate) struct ClientConnection {
    driven: ClientDriverHandle,
    /// Sends the requests of the client over the connection.
    pub(crate) sender: ClientOutboundRequestSender,
    pub(crate) peer: Arc<PeerInfo>,
    pub(crate) instructions: Option<String>,
    pub(crate) opened_at: Moment,
}

impl ClientConnection {
    pub(crate) fn new(
        driven: ClientDriverHandle,
        dispatch: &Arc<ClientRequestPipeline>,
        negotiation: NegotiationResult,
        opened_at: Moment,
    ) -> Self {
        let NegotiationResult { peer, instructions } = negotiation;
        let sender = ClientOutboundRequestSender::new(dispatch, &driven.mailbox, peer.revision);
        Self { driven, sender, peer: Arc::new(peer), instructions, opened_at }
    }
}

impl std::ops::Deref for ClientConnection {
    type Target = ClientDriverHandle;

    fn deref(&self) -> &ClientDriverHandle {
        &self.driven
    }
}

/// A connection of a client whose driver runs. Dropping a [`ClientDriverHandle`] closes the connection.
pub(crate) struct ClientDriverHandle {
    pub(crate) mailbox: Arc<DriverMailbox>,
    /// The client's listeners for change notifications that the server sends to every client, without a subscription.
    pub(crate) change_listeners: ClientChangeListeners,
    closed: watch::Receiver<bool>,
    refuses_calls: watch::Receiver<bool>,
    receives_notifications: watch::Receiver<bool>,
    exit_reason: watch::Receiver<PeerExitReason>,
}

impl ClientDriverHandle {
    /// Spawns the driver of the connection on `io_handle` or, without such a handle, on the client's runtime.
    #[cfg_attr(
        not(feature = "http-client"),
        allow(clippy::unnecessary_wraps, reason = "only the driver of an HTTP connection can fail to start")
    )]
    pub(crate) fn spawn(
        opener: &ClientConnectionOpener,
        transport: OpenTransport,
        io_handle: Option<&Handle>,
    ) -> io::Result<Self> {
        let change_listeners = ClientChangeListeners::new(opener.limits.calls);
        let cache = Arc::clone(&opener.cache);
        let service = ClientInboundDispatcher {
            handlers: Arc::clone(&opener.handlers),
            change_listeners: change_listeners.clone(),
            cache: Arc::clone(&cache),
            dispatch: Arc::clone(&opener.dispatch),
            task_registry: Arc::clone(&opener.task_registry),
            notification_queue: VendorNotificationQueue::default(),
        };
        let (sender, closed) = watch::channel(false);
        let signal = ConnectionCloseNotifier {
            closed: sender,
            change_listeners: change_listeners.clone(),
            cache: Arc::clone(&cache),
        };
        let (hello, limits, runtime) = (opener.hello(), opener.limits.clone(), Arc::clone(&opener.runtime));
        let (mailbox, refuses_calls, receives_notifications, exit_reason, task): (_, _, _, _, RuntimeTask) =
            match transport {
                OpenTransport::Bytes(transport) => {
                    let mut driver = ConnectionDriver::new(transport, |_| service, hello, limits, runtime);
                    let (_, receives_notifications) = watch::channel(true);
                    let refuses_calls = driver.refuses_calls();
                    let exit_reason = driver.exit_reason();
                    let mailbox = Arc::clone(driver.mailbox());
                    let task: RuntimeTask = match opener.runtime.as_tokio().filter(|_| io_handle.is_some()) {
                        Some(workers) => {
                            let (io_loop_task, worker_task) =
                                driver_migration::tasks(driver, &mailbox, &opener.runtime, workers.handle());
                            opener.runtime.spawn(Box::pin(worker_task));
                            Box::pin(drive(io_loop_task, signal))
                        }
                        None => Box::pin(drive(driver, signal)),
                    };
                    (mailbox, refuses_calls, receives_notifications, exit_reason, task)
                }
                #[cfg(feature = "http-client")]
                OpenTransport::Http(target) => {
                    let mut driver = HttpClientDriver::new(*target, cache, |_| service, hello, limits, runtime)?;
                    let (_, exit_reason) = watch::channel(PeerExitReason::Known(None));
                    let (mailbox, refuses_calls, receives_notifications) =
                        (Arc::clone(driver.mailbox()), driver.refuses_calls(), driver.receives_notifications());
                    (mailbox, refuses_calls, receives_notifications, exit_reason, Box::pin(drive(driver, signal)))
                }
            };
        // From here on, dropping `driven` closes the connection.
        let driven = Self { mailbox, change_listeners, closed, refuses_calls, receives_notifications, exit_reason };
        match io_handle {
            Some(handle) => drop(handle.spawn(task)),
            // It polls HTTP requests, which need a reactor, and runs no code of the program.
            None if opener.connector.is_http() => opener.runtime.spawn_io(task),
            None => opener.runtime.spawn(task),
        }
        Ok(driven)
    }

    /// Returns a receiver whose value is true when the connection is closed and its resources are released.
    pub(crate) fn closed(&self) -> watch::Receiver<bool> {
        self.closed.clone()
    }

    /// Returns a receiver whose value is true when the connection takes no more calls. A connection that takes no more
    /// calls may be closed only a while later.
    pub(crate) fn refuses_calls(&self) -> watch::Receiver<bool> {
        self.refuses_calls.clone()
    }

    /// Returns a receiver whose value is true when the client receives notifications at any time: over HTTP, when the
    /// stream for them is open.
    pub(crate) fn receives_notifications(&self) -> watch::Receiver<bool> {
        self.receives_notifications.clone()
    }

    /// Returns why the server exited, if the reason is known within a second.
    pub(crate) async fn exit_reason(&self, runtime: &dyn Runtime) -> Option<Arc<str>> {
        let mut exit_reason = self.exit_reason.clone();
        let written = exit_reason.wait_for(|exit_reason| matches!(exit_reason, PeerExitReason::Known(_)));
        // An error means that the driver has ended without an exit reason.
        match timeout_at(runtime, Some(runtime.now() + EXIT_REASON_TIMEOUT), written).await?.ok()?.clone() {
            PeerExitReason::Known(exit_reason) => exit_reason,
            PeerExitReason::Pending => None,
        }
    }

    /// Begins to close the client's connection, and does not wait until the connection is closed.
    pub(crate) fn shut_down(&self) {
        // An error means that it is closed already.
        let _ = self.mailbox.post(DriverCommand::ShutDown { at_once: true });
    }
}

impl Drop for ClientDriverHandle {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Waits until a connection is closed.
pub(crate) async fn wait_until_closed(mut closed: watch::Receiver<bool>) {
    // An error means that the driver was dropped, and with it the connection.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// Waits until a connection takes no more calls.
pub(crate) async fn wait_until_calls_are_refused(mut refuses_calls: watch::Receiver<bool>) {
    // An error means that the driver was dropped, and with it the connection.
    let _ = refuses_calls.wait_for(|refuses_calls| *refuses_calls).await;
}

/// Waits until the client's connection can receive notifications from the server.
pub(crate) async fn wait_until_notifications_arrive(mut receives_notifications: watch::Receiver<bool>) {
    // An error means that the driver was dropped, and with it the connection.
    let _ = receives_notifications.wait_for(|receives| *receives).await;
}

/// Runs the driver until the connection is closed.
async fn drive(driver: impl Future, signal: ConnectionCloseNotifier) {
    driver.await;
    drop(signal);
}

/// A guard that is dropped when the connection is closed or its driver is dropped: tells the cache, the change
/// listeners and everything that waits for the close.
struct ConnectionCloseNotifier {
    closed: watch::Sender<bool>,
    change_listeners: ClientChangeListeners,
    cache: Arc<ClientCache>,
}

impl Drop for ConnectionCloseNotifier {
    fn drop(&mut self) {
        // An error means that there are no receivers.
        let _ = self.closed.send(true);
        self.change_listeners.close();
        self.cache.handle_disconnect();
    }
}
