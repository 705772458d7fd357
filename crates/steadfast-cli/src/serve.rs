//! `steadfast serve`: runs the reference server on standard input and output, a socket or HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast::prelude::*;
use steadfast::transport::Transport;
use steadfast::transport::http::HttpServerOptions;
use steadfast::transport::stream::StreamTransport;
use steadfast::{Error, Limits, Outcome};

use crate::output::eprint_line;
use crate::reference::CliReferenceServer;
use crate::{conformance, welcome};

const HELP: &str = "Example:
  steadfast serve --http 127.0.0.1:3210

Exit codes:
  0  the client closed the connection, or a signal stopped the server
  2  usage error
  3  the server could not start: an address in use, for example";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct ServeArgs {
    /// Listen on a Unix socket at this path instead of standard input and output.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["tcp", "http"])]
    unix: Option<PathBuf>,
    /// Listen on this TCP address instead of standard input and output. Only loopback addresses are allowed, since there is no
    /// encryption.
    #[arg(long, value_name = "ADDR", conflicts_with = "http")]
    tcp: Option<SocketAddr>,
    /// Serve Streamable HTTP at /mcp on this address. Only loopback addresses are allowed, since there is no encryption.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Also serve the deprecated HTTP+SSE transport of 2024-11-05 at /sse.
    #[arg(long, requires = "http")]
    legacy_sse: bool,
    /// Limit of the length of a JSON-RPC message, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().message_bytes)]
    max_frame: usize,
    /// Limit of requests in flight per connection.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().in_flight)]
    max_in_flight: usize,
    /// Deadline of a request in milliseconds: after it the handler is stopped and the response is an error. Default: one day.
    #[arg(long, value_name = "MS")]
    deadline: Option<u64>,
    /// The time that requests in flight still have to respond after the client closed its end of the connection, in
    /// milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    drain: u64,
    /// Idle timeout of an MCP session without a request or an open stream, in milliseconds (with --http, up to revision
    /// 2025-11-25). Default: ten minutes.
    #[arg(long, value_name = "MS")]
    session_idle: Option<u64>,
    /// Serve the fixtures of the official conformance suite instead of the reference server.
    #[arg(long)]
    conformance: bool,
}

impl ServeArgs {
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        let rest = limits.drain_deadline.saturating_sub(limits.drain_window);
        limits.message_bytes = self.max_frame;
        limits.in_flight = self.max_in_flight;
        limits.handler_deadline = self.deadline.map(Duration::from_millis).or(limits.handler_deadline);
        limits.drain_window = Duration::from_millis(self.drain);
        limits.drain_deadline = limits.drain_window + rest;
        limits
    }
}

/// Serves until the client closes the connection or a signal arrives. `main` exits the process, after it flushed the log.
pub(crate) async fn run(options: ServeArgs) -> Result<(), Error> {
    let limits = options.limits();
    let server = if options.conformance { conformance::server() } else { CliReferenceServer::default().into_server() };
    match (options.unix, options.tcp, options.http) {
        (Some(path), _, _) => serve_unix(server, limits, path).await,
        (None, Some(address), _) => serve_tcp(server, limits, address).await,
        (None, None, Some(address)) => {
            let mut http = HttpServerOptions::new().limits(limits);
            if let Some(milliseconds) = options.session_idle {
                http = http.session_idle_timeout(Duration::from_millis(milliseconds));
            }
            serve_http_at(server, http, address, options.legacy_sse).await
        }
        (None, None, None) => {
            welcome::print_at_terminal();
            server.serve_stdio().limits(limits).keep_process().await
        }
    }
}

/// The path at which clients of revision 2024-11-05 expect the SSE stream.
const LEGACY_SSE: &str = "/sse";

async fn serve_http_at(
    server: Server,
    options: HttpServerOptions,
    address: SocketAddr,
    legacy_sse: bool,
) -> Result<(), Error> {
    require_loopback(address)?;
    let options = if legacy_sse { options.legacy_sse(LEGACY_SSE) } else { options };
    let serving = server.serve_http(address).options(options).keep_process();
    // Without an address the bind failed: `serving` returns the error.
    if let Some(address) = serving.local_addr() {
        eprint_line(format_args!("steadfast: listening on http://{address}/mcp"));
        if legacy_sse {
            eprint_line(format_args!("steadfast: listening on http://{address}{LEGACY_SSE} for clients of 2024-11-05"));
        }
    }
    serving.await
}

#[cfg(unix)]
async fn serve_unix(server: Server, limits: Limits, path: PathBuf) -> Result<(), Error> {
    // A killed server leaves its socket file, which prevents the next bind. A file of another type is never removed.
    if std::os::unix::net::UnixStream::connect(&path).is_err() {
        use std::os::unix::fs::FileTypeExt;
        let stale = std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket());
        if stale {
            std::fs::remove_file(&path).map_err(start_error)?;
        }
    }
    let listener = tokio::net::UnixListener::bind(&path).map_err(start_error)?;
    eprint_line(format_args!("steadfast: serving on {}", path.display()));
    let accept = async || listener.accept().await.map(|(stream, _)| StreamTransport::from(stream));
    let result = serve_connections(server, limits, accept).await;
    // The next server could not bind to a leftover socket file.
    let _ = std::fs::remove_file(&path);
    result
}

#[cfg(not(unix))]
async fn serve_unix(_server: Server, _limits: Limits, _path: PathBuf) -> Result<(), Error> {
    Err(Error::usage("Unix sockets are not available on this system"))
}

async fn serve_tcp(server: Server, limits: Limits, address: SocketAddr) -> Result<(), Error> {
    require_loopback(address)?;
    let listener = tokio::net::TcpListener::bind(address).await.map_err(start_error)?;
    eprint_line(format_args!("steadfast: serving on {}", listener.local_addr().map_err(start_error)?));
    let accept = async || listener.accept().await.map(|(stream, _)| StreamTransport::from(stream));
    serve_connections(server, limits, accept).await
}

fn require_loopback(address: SocketAddr) -> Result<(), Error> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{address} is not a loopback address: this server has neither encryption nor authorization"
    )))
}

/// Serves each client that connects to a Unix or TCP socket in a tokio task of its own, until the process is signalled to stop.
async fn serve_connections<T: Transport>(
    server: Server,
    limits: Limits,
    accept: impl AsyncFn() -> std::io::Result<T>,
) -> Result<(), Error> {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut connections = tokio::task::JoinSet::new();
    let mut signal = std::pin::pin!(signal());
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut signal => break,
            accepted = accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok(transport) => {
                let mut stopped = stopped.clone();
                let shutdown = async move {
                    // An error means that the sender was dropped: that is a shutdown too.
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                };
                let serving = server.clone().serve(transport).limits(limits.clone()).shutdown_when(shutdown);
                connections.spawn(serving.into_future());
            }
            Err(error) => {
                // Too many open files, for example. Wait instead of retrying in a busy loop.
                tracing::warn!(%error, "failed to accept a connection on the Unix or TCP socket; trying again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // An error means that there is no connection left to shut down.
    let _ = stop.send(true);
    connections.join_all().await;
    Ok(())
}

async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    // If signals cannot be handled, their default action ends the process.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn start_error(error: std::io::Error) -> Error {
    Error::transport(Outcome::NotSent, error)
}
