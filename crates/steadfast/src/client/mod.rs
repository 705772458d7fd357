//! Clients: calls to a server, and answers to what it asks.
//!
//! ```text
//!   Client --> Line --> Link --> driver --> the server
//!     |          |        one connection, until it is lost
//!     |          +-- opens another, when it is needed
//!     +--> Call --> PendingResult --> Course: the requests that one call takes
//! ```
//!
//! Every call ends in a result or in an [`Error`](crate::Error) whose [`Outcome`](crate::Outcome) says what is known:
//! never sent, refused, or sent with the outcome unknown (law L10). Dropping a call takes it back and tells the server.

pub(crate) mod cache;
mod call;
pub(crate) mod connection;
mod handlers;
mod listing;
mod methods;
pub(crate) mod notifications;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use steadfast_model::request::Request;
use steadfast_model::{ProgressToken, Revision};
use steadfast_proto::connection::Peer;

pub use cache::ResponseCache;
pub use call::Call;
pub use call::canceller::Canceller;
pub use call::outcome::{CallOutcome, UnknownOutcome};
pub use call::pending::PendingResult;
pub use call::progress::{Progress, RunningCall};
pub use connection::connect::Connecting;
pub use connection::opening::Era;
pub use connection::reconnect::Reconnect;
#[cfg(feature = "http-client")]
pub use connection::target::ViaHttp;
#[cfg(feature = "server")]
pub use connection::target::ViaMemory;
pub use connection::target::{Connector, Target, ViaChild, ViaFunction, ViaTransport};
pub use handlers::server_request::ServerRequest;
pub use listing::{Items, Listing};
pub use notifications::changes::{Change, Changes};
pub use notifications::logs::Logs;

pub use crate::validation::form::check as check_form;

use crate::runtime::Runtime;
use cache::{ClientCache, Wire};
use connection::reconnecting::ReconnectingConnection;

/// A client of one server. Cheap to clone; its connection closes when the last clone is dropped.
///
/// A connection that is lost is opened again when it is needed, if the client was [told to](Connecting::reconnect).
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
    connection: Arc<ReconnectingConnection>,
    over_http: bool,
    /// The server is believed what it says of its tools.
    trusts_annotations: bool,
    /// The next token for progress: a call has one on whatever connection it is made.
    next_token: AtomicI64,
}

impl Inner {
    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.connection.opener.runtime
    }

    fn next_token(&self) -> ProgressToken {
        ProgressToken(self.next_token.fetch_add(1, Ordering::Relaxed).into())
    }

    /// What a call goes over, in that revision.
    fn over(&self, revision: Revision) -> Wire {
        Wire { revision, http: self.over_http }
    }

    /// What the client keeps of what the server said.
    fn cache(&self) -> &Arc<ClientCache> {
        &self.connection.opener.cache
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What is being closed is closed when its tasks are cancelled.
        if !self.connection.is_closing() {
            self.connection.close();
        }
    }
}

/// Who is there.
impl Client {
    /// Connects to a server: a value with tools, a child process ([`transport::child::Command`]), any transport, a function
    /// that opens one, or a URL (feature `http-client`).
    ///
    /// [`transport::child::Command`]: crate::transport::child::Command
    pub fn connect<Via>(target: impl Target<Via>) -> Connecting {
        Connecting::new(target)
    }

    /// The revision that is spoken, or was last.
    pub fn revision(&self) -> Revision {
        self.inner.connection.live().peer.revision
    }

    /// What the server said of itself when it was last connected to.
    pub fn server(&self) -> Arc<Peer> {
        Arc::clone(&self.inner.connection.live().peer)
    }

    /// How to use the server, for a model.
    pub fn instructions(&self) -> Option<String> {
        self.inner.connection.live().instructions.clone()
    }
}

/// Calls.
impl Client {
    /// Any request of the protocol.
    pub fn call<R: Request>(&self, params: R::Params) -> Call<R> {
        Call::new(self.clone(), params)
    }

    /// Closes the client for good, and waits until its connection is closed and a child process is gone. Calls that wait end,
    /// and nothing is opened again. Tasks that are followed are cancelled first; the server has two seconds to hear of that.
    pub async fn close(self) {
        tasks::cancel::cancel_all(&self, self.inner.connection.begin_close());
        self.inner.connection.wait_until_over().await;
    }

    /// Completes when the connection that there is now is closed, by whichever side. A client that comes back opens another
    /// when it is needed.
    pub async fn closed(&self) {
        let closed = self.inner.connection.live().closed();
        connection::live::wait_until_closed(closed).await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Client")
            .field("server", &self.server().info)
            .field("revision", &self.revision())
            .finish()
    }
}
