//! Serving a server on a transport, until the connection or the server ends.

pub(crate) mod signals;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_proto::connection::{ClientOrServerDescription, Limits, ServerDescription};

use super::dispatch::ServerDispatcher;
use super::{IntoServer, Server};
use crate::error::{Error, Outcome};
use crate::runtime::connection::heartbeat;
use crate::runtime::{
    ConnectionCloseReport, ConnectionDriver, DriverCommand, DriverMailbox, Runtime, TokioRuntime, main_io_loop,
};
use crate::transport::Transport;
use crate::transport::stdio::Stdio;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How a server is served: implemented for every type that can be converted into a server.
pub trait Serve: IntoServer + Sized {
    /// Serves the process that started this process, on standard input and output, until that process closes them.
    ///
    /// Once the server runs, standard input and output are reserved for MCP messages: `println!` goes to standard
    /// error, and child processes get an empty standard input. SIGTERM and SIGINT start a graceful shutdown; a second
    /// signal ends the process immediately.
    ///
    /// When the client closes its end, running handlers have until the drain deadline to answer; then they are dropped
    /// and their cleanups run. If a handler still blocks its thread after that, **the process exits** with code 0: a
    /// blocked thread cannot be stopped, and would keep the process alive for as long as it blocks.
    /// [`ServeBuilder::keep_process`] prevents that the process exits.
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
    fn serve_stdio(self) -> ServeBuilder {
        let mut serving = ServeBuilder::new(self.into_server(), ServeTransport::Stdio);
        serving.on_signals = true;
        serving.end_process = true;
        serving
    }

    /// Serves any number of clients over Streamable HTTP at `/mcp`, until the server is shut down. The returned
    /// [builder](crate::transport::http::ServeHttpBuilder) sets other paths and options.
    ///
    /// A server on a loopback address accepts requests only from this machine: the headers `Host` and `Origin` are
    /// checked. SIGTERM and SIGINT start a graceful shutdown; a second signal ends the process immediately.
    ///
    /// ```no_run
    /// # use steadfast::prelude::*;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), steadfast::Error> {
    /// # use steadfast::transport::http::HttpServerOptions;
    /// Server::builder("clock", "1.0.0")
    ///     .build()
    ///     .serve_http("127.0.0.1:3210")
    ///     .path("/clock")
    ///     .options(HttpServerOptions::new().max_sessions(100))
    ///     .await
    /// # }
    /// ```
    #[cfg(feature = "http")]
    fn serve_http(self, address: impl std::net::ToSocketAddrs) -> crate::transport::http::server::ServeHttpBuilder {
        crate::transport::http::server::ServeHttpBuilder::new(self.into_server(), address)
    }

    /// Serves HTTP on an existing TCP listener, for example on a port that the system chose.
    #[cfg(feature = "http")]
    fn serve_http_on(self, listener: std::net::TcpListener) -> crate::transport::http::server::ServeHttpBuilder {
        crate::transport::http::server::ServeHttpBuilder::on_listener(self.into_server(), Ok(listener))
    }

    /// Serves one client on a transport, until the client or the server closes the connection.
    ///
    /// ```
    /// # use steadfast::prelude::*;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use steadfast::transport::stream::StreamTransport;
    /// let (here, there) = tokio::io::duplex(1024);
    /// drop(there);
    /// Server::builder("quiet", "1.0.0").build().serve(StreamTransport::duplex(here)).await.unwrap();
    /// # });
    /// ```
    fn serve(self, transport: impl Transport) -> ServeBuilder {
        ServeBuilder::new(self.into_server(), ServeTransport::Transport(Box::new(transport)))
    }
}

impl<T: IntoServer> Serve for T {}

impl Server {
    /// What the server says about itself in the handshake: name, version, capabilities, instructions.
    pub(crate) fn hello(&self) -> ClientOrServerDescription {
        let mut hello = ServerDescription::new(self.info().clone(), self.capabilities());
        hello.instructions = self.instructions().map(str::to_owned);
        hello.vendor_methods = self.vendor_handlers().methods();
        ClientOrServerDescription::Server(hello)
    }
}

/// A server that is ready to be served: await it to serve.
#[must_use = "nothing is served until this is awaited"]
pub struct ServeBuilder {
    server: Server,
    target: ServeTransport,
    limits: Limits,
    shutdown: Option<BoxFuture<()>>,
    on_signals: bool,
    end_process: bool,
    ping_interval: Option<Duration>,
    runtime: Option<Arc<dyn Runtime>>,
}

enum ServeTransport {
    Stdio,
    Transport(Box<dyn Transport>),
}

impl ServeBuilder {
    fn new(server: Server, target: ServeTransport) -> Self {
        let limits = server.limits().clone();
        Self {
            server,
            target,
            limits,
            shutdown: None,
            on_signals: false,
            end_process: false,
            ping_interval: None,
            runtime: None,
        }
    }

    /// Starts a graceful shutdown when `shutdown` completes. The future replaces the handlers of SIGTERM and SIGINT.
    pub fn shutdown_when(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(shutdown));
        self.on_signals = false;
        self
    }

    /// Sets the limits of the connection to the client; by default the limits of the server apply.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Pings the client at this interval, and closes the connection if the client has not answered when the next ping
    /// is due. A client that disconnects is noticed without pings; a client that hangs is not.
    ///
    /// By default a server sends no pings. Only revisions up to 2025-11-25 have pings.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = Some(interval);
        self
    }

    /// Does not exit the process if handlers block their threads beyond the drain deadline.
    pub fn keep_process(mut self) -> Self {
        self.end_process = false;
        self
    }

    /// Serves the client on `runtime`, for example the runtime of a simulator, instead of the tokio runtime in which
    /// the builder is awaited. Shutdown by signals is not available on such a runtime.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self.on_signals = false;
        self
    }

    /// Serves the client, and returns how the connection ended.
    ///
    /// # Errors
    ///
    /// Fails if the server could not start: stdin and stdout are already in use, there is no tokio runtime, or the
    /// system refuses a thread. Nothing that the client does is an error here.
    pub async fn run(self) -> Result<ConnectionCloseReport, Error> {
        if cfg!(panic = "abort") {
            tracing::warn!("built with panic=abort: a panic in a handler ends the whole process");
        }
        let transport: Box<dyn Transport> = match self.target {
            ServeTransport::Stdio => Box::new(Stdio::take().map_err(start_failed)?),
            ServeTransport::Transport(transport) => transport,
        };
        let (runtime, io_loop): (Arc<dyn Runtime>, _) = if let Some(runtime) = self.runtime {
            (runtime, None)
        } else {
            let io_loop = main_io_loop().map_err(start_failed)?;
            (Arc::new(TokioRuntime::current().map_err(start_failed)?.on_io_loop(&io_loop)), Some(io_loop))
        };
        let hello = self.server.hello();
        let server = self.server;
        // Kept until the end, so that what the program has put into the server is dropped here and not on the I/O loop, which a
        // slow destructor would hold up.
        let kept = server.clone();
        let ping_runtime = Arc::clone(&runtime);
        let driver = ConnectionDriver::new(
            transport,
            |mailbox| ServerDispatcher::new(server, mailbox),
            hello,
            self.limits,
            runtime,
        );
        let mailbox = Arc::clone(driver.mailbox());
        let ping_lost =
            self.ping_interval.map(|every| heartbeat::ping_timeout(Arc::clone(&mailbox), ping_runtime, every));
        let ends = [
            self.shutdown.map(|shutdown| (shutdown, DriverCommand::ShutDown { at_once: false })),
            ping_lost.map(|lost| (Box::pin(lost) as BoxFuture<()>, DriverCommand::ShutDown { at_once: true })),
        ];
        let Some(io_loop) = io_loop else { return Ok(drive_until(driver, ends, mailbox).await) };
        let signals = if self.on_signals {
            let mailbox = Arc::downgrade(&mailbox);
            let shut_down = move || {
                mailbox
                    .upgrade()
                    .is_some_and(|mailbox| mailbox.post(DriverCommand::ShutDown { at_once: false }).is_ok())
            };
            Some(signals::listen(io_loop.handle(), shut_down).map_err(start_failed)?)
        } else {
            None
        };
        // If the future that waits here is dropped, the guard shuts the connection down.
        let end_process = Arc::new(AtomicBool::new(self.end_process));
        let guard = ConnectionCloseGuard { mailbox: Some(Arc::clone(&mailbox)), end_process: Arc::clone(&end_process) };
        let driven = io_loop.handle().spawn(async move {
            let ended = driver.await;
            drop(signals);
            if ended.abandoned > 0 && end_process.load(Ordering::SeqCst) {
                std::process::exit(0);
            }
            ended
        });
        let ended = drive_until(async { driven.await.map_err(start_failed) }, ends, mailbox).await;
        guard.disarm();
        drop(kept);
        ended
    }
}

/// A future that ends the connection when it completes, and the command that is then sent to the driver.
type ShutdownTrigger = Option<(BoxFuture<()>, DriverCommand)>;

/// Runs the driver to its end; when one of the other futures completes first, its command is sent to the driver.
async fn drive_until<T>(driver: impl Future<Output = T>, ends: [ShutdownTrigger; 2], mailbox: Arc<DriverMailbox>) -> T {
    let mut driver = std::pin::pin!(driver);
    let mut ends = ends;
    std::future::poll_fn(|cx| {
        for end in &mut ends {
            if let Some((_, command)) = end.take_if(|(future, _)| future.as_mut().poll(cx).is_ready()) {
                // If the connection is closed already, there is nothing to shut down.
                let _ = mailbox.post(command);
            }
        }
        driver.as_mut().poll(cx)
    })
    .await
}

/// Closes the connection when the future that serves it is dropped. The program goes on after such a drop, so the
/// process must not exit.
struct ConnectionCloseGuard {
    mailbox: Option<Arc<DriverMailbox>>,
    end_process: Arc<AtomicBool>,
}

impl ConnectionCloseGuard {
    /// Disables the guard, because the connection has already ended.
    fn disarm(mut self) {
        self.mailbox = None;
    }
}

impl Drop for ConnectionCloseGuard {
    fn drop(&mut self) {
        if let Some(mailbox) = &self.mailbox {
            self.end_process.store(false, Ordering::SeqCst);
            // If the connection is closed already, there is nothing to shut down.
            let _ = mailbox.post(DriverCommand::ShutDown { at_once: true });
        }
    }
}

pub(crate) fn start_failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::transport(Outcome::NotSent, error)
}

impl IntoFuture for ServeBuilder {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.run().await.map(drop) })
    }
}

impl std::fmt::Debug for ServeBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServeBuilder").field("server", &self.server).finish_non_exhaustive()
    }
}
