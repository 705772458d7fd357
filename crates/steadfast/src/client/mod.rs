//! Clients: calls to a server, and handlers for its requests.
//!
//! ```text
//!   Client --> ReconnectingConnection --> ClientConnection --> driver --> server
//!     |          |                          one connection, until it is lost
//!     |          +-- replaces a lost connection when a call needs one
//!     +--> Call --> CallResultFuture --> CallFlow: the requests of one call
//! ```
//!
//! | folder | contents |
//! |---|---|
//! | `dispatch` | the path of every request: layers, encoding |
//! | `call` | one call from start to outcome: states, retries, rounds, progress, cancellation |
//! | `tasks` | calls that become tasks: polling and cancelling them |
//! | `connection` | targets, opening, negotiation, reconnecting |
//! | `cache` | cached responses and listed tools |
//! | `notifications` | streams of changes and log messages |
//! | `handlers` | the client's handlers for roots, sampling and elicitation |
//!
//! Every call ends with a result or with an [`Error`] whose [`Outcome`] says what is known of the call: not sent,
//! refused, or sent with an unknown outcome (law L10). Dropping a call cancels it and notifies the server.

pub(crate) mod cache;
mod call;
pub(crate) mod connection;
mod dispatch;
mod handlers;
mod listing;
mod methods;
pub(crate) mod notifications;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use steadfast_model::notification::Notification;
use steadfast_model::request::Request;
use steadfast_model::wire::{self, PerMessageMembers};
use steadfast_model::{Method, ProgressToken, Revision};
use steadfast_proto::connection::PeerInfo;

pub use crate::runtime::connection::notification_handlers::VendorNotificationContext;
pub use crate::runtime::handler::async_handler::AsyncHandlerFn;
pub use cache::ResponseCache;
pub use call::Call;
pub use call::canceller::Canceller;
pub use call::outcome::{CallOutcome, UnknownOutcome};
pub use call::pending::CallResultFuture;
pub use call::progress::{CallHandle, ProgressStream};
pub use connection::connect::ConnectBuilder;
pub use connection::opening::NegotiationMode;
pub use connection::reconnect::ReconnectPolicy;
pub use connection::target::{ConnectTarget, TransportConnector};
pub use handlers::ClientContext;
pub use listing::{ItemStream, ListRequest};
pub use notifications::changes::{Change, ChangeStream};
pub use notifications::logs::LogStream;

pub use handlers::capabilities::complete_form;

use crate::error::{Error, Outcome};
use crate::runtime::Runtime;
use cache::{ClientCache, RevisionAndTransport};
use connection::reconnecting::ReconnectingConnection;

/// An MCP client that is connected to one server. A client is cheap to clone; its connection closes when the last
/// clone is dropped.
///
/// If [reconnecting](ConnectBuilder::reconnect) is enabled, the client replaces a lost connection when a call needs one.
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
    inner: Arc<ClientInner>,
}

/// The state that all clones of a [`Client`] share. Dropping the state that the clones share closes the connection of
/// the client.
struct ClientInner {
    connection: Arc<ReconnectingConnection>,
    over_http: bool,
    /// Whether lost calls of tools with the read-only or the idempotent hint may be sent again.
    trusts_annotations: bool,
    /// The progress token of the client's next call that requests progress. Progress tokens are unique over all
    /// connections of the client, because a retried call keeps its token.
    next_token: AtomicI64,
}

impl ClientInner {
    fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.connection.opener.runtime
    }

    fn next_token(&self) -> ProgressToken {
        self.next_token.fetch_add(1, Ordering::Relaxed).into()
    }

    fn wire_format(&self, revision: Revision) -> RevisionAndTransport {
        RevisionAndTransport { revision, over_http: self.over_http }
    }

    fn cache(&self) -> &Arc<ClientCache> {
        &self.connection.opener.cache
    }
}

impl Drop for ClientInner {
    fn drop(&mut self) {
        // A client that is being closed shuts its connection down when its tasks are cancelled.
        if !self.connection.is_closing() {
            self.connection.close();
        }
    }
}

/// Methods to connect, and to get information about the server that the client is connected to.
impl Client {
    /// Connects to a server: a `Server` in this process, a child process ([`transport::child::Command`]), a transport,
    /// a function that opens a transport, or a URL (feature `http-client`).
    ///
    /// [`transport::child::Command`]: crate::transport::child::Command
    pub fn connect<Via>(target: impl ConnectTarget<Via>) -> ConnectBuilder {
        ConnectBuilder::new(target)
    }

    /// The protocol revision of the current or last connection.
    pub fn revision(&self) -> Revision {
        self.inner.connection.live().peer.revision
    }

    /// The name, version and capabilities of the server, as of the last time that the client connected.
    pub fn server(&self) -> Arc<PeerInfo> {
        Arc::clone(&self.inner.connection.live().peer)
    }

    /// The server's instructions for a model.
    pub fn instructions(&self) -> Option<String> {
        self.inner.connection.live().instructions.clone()
    }
}

/// Methods to send calls and notifications, and to close the client.
impl Client {
    /// Calls any method of the protocol, or a vendor method that is not in the specification: see
    /// [`request`](crate::model::request).
    pub fn call<R: Request>(&self, params: R::Params) -> Call<R> {
        Call::new(self.clone(), params)
    }

    /// Sends the server a vendor notification, which is not in the specification: see
    /// [`notification`](crate::model::notification). The notification is sent on the current connection; the caller
    /// does not wait until it is sent. Over HTTP each notification is an HTTP request of its own, so two notifications
    /// may arrive in another order.
    ///
    /// # Errors
    ///
    /// A notification is refused if its parameters are not a JSON object, if the connection is closed, or if more
    /// than a megabyte of notifications waits to be sent. Over HTTP every notification is refused since 2026-07-28:
    /// the specification does not say how a client sends notifications there. If `notify` returns no error, it is
    /// still not known whether the server acts on the notification. A notification is dropped if the connection is
    /// lost, or if the server reads so slowly that [`Limits::outbox_bytes`](crate::Limits::outbox_bytes) wait to be
    /// written.
    pub fn notify<N: Notification>(&self, params: &N::Params) -> Result<(), Error> {
        const {
            assert!(
                N::METHOD.is_vendor_notification(),
                "the method is in the specification: the client sends this notification itself"
            );
        }
        let Method::Vendor(method) = N::METHOD else { return Ok(()) };
        let live = self.inner.connection.live();
        if self.inner.over_http && live.peer.revision.is_stateless() {
            return Err(Error::unsupported("clients send no notifications over HTTP since 2026-07-28"));
        }
        let params = wire::notification_params::<N>(live.peer.revision, params, &PerMessageMembers::none())
            .map_err(Error::encode)?;
        if live.mailbox.notify_vendor(method, params) {
            Ok(())
        } else {
            Err(Error::closed(Outcome::NotSent)
                .with_message("the connection is closed, or too many notifications wait to be sent"))
        }
    }

    /// Closes the client, and waits until its connection is closed and a child process has exited. The pending calls of
    /// a closed client end with an error, and the client does not reconnect. The MCP tasks of pending calls are
    /// cancelled first, which may take up to two seconds.
    pub async fn close(self) {
        tasks::cancel::cancel_all(&self, self.inner.connection.begin_close());
        self.inner.connection.wait_until_closed().await;
    }

    /// Completes when the current connection is closed, by either side. A client that reconnects opens another
    /// connection when a call needs one.
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
