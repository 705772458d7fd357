//! One live connection. It does not come back: whoever needs another asks the [line](super::line) for it.

use std::sync::Arc;

use steadfast_proto::Moment;
use steadfast_proto::connection::Peer;
use tokio::sync::watch;

use super::changes::Told;
use super::handlers::Answers;
use super::kept::Kept;
use super::opening::{Opened, Opener};
use super::target::Carrier;
use crate::error::{Error, Outcome};
use crate::runtime::{Driver, Ended, Letter, Mailbox, Task, io_handle};
#[cfg(feature = "http-client")]
use crate::transport::http_client::HttpDriver;

/// A connection on which it is known what is spoken. Dropping it closes it.
pub(super) struct Link {
    driven: Driven,
    pub(super) peer: Arc<Peer>,
    pub(super) instructions: Option<String>,
    /// When it was opened.
    pub(super) since: Moment,
}

impl Link {
    pub(super) fn new(driven: Driven, opened: Opened, since: Moment) -> Self {
        Self { driven, peer: Arc::new(opened.peer), instructions: opened.instructions, since }
    }
}

impl std::ops::Deref for Link {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        &self.driven
    }
}

/// A connection whose driver is at work. Dropping it closes it.
pub(super) struct Driven {
    pub(super) mailbox: Arc<Mailbox>,
    /// Who hears what the server tells everyone.
    pub(super) told: Told,
    closed: watch::Receiver<bool>,
    audible: watch::Receiver<bool>,
}

impl Driven {
    /// Puts a driver to work.
    pub(super) fn begin(opener: &Opener, carrier: Carrier) -> Result<Self, Error> {
        let unsent = |error| Error::transport(Outcome::NotSent, error);
        let told = Told::default();
        let kept = Arc::clone(&opener.kept);
        let serving = Answers { handlers: Arc::clone(&opener.handlers), told: told.clone(), kept: Arc::clone(&kept) };
        let (close, closed) = watch::channel(false);
        let close = Closing { closed: close, told: told.clone(), kept: Arc::clone(&kept) };
        let (hello, limits, runtime) = (opener.hello(), opener.limits.clone(), Arc::clone(&opener.runtime));
        let (mailbox, audible, driven): (_, _, Task) = match carrier {
            Carrier::Bytes(transport) => {
                let driver = Driver::new(transport, |_| serving, hello, limits, runtime);
                let (_, audible) = watch::channel(true);
                (Arc::clone(driver.mailbox()), audible, Box::pin(until_closed(driver, close)))
            }
            #[cfg(feature = "http-client")]
            Carrier::Http(target) => {
                let driver = HttpDriver::new(*target, kept, |_| serving, hello, limits, runtime).map_err(unsent)?;
                (Arc::clone(driver.mailbox()), driver.audible(), Box::pin(until_closed(driver, close)))
            }
        };
        // From here on, dropping this closes the connection.
        let begun = Self { mailbox, told, closed, audible };
        if opener.apart {
            drop(io_handle().map_err(unsent)?.spawn(driven));
        } else {
            opener.runtime.spawn(driven);
        }
        Ok(begun)
    }

    /// Tells when it is closed, and nothing of it is left.
    pub(super) fn closed(&self) -> watch::Receiver<bool> {
        self.closed.clone()
    }

    /// Waits until the server is heard whenever it speaks: over HTTP that takes a stream of its own.
    pub(super) async fn is_audible(&self) {
        let mut audible = self.audible.clone();
        // An error means that nothing will be heard any more.
        let _ = audible.wait_for(|audible| *audible).await;
    }

    /// Begins to close it.
    pub(super) fn shut_down(&self) {
        // If it is closed already, so much the better.
        let _ = self.mailbox.post(Letter::ShutDown { at_once: true });
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Waits until a connection is closed.
pub(super) async fn is_closed(mut closed: watch::Receiver<bool>) {
    // An error means that the driver is gone, and with it the connection.
    let _ = closed.wait_for(|closed| *closed).await;
}

/// Drives a connection to its end, and says so.
async fn until_closed(driver: impl Future<Output = Ended>, closing: Closing) {
    driver.await;
    drop(closing);
}

/// Says that the connection is closed, also when its driver is dropped.
struct Closing {
    closed: watch::Sender<bool>,
    told: Told,
    kept: Arc<Kept>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        // If nobody waits for it, nobody is told.
        let _ = self.closed.send(true);
        self.told.close();
        self.kept.note_lost();
    }
}
