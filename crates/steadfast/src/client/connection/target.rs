//! What a client can connect to, and how a transport to this target is opened: once, or any number of times.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use crate::runtime::poll_catching_panics;
#[cfg(feature = "server")]
use crate::server::{IntoServer, Serve};
use crate::transport::Transport;
use crate::transport::child::Command;
#[cfg(feature = "http-client")]
use crate::transport::http::client::HttpTarget;
#[cfg(feature = "server")]
use crate::transport::memory;

/// The buffer size, in bytes, of the transport between a client and a server in one process.
#[cfg(feature = "server")]
const MEMORY_BUFFER: usize = 256 * 1024;

/// What a client can connect to.
///
/// A client can reconnect to a server in this process, a command, a URL or a function that opens a transport when its
/// connection is lost (see [`ReconnectPolicy`](crate::client::ReconnectPolicy)). A transport that is open already can
/// be used for only one connection.
///
/// ```
/// # async fn example() -> Result<(), steadfast::Error> {
/// use steadfast::Client;
/// use steadfast::client::ReconnectPolicy;
/// use steadfast::transport::stream::StreamTransport;
/// use tokio::net::TcpStream;
///
/// // A function can be called again for each new connection.
/// let client = Client::connect(|| async { TcpStream::connect("127.0.0.1:9000").await.map(StreamTransport::from) })
///     .reconnect(ReconnectPolicy::default())
///     .await?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a client cannot connect to `{Self}`",
    note = "connect to a server (a type with `#[server]`, a `Server`), a `transport::child::Command`, a `Transport`, a function that opens one, or the URL of a server (feature `http-client`)"
)]
pub trait ConnectTarget<Via> {
    /// Converts the target into a connector, without opening a transport.
    fn into_connector(self) -> TransportConnector;
}

/// Opens the transports over which a client connects to one server.
pub struct TransportConnector(TransportConnectorKind);

enum TransportConnectorKind {
    /// A transport that is open already, until a connection takes it.
    Once(Mutex<Option<Box<dyn Transport>>>),
    /// A function that opens a transport.
    Function(Box<dyn Fn() -> OpenTransportFuture + Send + Sync>),
    #[cfg(feature = "http-client")]
    Http(Box<HttpTarget>),
}

type OpenTransportFuture = Pin<Box<dyn Future<Output = io::Result<Box<dyn Transport>>> + Send>>;

/// The open transport of one connection.
pub(crate) enum OpenTransport {
    Bytes(Box<dyn Transport>),
    #[cfg(feature = "http-client")]
    Http(Box<HttpTarget>),
}

impl TransportConnector {
    /// Creates a connector that calls `open` for each connection.
    pub fn from_fn<F, A, T>(open: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<T>> + Send + 'static,
        T: Transport,
    {
        let open = Arc::new(open);
        Self(TransportConnectorKind::Function(Box::new(move || {
            let open = Arc::clone(&open);
            // The function is called inside of the future, where a panic is caught.
            Box::pin(async move {
                let transport = open().await?;
                Ok(Box::new(transport) as Box<dyn Transport>)
            })
        })))
    }

    /// Whether the transport is HTTP: each message is a request of its own.
    pub(crate) fn is_http(&self) -> bool {
        !matches!(self.0, TransportConnectorKind::Once(_) | TransportConnectorKind::Function(_))
    }

    /// Whether the connector can open more than one transport, so that the client can reconnect.
    pub(crate) fn can_reopen(&self) -> bool {
        !matches!(self.0, TransportConnectorKind::Once(_))
    }

    /// Opens a transport. A panic of the user's function that opens the transport becomes an error.
    pub(crate) async fn open(&self) -> io::Result<OpenTransport> {
        match &self.0 {
            TransportConnectorKind::Once(transport) => {
                let transport = transport.lock().unwrap_or_else(PoisonError::into_inner).take();
                transport
                    .map(OpenTransport::Bytes)
                    .ok_or_else(|| io::Error::other("the transport is in use already, and cannot be opened again"))
            }
            TransportConnectorKind::Function(open) => {
                let mut opening = open();
                let opened = std::future::poll_fn(|cx| {
                    let panicked =
                        |_| Poll::Ready(Err(io::Error::other("the function that opens the transport panicked")));
                    poll_catching_panics(opening.as_mut(), cx).unwrap_or_else(panicked)
                });
                opened.await.map(OpenTransport::Bytes)
            }
            #[cfg(feature = "http-client")]
            TransportConnectorKind::Http(target) => Ok(OpenTransport::Http(target.clone())),
        }
    }
}

impl<T: Transport> From<T> for TransportConnector {
    fn from(transport: T) -> Self {
        Self(TransportConnectorKind::Once(Mutex::new(Some(Box::new(transport)))))
    }
}

impl std::fmt::Debug for TransportConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.0 {
            TransportConnectorKind::Once(_) => "TransportConnector(transport)",
            TransportConnectorKind::Function(_) => "TransportConnector(function)",
            #[cfg(feature = "http-client")]
            TransportConnectorKind::Http(_) => "TransportConnector(HTTP)",
        })
    }
}

/// Marks a [`ConnectTarget`] that is a server in this process.
#[cfg(feature = "server")]
#[derive(Debug)]
pub enum MemoryConnectTargetMarker {}
/// Marks a [`ConnectTarget`] that is a transport.
#[derive(Debug)]
pub enum TransportConnectTargetMarker {}
/// Marks a [`ConnectTarget`] that is a function that opens a transport.
#[derive(Debug)]
pub enum FunctionConnectTargetMarker {}
/// Marks a [`ConnectTarget`] that is a child process.
#[derive(Debug)]
pub enum ChildConnectTargetMarker {}
/// Marks a [`ConnectTarget`] that is a URL.
#[cfg(feature = "http-client")]
#[derive(Debug)]
pub enum UrlConnectTargetMarker {}

/// A client can connect to a server in the same process if the crate features `client` and `server` are enabled.
#[cfg(feature = "server")]
impl<T: IntoServer> ConnectTarget<MemoryConnectTargetMarker> for T {
    fn into_connector(self) -> TransportConnector {
        let server = self.into_server();
        TransportConnector::from_fn(move || {
            let server = server.clone();
            async move {
                let (client_end, server_end) = memory::pair(MEMORY_BUFFER);
                let handle = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
                let serving = server.serve(server_end);
                // The client sees the end of the server as the end of the connection.
                handle.spawn(async move { serving.run().await.map(drop) });
                Ok(client_end)
            }
        })
    }
}

impl<T: Transport> ConnectTarget<TransportConnectTargetMarker> for T {
    fn into_connector(self) -> TransportConnector {
        self.into()
    }
}

impl<F, A, T> ConnectTarget<FunctionConnectTargetMarker> for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = io::Result<T>> + Send + 'static,
    T: Transport,
{
    fn into_connector(self) -> TransportConnector {
        TransportConnector::from_fn(self)
    }
}

impl ConnectTarget<ChildConnectTargetMarker> for Command {
    fn into_connector(self) -> TransportConnector {
        let command = Arc::new(Mutex::new(self));
        TransportConnector::from_fn(move || {
            let command = Arc::clone(&command);
            async move { command.lock().unwrap_or_else(PoisonError::into_inner).spawn() }
        })
    }
}

/// All connections of the client to this HTTP target share one HTTP connection pool.
#[cfg(feature = "http-client")]
impl ConnectTarget<UrlConnectTargetMarker> for HttpTarget {
    fn into_connector(self) -> TransportConnector {
        TransportConnector(TransportConnectorKind::Http(Box::new(self)))
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl ConnectTarget<UrlConnectTargetMarker> for &str {
    fn into_connector(self) -> TransportConnector {
        HttpTarget::new(self).into_connector()
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl ConnectTarget<UrlConnectTargetMarker> for String {
    fn into_connector(self) -> TransportConnector {
        HttpTarget::new(self).into_connector()
    }
}
