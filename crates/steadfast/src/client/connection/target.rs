//! What a client can connect to, and how it is opened: once, or as often as it is needed.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use crate::runtime::poll_quietly;
#[cfg(feature = "server")]
use crate::server::{IntoServer, Serve};
use crate::transport::Transport;
use crate::transport::child::Command;
#[cfg(feature = "http-client")]
use crate::transport::http::client::HttpTarget;
#[cfg(feature = "server")]
use crate::transport::memory;

/// How much may be on its way between a client and a server in one process.
#[cfg(feature = "server")]
const MEMORY: usize = 256 * 1024;

/// What a client can connect to.
///
/// Servers in this process, commands, URLs and functions that open a transport can be opened again when the connection is
/// lost (see [`Reconnect`](crate::client::Reconnect)). A transport can be used once.
///
/// ```
/// # async fn example() -> Result<(), steadfast::Error> {
/// use steadfast::Client;
/// use steadfast::client::Reconnect;
/// use steadfast::transport::stream::Stream;
/// use tokio::net::TcpStream;
///
/// // Anything that can be opened more than once.
/// let client = Client::connect(|| async { TcpStream::connect("127.0.0.1:9000").await.map(Stream::from) })
///     .reconnect(Reconnect::default())
///     .await?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a client cannot connect to `{Self}`",
    note = "connect to a server (a type with `#[server]`, a `Server`), a `transport::child::Command`, a `Transport`, a function that opens one, or the URL of a server (feature `http-client`)"
)]
pub trait Target<Via> {
    /// The way to it. Nothing is opened yet.
    fn connector(self) -> Connector;
}

/// The way to a server.
pub struct Connector(Kind);

enum Kind {
    /// Until it is taken.
    Once(Mutex<Option<Box<dyn Transport>>>),
    Again(Box<dyn Fn() -> OpenFuture + Send + Sync>),
    #[cfg(feature = "http-client")]
    Http(Box<HttpTarget>),
}

type OpenFuture = Pin<Box<dyn Future<Output = io::Result<Box<dyn Transport>>> + Send>>;

/// What carries the messages of one connection.
pub(crate) enum OpenTransport {
    Bytes(Box<dyn Transport>),
    #[cfg(feature = "http-client")]
    Http(Box<HttpTarget>),
}

impl Connector {
    /// A way that can be opened again and again.
    pub fn again<F, A, T>(open: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<T>> + Send + 'static,
        T: Transport,
    {
        let open = Arc::new(open);
        Self(Kind::Again(Box::new(move || {
            let open = Arc::clone(&open);
            // The function itself is called where its panic is caught.
            Box::pin(async move {
                let transport = open().await?;
                Ok(Box::new(transport) as Box<dyn Transport>)
            })
        })))
    }

    /// Whether each message travels on its own.
    pub(crate) fn is_http(&self) -> bool {
        !matches!(self.0, Kind::Once(_) | Kind::Again(_))
    }

    /// Whether it can be opened more than once.
    pub(crate) fn opens_again(&self) -> bool {
        !matches!(self.0, Kind::Once(_))
    }

    /// Opens it. What opens it is somebody else's code: its panic is its failure.
    pub(crate) async fn open(&self) -> io::Result<OpenTransport> {
        match &self.0 {
            Kind::Once(transport) => {
                let transport = transport.lock().unwrap_or_else(PoisonError::into_inner).take();
                transport
                    .map(OpenTransport::Bytes)
                    .ok_or_else(|| io::Error::other("this transport can be used only once"))
            }
            Kind::Again(open) => {
                let mut opening = open();
                let opened = std::future::poll_fn(|cx| {
                    let panicked = |_| Poll::Ready(Err(io::Error::other("what opens the connection has panicked")));
                    poll_quietly(opening.as_mut(), cx).unwrap_or_else(panicked)
                });
                opened.await.map(OpenTransport::Bytes)
            }
            #[cfg(feature = "http-client")]
            Kind::Http(target) => Ok(OpenTransport::Http(target.clone())),
        }
    }
}

impl<T: Transport> From<T> for Connector {
    fn from(transport: T) -> Self {
        Self(Kind::Once(Mutex::new(Some(Box::new(transport)))))
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match &self.0 {
            Kind::Once(_) => "Way(a stream of bytes)",
            Kind::Again(_) => "Way(streams of bytes)",
            #[cfg(feature = "http-client")]
            Kind::Http(_) => "Way(HTTP)",
        })
    }
}

/// A server in this process.
#[cfg(feature = "server")]
#[derive(Debug)]
pub struct ViaMemory;
/// A transport.
#[derive(Debug)]
pub struct ViaTransport;
/// A function that opens a transport.
#[derive(Debug)]
pub struct ViaFunction;
/// A child process.
#[derive(Debug)]
pub struct ViaChild;
/// A URL.
#[cfg(feature = "http-client")]
#[derive(Debug)]
pub struct ViaHttp;

/// Needs the feature `server` beside `client`.
#[cfg(feature = "server")]
impl<T: IntoServer> Target<ViaMemory> for T {
    fn connector(self) -> Connector {
        let server = self.into_server();
        Connector::again(move || {
            let server = server.clone();
            async move {
                let (here, there) = memory::pair(MEMORY);
                let handle = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
                let serving = server.serve(there);
                // How the server's side ends is seen by this side as the end of the connection.
                handle.spawn(async move { serving.run().await.map(drop) });
                Ok(here)
            }
        })
    }
}

impl<T: Transport> Target<ViaTransport> for T {
    fn connector(self) -> Connector {
        self.into()
    }
}

impl<F, A, T> Target<ViaFunction> for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = io::Result<T>> + Send + 'static,
    T: Transport,
{
    fn connector(self) -> Connector {
        Connector::again(self)
    }
}

impl Target<ViaChild> for Command {
    fn connector(self) -> Connector {
        let command = Arc::new(Mutex::new(self));
        Connector::again(move || {
            let command = Arc::clone(&command);
            async move { command.lock().unwrap_or_else(PoisonError::into_inner).spawn() }
        })
    }
}

/// One pool of connections, however often it is opened.
#[cfg(feature = "http-client")]
impl Target<ViaHttp> for HttpTarget {
    fn connector(self) -> Connector {
        Connector(Kind::Http(Box::new(self)))
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl Target<ViaHttp> for &str {
    fn connector(self) -> Connector {
        HttpTarget::new(self).connector()
    }
}

/// The server's URL.
#[cfg(feature = "http-client")]
impl Target<ViaHttp> for String {
    fn connector(self) -> Connector {
        HttpTarget::new(self).connector()
    }
}
