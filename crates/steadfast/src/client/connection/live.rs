//! One live connection. It does not come back: whoever needs another asks the [line](super::reconnecting) for it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::connection::Peer;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::opening::{Negotiation, Opener};
use super::target::OpenTransport;
use crate::client::cache::ClientCache;
use crate::client::handlers::ClientService;
use crate::client::notifications::changes::ChangeListeners;
use crate::runtime::threads::driver_migration;
use crate::runtime::timeout::timeout_at;
use crate::runtime::{Driver, DriverCommand, ExitReason, Mailbox, Runtime, Task};
#[cfg(feature = "http-client")]
use crate::transport::http::client::HttpDriver;

/// How long somebody whose call was lost with the server waits to learn how it ended. A process that dies is reaped at once.
const MOURNING: Duration = Duration::from_secs(1);

/// A connection on which it is known what is spoken. Dropping it closes it.
pub(crate) struct LiveConnection {
    driven: DrivenConnection,
    pub(crate) peer: Arc<Peer>,
    pub(crate) instructions: Option<String>,
    /// When it was opened.
    pub(crate) since: Moment,
}

impl LiveConnection {
    pub(crate) fn new(driven: DrivenConnection, opened: Negotiation, since: Moment) -> Self {
        Self { driven, peer: Arc::new(opened.peer), instructions: opened.instructions, since }
    }
}

impl std::ops::Deref for LiveConnection {
    type Target = DrivenConnection;

    fn deref(&self) -> &DrivenConnection {
        &self.driven
    }
}

/// A connection whose driver is at work. Dropping it closes it.
pub(crate) struct DrivenConnection {
    pub(crate) mailbox: Arc<Mailbox>,
    /// Who hears what the server tells everyone.
    pub(crate) told: ChangeListeners,
    closed: watch::Receiver<bool>,
    refuses_calls: watch::Receiver<bool>,
    audible: watch::Receiver<bool>,
    exit_reason: watch::Receiver<ExitReason>,
}

impl DrivenConnection {
    /// Puts a driver to work: on that runtime, or on the workers.
    #[cfg_attr(not(feature = "http-client"), allow(clippy::unnecessary_wraps, reason = "only HTTP may fail to begin"))]
    pub(crate) fn begin(opener: &Opener, carrier: OpenTransport, apart: Option<&Handle>) -> io::Result<Self> {
        let told = ChangeListeners::new(opener.limits.calls);
        let cache = Arc::clone(&opener.cache);
        let serving = ClientService {
            handlers: Arc::clone(&opener.handlers),
            told: told.clone(),
            cache: Arc::clone(&cache),
            decoration: opener.decoration.clone(),
            followed: Arc::clone(&opener.followed),
        };
        let (close, closed) = watch::channel(false);
        let close = ClosedSignal { closed: close, told: told.clone(), cache: Arc::clone(&cache) };
        let (hello, limits, runtime) = (opener.hello(), opener.limits.clone(), Arc::clone(&opener.runtime));
        let (mailbox, refuses_calls, audible, exit_reason, driven): (_, _, _, _, Task) = match carrier {
            OpenTransport::Bytes(transport) => {
                let mut driver = Driver::new(transport, |_| serving, hello, limits, runtime);
                let (_, audible) = watch::channel(true);
                let refuses_calls = driver.refuses_calls();
                let exit_reason = driver.exit_reason();
                let mailbox = Arc::clone(driver.mailbox());
                let driven: Task = match opener.runtime.as_tokio().filter(|_| apart.is_some()) {
                    Some(workers) => {
                        let (apart, among) =
                            driver_migration::tasks(driver, &mailbox, &opener.runtime, workers.handle());
                        opener.runtime.spawn(Box::pin(among));
                        Box::pin(drive(apart, close))
                    }
                    None => Box::pin(drive(driver, close)),
                };
                (mailbox, refuses_calls, audible, exit_reason, driven)
            }
            #[cfg(feature = "http-client")]
            OpenTransport::Http(target) => {
                let mut driver = HttpDriver::new(*target, cache, |_| serving, hello, limits, runtime)?;
                let (_, exit_reason) = watch::channel(ExitReason::Known(None));
                let (mailbox, refuses_calls, audible) =
                    (Arc::clone(driver.mailbox()), driver.refuses_calls(), driver.audible());
                (mailbox, refuses_calls, audible, exit_reason, Box::pin(drive(driver, close)))
            }
        };
        // From here on, dropping this closes the connection.
        let begun = Self { mailbox, told, closed, refuses_calls, audible, exit_reason };
        match apart {
            Some(handle) => drop(handle.spawn(driven)),
            None => opener.runtime.spawn(driven),
        }
        Ok(begun)
    }

    /// Tells when it is closed, and nothing of it is left.
    pub(crate) fn closed(&self) -> watch::Receiver<bool> {
        self.closed.clone()
    }

    /// Tells when it takes no more calls: either side may be slow to let go of it then.
    pub(crate) fn refuses_calls(&self) -> watch::Receiver<bool> {
        self.refuses_calls.clone()
    }

    /// Tells when the server is heard whenever it speaks: over HTTP that takes a stream of its own.
    pub(crate) fn audible(&self) -> watch::Receiver<bool> {
        self.audible.clone()
    }

    /// How the server ended, if that is known, or will be before long.
    pub(crate) async fn exit_reason(&self, runtime: &dyn Runtime) -> Option<Arc<str>> {
        let mut exit_reason = self.exit_reason.clone();
        let written = exit_reason.wait_for(|exit_reason| matches!(exit_reason, ExitReason::Known(_)));
        // An error means that nobody is left to write one.
        match timeout_at(runtime, Some(runtime.now() + MOURNING), written).await?.ok()?.clone() {
            ExitReason::Known(exit_reason) => exit_reason,
            ExitReason::Pending => None,
        }
    }

    /// Begins to close it.
    pub(crate) fn shut_down(&self) {
        // If it is closed already, so much the better.
        let _ = self.mailbox.post(DriverCommand::ShutDown { at_once: true });
    }
}

impl Drop for DrivenConnection {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Waits until a connection is closed.
pub(crate) async fn wait_until_closed(mut closed: watch::Receiver<bool>) {
    // An error means that the driver is gone, and with it the connection.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// Waits until a connection takes no more calls.
pub(crate) async fn wait_until_calls_are_refused(mut refuses_calls: watch::Receiver<bool>) {
    // An error means that the driver is gone, and with it the connection.
    let _ = refuses_calls.wait_for(|refuses_calls| *refuses_calls).await;
}

/// Waits until the server of a connection is heard.
pub(crate) async fn wait_until_audible(mut audible: watch::Receiver<bool>) {
    // An error means that nothing will be heard any more.
    let _ = audible.wait_for(|audible| *audible).await;
}

/// Drives a connection to its end, and says so.
async fn drive(driver: impl Future, closing: ClosedSignal) {
    driver.await;
    drop(closing);
}

/// Says that the connection is closed, also when its driver is dropped.
struct ClosedSignal {
    closed: watch::Sender<bool>,
    told: ChangeListeners,
    cache: Arc<ClientCache>,
}

impl Drop for ClosedSignal {
    fn drop(&mut self) {
        // If nobody waits for it, nobody is told.
        let _ = self.closed.send(true);
        self.told.close();
        self.cache.note_lost();
    }
}
