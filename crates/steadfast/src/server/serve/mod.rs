//! Serving: a server, a transport, and how it ends.

pub(crate) mod signals;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_proto::connection::{Hello, Limits, ServerHello};

use super::dispatch::ServerService;
use super::{IntoServer, Server};
use crate::error::{Error, Outcome};
use crate::runtime::connection::heartbeat;
use crate::runtime::{ConnectionEnd, Driver, DriverCommand, Mailbox, Runtime, TokioRuntime, io_handle};
use crate::transport::Transport;
use crate::transport::stdio::Stdio;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serving, for everything that is a server.
pub trait Serve: IntoServer + Sized {
    /// Serves the peer that started this process, on standard input and output, until it closes them.
    ///
    /// From here on the two belong to the protocol: `println!` goes to standard error, and child processes find an empty
    /// standard input. SIGTERM and SIGINT begin a shutdown; a second one ends the process at once.
    ///
    /// When the peer closes its end, handlers that run have a moment to answer, then they are stopped and their cleanups
    /// run. If a handler blocks its thread beyond that, **the process is ended** with code 0: a blocked thread cannot be
    /// stopped, and would keep the process from ending for as long as it blocks. [`Serving::keep_process`] turns that off.
    ///
    /// ```no_run
    /// # use steadfast::prelude::*;
    /// # struct Weather;
    /// # #[server] impl Weather { #[tool] async fn hello(&self) -> &'static str { "hello" } }
    /// #[tokio::main]
    /// async fn main() -> Result<(), steadfast::Error> {
    ///     Weather.serve_stdio().await
    /// }
    /// ```
    fn serve_stdio(self) -> Serving {
        let mut serving = Serving::new(self.into_server(), Opening::Stdio);
        serving.on_signals = true;
        serving.end_process = true;
        serving
    }

    /// Serves everyone who comes, over Streamable HTTP at `/mcp`, until it is shut down.
    ///
    /// On a loopback address only this machine is let in: `Host` and `Origin` are checked. SIGTERM and SIGINT begin a
    /// shutdown, which drains; a second one ends the process at once.
    ///
    /// ```no_run
    /// # use steadfast::prelude::*;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// Server::builder("clock", "1.0.0").build().serve_http("127.0.0.1:3210").await
    /// # }
    /// ```
    #[cfg(feature = "http")]
    fn serve_http(self, address: impl std::net::ToSocketAddrs) -> crate::transport::http::server::ServingHttp {
        crate::transport::http::server::ServingHttp::new(self.into_server(), address)
    }

    /// Serves one peer on a transport until one of the two is done.
    ///
    /// ```
    /// # use steadfast::prelude::*;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use steadfast::transport::stream::Stream;
    /// let (here, there) = tokio::io::duplex(1024);
    /// drop(there);
    /// Server::builder("quiet", "1.0.0").build().serve(Stream::duplex(here)).await.unwrap();
    /// # });
    /// ```
    fn serve(self, transport: impl Transport) -> Serving {
        Serving::new(self.into_server(), Opening::Transport(Box::new(transport)))
    }
}

impl<T: IntoServer> Serve for T {}

impl Server {
    /// What it says of itself when a connection opens.
    pub(crate) fn hello(&self) -> Hello {
        let mut hello = ServerHello::new(self.info().clone(), self.capabilities());
        hello.instructions = self.instructions().map(str::to_owned);
        Hello::Server(hello)
    }
}

/// A server about to serve: await it.
#[must_use = "nothing is served until this is awaited"]
pub struct Serving {
    server: Server,
    opening: Opening,
    limits: Limits,
    shutdown: Option<BoxFuture<()>>,
    on_signals: bool,
    end_process: bool,
    ping_every: Option<Duration>,
    runtime: Option<Arc<dyn Runtime>>,
}

enum Opening {
    Stdio,
    Transport(Box<dyn Transport>),
}

impl Serving {
    fn new(server: Server, opening: Opening) -> Self {
        let limits = server.limits().clone();
        Self {
            server,
            opening,
            limits,
            shutdown: None,
            on_signals: false,
            end_process: false,
            ping_every: None,
            runtime: None,
        }
    }

    /// Shuts down when `shutdown` completes. It takes the place of the signal handlers.
    pub fn with_shutdown(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(shutdown));
        self.on_signals = false;
        self
    }

    /// With other limits than the server's.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Asks the peer at this interval whether it is there, and gives the connection up if it has not answered when the next
    /// question is due. A peer that goes is noticed without this; one that hangs is not.
    ///
    /// Up to 2025-11-25: later revisions have no pings. Off unless told.
    pub fn ping_every(mut self, interval: Duration) -> Self {
        self.ping_every = Some(interval);
        self
    }

    /// Does not end the process although handlers block their threads beyond the drain deadline.
    pub fn keep_process(mut self) -> Self {
        self.end_process = false;
        self
    }

    /// In other surroundings than the tokio runtime in which this is awaited: a simulator's. Shutdown by signals is not
    /// available there.
    pub fn with_runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self.on_signals = false;
        self
    }

    /// Serves, and says how the connection ended.
    ///
    /// # Errors
    ///
    /// If it could not begin: standard input and output were taken before, there is no tokio runtime, or the system refuses
    /// a thread. How the peer behaves is never an error.
    pub async fn run(self) -> Result<ConnectionEnd, Error> {
        if cfg!(panic = "abort") {
            tracing::warn!("built with panic=abort: a handler that panics ends the process and everything in it");
        }
        let transport: Box<dyn Transport> = match self.opening {
            Opening::Stdio => Box::new(Stdio::take().map_err(not_begun)?),
            Opening::Transport(transport) => transport,
        };
        let (runtime, apart) = match self.runtime {
            Some(runtime) => (runtime, false),
            None => (Arc::new(TokioRuntime::current().map_err(not_begun)?) as Arc<dyn Runtime>, true),
        };
        let hello = self.server.hello();
        let server = self.server;
        let beating = Arc::clone(&runtime);
        let driver = Driver::new(transport, |mailbox| ServerService::new(server, mailbox), hello, self.limits, runtime);
        let mailbox = Arc::clone(driver.mailbox());
        let lost = self.ping_every.map(|every| heartbeat::ping_timeout(Arc::clone(&mailbox), beating, every));
        let ends = [
            self.shutdown.map(|shutdown| (shutdown, DriverCommand::ShutDown { at_once: false })),
            lost.map(|lost| (Box::pin(lost) as BoxFuture<()>, DriverCommand::ShutDown { at_once: true })),
        ];
        if !apart {
            return Ok(until(driver, ends, mailbox).await);
        }
        let io = io_handle().map_err(not_begun)?;
        if self.on_signals {
            let mailbox = Arc::downgrade(&mailbox);
            let begin = move || {
                mailbox
                    .upgrade()
                    .is_some_and(|mailbox| mailbox.post(DriverCommand::ShutDown { at_once: false }).is_ok())
            };
            signals::listen(io, begin).map_err(not_begun)?;
        }
        // Dropping the future that waits here drops the connection: the guard shuts it down.
        let end_process = Arc::new(AtomicBool::new(self.end_process));
        let guard = Guard { mailbox: Some(Arc::clone(&mailbox)), end_process: Arc::clone(&end_process) };
        let driven = io.spawn(async move {
            let ended = driver.await;
            if ended.abandoned > 0 && end_process.load(Ordering::SeqCst) {
                std::process::exit(0);
            }
            ended
        });
        let ended = until(async { driven.await.map_err(not_begun) }, ends, mailbox).await;
        guard.disarm();
        ended
    }
}

/// Something that ends a connection when it completes, and how the driver is told.
type End = Option<(BoxFuture<()>, DriverCommand)>;

/// Drives until the end; when one of the others completes first, the driver is told.
async fn until<T>(driver: impl Future<Output = T>, ends: [End; 2], mailbox: Arc<Mailbox>) -> T {
    let mut driver = std::pin::pin!(driver);
    let mut ends = ends;
    std::future::poll_fn(|cx| {
        for end in &mut ends {
            if let Some((_, letter)) = end.take_if(|(future, _)| future.as_mut().poll(cx).is_ready()) {
                // If the connection is closed already, so much the better.
                let _ = mailbox.post(letter);
            }
        }
        driver.as_mut().poll(cx)
    })
    .await
}

/// Closes the connection when the future that serves it is dropped; the program goes on, so it is not ended.
struct Guard {
    mailbox: Option<Arc<Mailbox>>,
    end_process: Arc<AtomicBool>,
}

impl Guard {
    /// The connection has ended by itself.
    fn disarm(mut self) {
        self.mailbox = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mailbox) = &self.mailbox {
            self.end_process.store(false, Ordering::SeqCst);
            // If the connection is closed already, so much the better.
            let _ = mailbox.post(DriverCommand::ShutDown { at_once: true });
        }
    }
}

pub(crate) fn not_begun(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::transport(Outcome::NotSent, error)
}

impl IntoFuture for Serving {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await.map(drop) })
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Serving").field("server", &self.server).finish_non_exhaustive()
    }
}
