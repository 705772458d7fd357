//! An HTTP server around the tower service, for programs that have no HTTP server of their own.
//!
//! The HTTP server supports HTTP/1.1 and HTTP/2, whichever a client begins with. The HTTP server has no TLS, so HTTP/2
//! is for clients with prior knowledge of it, such as a proxy that terminates TLS.
//!
//! The HTTP server accepts connections on the first I/O loop of the process, and deals them out among as many I/O loops as the runtime has workers. Handlers
//! that block do not delay the pings of other clients, whether they block workers or the thread of an I/O loop.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::{Builder, Connection};
use hyper_util::service::TowerToHyperService;
use steadfast_proto::http::origin_policy::OriginPolicy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::body::HttpServiceBody;
use super::options::HttpServerOptions;
use super::reply;
use super::service::{HttpService, HttpServiceState};
use super::socket::{SocketHangupWatcher, WatchedTcpStream};
use crate::error::Error;
use crate::runtime::{IoLoop, Runtime, TokioRuntime, io_handle, io_loops_for_http};
use crate::server::{Server, listen_for_signals, start_failed};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The default path of the MCP endpoint.
const DEFAULT_PATH: &str = "/mcp";

/// The maximum length of the head of an HTTP request, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// The maximum number of requests that may be open on one HTTP/2 connection.
const MAX_STREAMS: u32 = 256;

/// An MCP server that serves HTTP when this builder is awaited.
#[must_use = "nothing is served until this is awaited"]
pub struct ServeHttpBuilder {
    server: Server,
    listener: io::Result<StdListener>,
    path: String,
    options: HttpServerOptions,
    shutdown: Option<BoxFuture<()>>,
    end_process: bool,
}

impl ServeHttpBuilder {
    pub(crate) fn new(server: Server, address: impl ToSocketAddrs) -> Self {
        let listener = StdListener::bind(address);
        Self::on_listener(server, listener)
    }

    pub(crate) fn on_listener(server: Server, listener: io::Result<StdListener>) -> Self {
        let options = HttpServerOptions::default();
        Self { server, listener, path: DEFAULT_PATH.to_owned(), options, shutdown: None, end_process: true }
    }

    /// Serves at another path than `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: HttpServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Shuts the server down when `shutdown` completes, instead of when the process gets a signal.
    pub fn shutdown_when(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(shutdown));
        self
    }

    /// Does not exit the process when a signal has shut the server down and handlers still block their threads. By
    /// default a process whose handlers still block their threads after the shutdown exits with code 0, because a tokio
    /// runtime waits for its blocked workers however long that takes.
    pub fn keep_process(mut self) -> Self {
        self.end_process = false;
        self
    }

    /// The address of the listening socket, if it could be bound.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.as_ref().ok().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves HTTP until the server is shut down.
    ///
    /// # Errors
    ///
    /// Fails if the server could not start: the address is in use, there is no tokio runtime, or the system refuses a
    /// thread.
    pub async fn run(self) -> Result<(), Error> {
        if cfg!(panic = "abort") {
            tracing::warn!("built with panic=abort: a handler that panics ends the process and everything in it");
        }
        let listener = self.listener.map_err(start_failed)?;
        let address = listener.local_addr().map_err(start_failed)?;
        listener.set_nonblocking(true).map_err(start_failed)?;
        let runtime = TokioRuntime::current().map_err(start_failed)?;
        let io_loops = io_loops_for_http(runtime.handle()).map_err(start_failed)?;
        let io = io_handle().map_err(start_failed)?;
        let io_loops = io_loops.into_iter().map(|io_loop| HttpServerIoLoop::new(io_loop, &runtime)).collect();
        let runtime: Arc<dyn Runtime> = Arc::new(runtime);
        let origin_policy = self.options.origin_policy.clone().unwrap_or_else(|| default_origin_policy(address));
        let drain = self.options.limits.as_ref().unwrap_or(self.server.limits()).drain_deadline;
        let service = HttpService::with(self.server, self.options, origin_policy, OnceLock::from(runtime));
        let on_signals = self.shutdown.is_none();
        let signals = if on_signals {
            let shared = Arc::downgrade(&service.shared);
            let begin = move || {
                let service = shared.upgrade().map(|shared| HttpService { shared, runtime: None });
                service.inspect(HttpService::shutdown).is_some()
            };
            Some(listen_for_signals(&io, begin).map_err(start_failed)?)
        } else {
            None
        };
        tracing::info!(%address, path = self.path, "serving HTTP");
        let endpoint = HttpEndpointService {
            path: self.path.into(),
            service: service.clone(),
            begun: Arc::default(),
            hangup: None,
        };
        // Dropping this future shuts the server down.
        let guard = HttpServiceShutdownGuard(service.clone());
        let end_process = on_signals && self.end_process;
        let load = Arc::clone(&service.shared.load);
        let mut serving = io.spawn(async move {
            let served = accept(listener, endpoint, io_loops, drain).await;
            drop(signals);
            // On this thread, because handlers cannot block it.
            if end_process && load.has_abandoned() {
                std::process::exit(0);
            }
            served
        });
        if let Some(shutdown) = self.shutdown {
            tokio::select! {
                biased;
                ended = &mut serving => return ended.map_err(start_failed)?.map_err(start_failed),
                () = shutdown => service.shutdown(),
            }
        }
        let ended = serving.await.map_err(start_failed)?.map_err(start_failed);
        drop(guard);
        ended
    }
}

/// Shuts the HTTP service down when this guard is dropped.
struct HttpServiceShutdownGuard(HttpService);

impl Drop for HttpServiceShutdownGuard {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

fn default_origin_policy(address: SocketAddr) -> OriginPolicy {
    if address.ip().is_loopback() {
        OriginPolicy::loopback().allow_host(address.to_string())
    } else {
        OriginPolicy::public()
    }
}

/// An I/O loop with connections of the server, and the runtime of their handlers.
struct HttpServerIoLoop {
    io_loop: Arc<IoLoop>,
    runtime: Arc<dyn Runtime>,
}

impl HttpServerIoLoop {
    fn new(io_loop: Arc<IoLoop>, runtime: &TokioRuntime) -> Self {
        let runtime = Arc::new(runtime.on_io_loop(&io_loop));
        Self { io_loop, runtime }
    }
}

/// Accepts connections until the HTTP service shuts down, and then waits until their requests have ended or the drain
/// deadline has passed.
async fn accept(
    listener: StdListener,
    endpoint: HttpEndpointService,
    io_loops: Vec<HttpServerIoLoop>,
    drain: Duration,
) -> io::Result<()> {
    let mut io_loops = io_loops.iter().cycle();
    let listener = TcpListener::from_std(listener)?;
    let shared = Arc::clone(&endpoint.service.shared);
    let connections = Arc::new(Semaphore::new(shared.options.max_connections.min(Semaphore::MAX_PERMITS)));
    // Nothing is sent on it: it closes when the last connection has dropped its sender.
    let (alive, mut gone) = mpsc::channel::<()>(1);
    let mut accept_one = async || {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => {
                if let (Some(on), Ok(stream)) = (io_loops.next(), stream.into_std()) {
                    let mut endpoint = HttpEndpointService { begun: Arc::default(), ..endpoint.clone() };
                    endpoint.service.runtime = Some(Arc::clone(&on.runtime));
                    return Some((on.io_loop.handle(), stream, endpoint, permit));
                }
            }
            Err(error) => {
                // Out of file descriptors, or the client has disconnected again: an immediate retry would fail too.
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        None
    };
    // Dropped when everything has drained.
    let (over, drained) = watch::channel(());
    let mut closing = std::pin::pin!(shared.closing.notified());
    closing.as_mut().enable();
    while !shared.closing.is_closing() {
        let accepted = tokio::select! {
            biased;
            () = &mut closing => break,
            accepted = accept_one() => accepted,
        };
        let Some((io, stream, endpoint, permit)) = accepted else { continue };
        let waited_for = Some(alive.clone());
        drop(io.spawn(serve_connection(stream, endpoint, drain, permit, waited_for, drained.clone())));
    }
    drop(alive);
    // Without a deadline if it is later than the system can count.
    let deadline = tokio::time::Instant::now().checked_add(drain.saturating_add(DRAIN_SLACK));
    let mut draining = std::pin::pin!(async {
        gone.recv().await;
        // Handlers whose clients have disconnected, and cleanups, have no connection to wait for.
        let idle = shared.load.idle();
        if let Some(deadline) = deadline {
            return tokio::time::timeout_at(deadline, idle).await.is_ok();
        }
        idle.await;
        true
    });
    // Clients may need a new connection to send what running handlers wait for. Other requests on it are refused, and the drain
    // does not wait for its end.
    let all_ended = loop {
        let accepted = tokio::select! {
            biased;
            all_ended = &mut draining => break all_ended,
            accepted = accept_one() => accepted,
        };
        let Some((io, stream, endpoint, permit)) = accepted else { continue };
        drop(io.spawn(serve_connection(stream, endpoint, drain, permit, None, drained.clone())));
    };
    drop((listener, over));
    if !all_ended {
        shared.load.guard().abandoned(1);
    }
    Ok(())
}

/// Longer timeouts for the head of a request are as good as none.
const MAX_HEAD_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a shutdown of the HTTP server waits, after the drain deadline, for the last handlers to end.
const DRAIN_SLACK: Duration = Duration::from_millis(100);

/// Serves one HTTP connection until its end, or until a shutdown has drained it.
///
/// A shutdown waits for an HTTP connection as long as the connection holds `waited_for`, and drops the sender of
/// `drained` when all such connections are done. A shutdown waits only for connections that had a request. A connection
/// without a request stays open until the others have drained: its first request may be in the socket already, unread,
/// and is then refused with 503. Closing a connection without a request at once could leave such a first request
/// without a response.
async fn serve_connection(
    stream: std::net::TcpStream,
    endpoint: HttpEndpointService,
    drain: Duration,
    _permit: OwnedSemaphorePermit,
    waited_for: Option<mpsc::Sender<()>>,
    mut drained: watch::Receiver<()>,
) {
    // Out of file descriptors, or closed already: there is no client to respond to.
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let shared = Arc::clone(&endpoint.service.shared);
    let begun = Arc::clone(&endpoint.begun);
    let builder = builder(&shared);
    let mut connection = std::pin::pin!(serve_on(&builder, stream, endpoint));
    let mut closing = std::pin::pin!(shared.closing.notified());
    closing.as_mut().enable();
    if !shared.closing.is_closing() {
        tokio::select! {
            biased;
            // Errors are the client's, and ignored.
            _ = &mut connection => return,
            () = &mut closing => {}
            () = no_request_within(&begun, shared.options.head_timeout) => return,
        }
    }
    if waited_for.is_some() && begun.load(Ordering::Relaxed) {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(drain, connection).await;
    } else {
        drop(waited_for);
        tokio::select! {
            biased;
            _ = &mut connection => return,
            _ = drained.changed() => {}
        }
        if begun.load(Ordering::Relaxed) {
            connection.as_mut().graceful_shutdown();
        }
        let _ = tokio::time::timeout(DRAIN_SLACK, connection).await;
    }
}

fn builder(shared: &HttpServiceState) -> Builder<TokioExecutor> {
    // hyper adds it to the current time, which may not overflow.
    let head_timeout = shared.options.head_timeout.min(MAX_HEAD_TIMEOUT);
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(MAX_HEAD);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS).max_header_list_size(MAX_HEADER_LIST);
    // HTTP/2 streams may be idle for any time, so pings have to find out whether the client is still there.
    builder.http2().keep_alive_interval(head_timeout);
    builder
}

fn serve_on(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    endpoint: HttpEndpointService,
) -> Connection<'_, TokioIo<WatchedTcpStream>, TowerToHyperService<HttpEndpointService>, TokioExecutor> {
    // An event is one write, and must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let socket = WatchedTcpStream::new(stream);
    let service = TowerToHyperService::new(HttpEndpointService { hangup: Some(socket.hangup()), ..endpoint });
    builder.serve_connection(TokioIo::new(socket), service)
}

/// Completes if no request arrives on an HTTP connection within this time. The head of a request has a timeout of its
/// own, but only once the version of HTTP is known, and an HTTP/2 client may send its preface and then nothing.
async fn no_request_within(begun: &AtomicBool, timeout: Duration) {
    tokio::time::sleep(timeout).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// The maximum size of the headers of an HTTP/2 request: the same limit as [`MAX_HEAD`], as HTTP/2 counts.
const MAX_HEADER_LIST: u32 = 64 * 1024;

/// The HTTP service at the path of its endpoint.
#[derive(Clone)]
struct HttpEndpointService {
    path: Arc<str>,
    service: HttpService,
    /// Whether a request has arrived on this HTTP connection.
    begun: Arc<AtomicBool>,
    /// Reports that the client has closed this HTTP connection.
    hangup: Option<SocketHangupWatcher>,
}

impl<B> tower_service::Service<Request<B>> for HttpEndpointService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    type Response = Response<HttpServiceBody>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        tower_service::Service::<Request<B>>::poll_ready(&mut self.service, cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(hangup) = &self.hangup {
            request.extensions_mut().insert(hangup.clone());
        }
        self.begun.store(true, Ordering::Relaxed);
        let path = request.uri().path();
        let legacy_sse = self.service.shared.options.legacy_sse.as_deref();
        if path == &*self.path || Some(path) == legacy_sse {
            return self.service.call(request);
        }
        Box::pin(std::future::ready(Ok(reply::empty(StatusCode::NOT_FOUND))))
    }
}

impl IntoFuture for ServeHttpBuilder {
    type Output = Result<(), Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl std::fmt::Debug for ServeHttpBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServeHttpBuilder").field("server", &self.server).finish_non_exhaustive()
    }
}
