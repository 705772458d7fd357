//! Clients: calls to a server, and answers to what it asks.
//!
//! A [`Client`] is one connection. Every call ends in a result or in an [`Error`] whose [`Outcome`] says what is known:
//! never sent, refused, or sent with the outcome unknown (law L10). Dropping a call takes it back and tells the server.

mod call;
mod changes;
mod connect;
mod declared;
mod handlers;
mod methods;
mod pages;
mod questions;
mod rounds;
mod tasks;

use std::sync::Arc;

use steadfast_model::era::Decoration;
use steadfast_model::request::Request;
use steadfast_model::{ClientCapabilities, Revision};
use steadfast_proto::connection::{CallRefused, Outcome as Ending, Peer};

pub use call::{Call, PendingResult};
pub use changes::{Change, Changes};
#[cfg(feature = "http-client")]
pub use connect::ViaHttp;
pub use connect::{Connecting, Era, Target, ViaChild, ViaMemory, ViaTransport, Way};
pub use pages::{Items, Listing};

use crate::error::{Error, Outcome};
use crate::runtime::{CallEnding, Letter, Mailbox, Runtime};
use changes::Told;
use handlers::Handlers;

/// A connection to a server. Cheap to clone; the connection closes when the last clone is dropped.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use serde_json::json;
/// use steadfast::prelude::*;
///
/// #[tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// let server = Server::builder("sums", "1.0.0").tool(add()).build();
/// let client = Client::connect(server).await?;
/// let sum = client.call_tool("add", json!({ "a": 2, "b": 3 })).await?;
/// assert_eq!(sum.content[0].as_text(), Some("5"));
/// # Ok::<_, steadfast::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    mailbox: Arc<Mailbox>,
    peer: Arc<Peer>,
    decoration: Decoration,
    capabilities: ClientCapabilities,
    instructions: Option<String>,
    handlers: Arc<Handlers>,
    told: Told,
    runtime: Arc<dyn Runtime>,
    over_http: bool,
    closed: tokio::sync::watch::Receiver<bool>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // If the connection is closed already, so much the better.
        let _ = self.mailbox.post(Letter::ShutDown { at_once: true });
    }
}

/// Who is there.
impl Client {
    /// Connects to a server: a value with tools, a child process ([`transport::child::Command`]), any transport, or a URL
    /// (feature `http-client`).
    ///
    /// [`transport::child::Command`]: crate::transport::child::Command
    pub fn connect<Via>(target: impl Target<Via>) -> Connecting {
        Connecting::new(target)
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.inner.peer.revision
    }

    /// What the server said of itself.
    pub fn server(&self) -> &Peer {
        &self.inner.peer
    }

    /// How to use the server, for a model.
    pub fn instructions(&self) -> Option<&str> {
        self.inner.instructions.as_deref()
    }
}

/// Calls.
impl Client {
    /// Any request of the protocol.
    pub fn call<R: Request>(&self, params: R::Params) -> Call<R> {
        Call::new(self.clone(), params)
    }

    /// Closes the connection and waits until it is closed. Calls that wait end; a child process is ended.
    pub async fn close(self) {
        // If it is closed already, the wait is over at once.
        let _ = self.inner.mailbox.post(Letter::ShutDown { at_once: true });
        self.closed().await;
    }

    /// Completes when the connection is closed, by whichever side.
    pub async fn closed(&self) {
        let mut closed = self.inner.closed.clone();
        // An error means that the driver is gone, and with it the connection.
        let _ = closed.wait_for(|closed| *closed).await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("server", &self.inner.peer.info)
            .field("revision", &self.revision())
            .finish()
    }
}

/// What a call came to, where nothing but the result will do.
pub(crate) fn result_of<R: Request>(ending: CallEnding) -> Result<R::Result, Error> {
    complete::<R>(answer_of::<R>(ending)?)
}

/// What a call was answered with.
fn answer_of<R: Request>(ending: CallEnding) -> Result<steadfast_model::Outcome<R::Result>, Error> {
    let text = text_of(ending, R::METHOD.name())?;
    steadfast_model::Outcome::from_json(&text).map_err(|error| Error::decode(R::METHOD, error))
}

/// The result, if that is what it is. Results of 2026-07-28 say what kind they are, and a kind that is not known must not be
/// taken for another.
fn complete<R: Request>(answer: steadfast_model::Outcome<R::Result>) -> Result<R::Result, Error> {
    match answer {
        steadfast_model::Outcome::Complete(result) => Ok(result),
        _ => Err(Error::unreadable(R::METHOD, "a result of a kind that this client does not take")),
    }
}

fn text_of(ending: CallEnding, method: &str) -> Result<Box<str>, Error> {
    let known = |sent: bool| if sent { Outcome::Unknown } else { Outcome::NotSent };
    match ending {
        CallEnding::Ended(Ending::Answered(text)) => Ok(text),
        CallEnding::Ended(Ending::Refused(object)) => Err(Error::refused(method, object)),
        CallEnding::Ended(Ending::Unreadable(why)) => Err(Error::unreadable(method, why)),
        CallEnding::Ended(Ending::Cancelled { sent }) => Err(Error::cancelled(known(sent))),
        CallEnding::Ended(Ending::TimedOut { sent }) => Err(Error::timed_out(known(sent))),
        CallEnding::Ended(Ending::Closed { sent }) => Err(Error::closed(known(sent))),
        CallEnding::Ended(Ending::Lost { sent, why }) => Err(Error::transport(known(sent), why)),
        CallEnding::Ended(Ending::EndedByPeer) => Err(Error::cancelled(Outcome::Answered)),
        CallEnding::Refused(CallRefused::TooMany) => Err(Error::limit("too many calls wait for an answer")),
        CallEnding::Refused(CallRefused::NotInRevision) => {
            Err(Error::unsupported(format!("the revision that the peer speaks has no {method} from this side")))
        }
        CallEnding::Refused(CallRefused::MissingCapability(capability)) => {
            Err(Error::unsupported(format!("the peer did not declare {capability:?}, which {method} needs")))
        }
        CallEnding::Refused(_) => Err(Error::closed(Outcome::NotSent)),
    }
}
