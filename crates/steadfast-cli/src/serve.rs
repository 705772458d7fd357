//! `steadfast serve`: where the reference server listens.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast::prelude::*;
use steadfast::transport::Transport;
use steadfast::transport::http::HttpOptions;
use steadfast::transport::stream::Stream;
use steadfast::{Error, Limits, Outcome};

use crate::output::say;
use crate::reference::Reference;
use crate::{conformance, welcome};

const HELP: &str = "Example:
  steadfast serve --http 127.0.0.1:3210

Exit codes:
  0  served until its client left, or until a signal
  2  the command line makes no sense
  3  it could not begin: an address that is in use, for example";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Listen on a Unix socket at this path instead of standard input and output.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["tcp", "http"])]
    unix: Option<PathBuf>,
    /// Listen on this address instead of standard input and output. Only loopback addresses: there is no encryption.
    #[arg(long, value_name = "ADDR", conflicts_with = "http")]
    tcp: Option<SocketAddr>,
    /// Serve Streamable HTTP at /mcp on this address. Only loopback addresses: there is no encryption.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Serve the deprecated HTTP+SSE transport of 2024-11-05 too, at /sse, for clients that know no other.
    #[arg(long, requires = "http")]
    legacy_sse: bool,
    /// The longest message taken, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().message_bytes)]
    max_frame: usize,
    /// How many requests may run at once.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().in_flight)]
    max_in_flight: usize,
    /// How long a call may take before it is answered with an error and stopped, in milliseconds. A day unless told.
    #[arg(long, value_name = "MS")]
    deadline: Option<u64>,
    /// How long running calls may go on to answer after the client has closed its end, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    drain: u64,
    /// How long a session without a request and without an open stream is kept, in milliseconds (--http, up to revision
    /// 2025-11-25). Ten minutes unless told.
    #[arg(long, value_name = "MS")]
    session_idle: Option<u64>,
    /// Serve what the official conformance suite looks for instead of the reference server.
    #[arg(long)]
    conformance: bool,
}

impl Options {
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

/// Serves until the end. That of the process is left to `main`, which has the last lines of the log written.
pub(crate) async fn run(options: Options) -> Result<(), Error> {
    let limits = options.limits();
    let server = if options.conformance { conformance::server() } else { Reference::default().into_server() };
    match (options.unix, options.tcp, options.http) {
        (Some(path), _, _) => on_unix(server, limits, path).await,
        (None, Some(address), _) => on_tcp(server, limits, address).await,
        (None, None, Some(address)) => {
            let mut http = HttpOptions::new().with_limits(limits);
            http.session_idle = options.session_idle.map_or(http.session_idle, Duration::from_millis);
            on_http(server, http, address, options.legacy_sse).await
        }
        (None, None, None) => {
            welcome::at_a_terminal();
            server.serve_stdio().with_limits(limits).keep_process().await
        }
    }
}

/// Where clients of 2024-11-05 look for it.
const LEGACY_SSE: &str = "/sse";

async fn on_http(server: Server, options: HttpOptions, address: SocketAddr, legacy_sse: bool) -> Result<(), Error> {
    refuse_the_public(address)?;
    let options = if legacy_sse { options.legacy_sse(LEGACY_SSE) } else { options };
    let serving = server.serve_http(address).with_options(options).keep_process();
    // Without an address there is nothing to say: serving says why.
    if let Some(address) = serving.local_address() {
        say(format_args!("steadfast: listening on http://{address}/mcp"));
        if legacy_sse {
            say(format_args!("steadfast: listening on http://{address}{LEGACY_SSE} for clients of 2024-11-05"));
        }
    }
    serving.await
}

#[cfg(unix)]
async fn on_unix(server: Server, limits: Limits, path: PathBuf) -> Result<(), Error> {
    // A socket that a server left behind when it was killed is in the way of the next one; a file of another kind is not ours.
    if std::os::unix::net::UnixStream::connect(&path).is_err() {
        use std::os::unix::fs::FileTypeExt;
        let stale = std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket());
        if stale {
            std::fs::remove_file(&path).map_err(not_begun)?;
        }
    }
    let listener = tokio::net::UnixListener::bind(&path).map_err(not_begun)?;
    say(format_args!("steadfast: serving on {}", path.display()));
    let accept = async || listener.accept().await.map(|(stream, _)| Stream::from(stream));
    let ended = each(server, limits, accept).await;
    // Left behind, it would only be in the way.
    let _ = std::fs::remove_file(&path);
    ended
}

#[cfg(not(unix))]
async fn on_unix(_server: Server, _limits: Limits, _path: PathBuf) -> Result<(), Error> {
    Err(Error::usage("Unix sockets are not available on this system"))
}

async fn on_tcp(server: Server, limits: Limits, address: SocketAddr) -> Result<(), Error> {
    refuse_the_public(address)?;
    let listener = tokio::net::TcpListener::bind(address).await.map_err(not_begun)?;
    say(format_args!("steadfast: serving on {}", listener.local_addr().map_err(not_begun)?));
    let accept = async || listener.accept().await.map(|(stream, _)| Stream::from(stream));
    each(server, limits, accept).await
}

fn refuse_the_public(address: SocketAddr) -> Result<(), Error> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err(Error::usage(format!("{address} is not a loopback address, and there is no encryption and no login here")))
}

/// Serves every peer that comes, until a signal.
async fn each<T: Transport>(
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
                    // An error means that whoever says so is gone: that is a shutdown too.
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                };
                let serving = server.clone().serve(transport).with_limits(limits.clone()).with_shutdown(shutdown);
                connections.spawn(serving.into_future());
            }
            Err(error) => {
                // Too many open files, for example: it passes, or it does not; a busy loop helps neither.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // All receivers gone means that there is no connection to be told.
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
    // Without a way to hear of signals, the system ends the process itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn not_begun(error: std::io::Error) -> Error {
    Error::transport(Outcome::NotSent, error)
}
