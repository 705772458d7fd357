//! Opening a connection and negotiating its revision.
//!
//! The client first sends `server/discover` (2026-07-28), which older servers refuse or do not respond to; then the
//! client sends `initialize`, the handshake of older revisions. Some older servers close the connection on
//! `server/discover`: the client opens another connection and sends `initialize` at once. When a client reconnects, it
//! first tries the revision that the server spoke before.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::request;
use steadfast_model::{
    ClientCapabilities, DiscoverResult, EmptyParams, ErrorObject, Implementation, InitializeResult, Revision, code,
};
use steadfast_proto::Moment;
use steadfast_proto::connection::{CallEnd, ClientDescription, ClientOrServerDescription, Limits, PeerInfo};
use tokio::sync::watch;

use super::live::{ClientConnection, ClientDriverHandle, wait_until_closed};
use super::target::TransportConnector;
use crate::client::cache::ClientCache;
use crate::client::dispatch::{ClientOutboundRequestSender, ClientRequestPipeline};
use crate::client::handlers::ClientHandlers;
use crate::client::tasks::registry::FollowedTaskRegistry;
use crate::error::{Error, ErrorKind, HTTP_STATUS, Outcome};
use crate::runtime::connection::call_result::result_of;
use crate::runtime::connection::heartbeat;
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{DriverCommand, DriverMailbox, OutboundCallOptions, PendingCall, Runtime, io_handle};

/// The revisions that a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NegotiationMode {
    /// The client tries 2026-07-28 first, then the `initialize` handshake of older revisions.
    #[default]
    Auto,
    /// The client tries only the protocol revision 2026-07-28, without the `initialize` handshake.
    Stateless,
    /// The client tries only the `initialize` handshake, and offers this revision.
    Handshake(Revision),
}

/// Opens the connections of one client.
pub(crate) struct ClientConnectionOpener {
    pub(crate) connector: TransportConnector,
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) dispatch: Arc<ClientRequestPipeline>,
    pub(crate) handlers: Arc<ClientHandlers>,
    pub(crate) cache: Arc<ClientCache>,
    pub(crate) task_registry: Arc<FollowedTaskRegistry>,
    pub(crate) negotiation: NegotiationMode,
    pub(crate) limits: Limits,
    /// The timeout for opening a connection, including the negotiation.
    pub(crate) timeout: Duration,
    /// The interval of pings, in revisions that have them.
    pub(crate) ping_interval: Option<Duration>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Whether the drivers of connections run on the I/O loop of this library, and not on the worker threads.
    pub(crate) use_io_loop: bool,
}

impl ClientConnectionOpener {
    /// The deadline for opening a connection, if the client begins to open it now.
    pub(crate) fn deadline(&self) -> Moment {
        self.runtime.now() + self.timeout
    }

    /// Opens a connection before the deadline. `last_revision` is the revision that the server spoke before, if it is
    /// known. `on_opened` is called for each transport that is opened, with a receiver for the signal of its close. If
    /// no connection can be opened, all opened transports are closed when this function returns. Dropping the returned
    /// future begins to close the opened transports.
    pub(crate) async fn open(
        &self,
        last_revision: Option<Revision>,
        deadline: Moment,
        on_opened: impl Fn(watch::Receiver<bool>),
    ) -> Result<ClientConnection, Error> {
        let not_sent = |error| Error::transport(Outcome::NotSent, error);
        // Before the transport is opened: if this fails, there is nothing to close.
        let io_handle = self.use_io_loop.then(io_handle).transpose().map_err(not_sent)?;
        let mut last_revision = last_revision;
        loop {
            let transport = timeout_at(&*self.runtime, Some(deadline), self.connector.open()).await;
            let transport = transport.ok_or_else(|| Error::open_timed_out(self.timeout))?.map_err(not_sent)?;
            let driven = ClientDriverHandle::spawn(self, transport, io_handle.as_ref()).map_err(not_sent)?;
            on_opened(driven.closed());
            let error = match self.negotiate(&driven.mailbox, last_revision, deadline).await {
                Ok(negotiation) => return Ok(self.finish(driven, negotiation)),
                Err(error) => error,
            };
            let retry = last_revision.is_none() && self.may_have_closed_on_discover(&error);
            let error = self.abort(driven, error).await;
            if !retry {
                return Err(error);
            }
            last_revision = Some(Revision::LATEST_STATEFUL);
        }
    }

    /// Whether the error may be due to an older server that closes the connection if the first request is not
    /// `initialize`. An older server over HTTP does not close the connection, but responds with an error.
    fn may_have_closed_on_discover(&self, error: &Error) -> bool {
        let closed = error.kind() == ErrorKind::Closed && error.outcome() == Outcome::Unknown;
        closed && self.negotiation == NegotiationMode::Auto && self.connector.can_reopen() && !self.connector.is_http()
    }

    fn finish(&self, driven: ClientDriverHandle, negotiation: NegotiationResult) -> ClientConnection {
        if let Some(interval) = self.ping_interval.filter(|_| !negotiation.peer.revision.is_stateless()) {
            let (mailbox, runtime) = (Arc::clone(&driven.mailbox), Arc::clone(&self.runtime));
            self.runtime.spawn(Box::pin(ping_interval(mailbox, runtime, interval, driven.closed())));
        }
        ClientConnection::new(driven, &self.dispatch, negotiation, self.runtime.now())
    }

    /// Closes a connection whose negotiation failed, and adds the exit reason of the server to the error.
    async fn abort(&self, driven: ClientDriverHandle, error: Error) -> Error {
        driven.shut_down();
        wait_until_closed(driven.closed()).await;
        if error.kind() == ErrorKind::TimedOut {
            return Error::open_timed_out(self.timeout);
        }
        error.into_open_error().with_exit_reason(driven.exit_reason(&*self.runtime).await)
    }

    /// The name, version and capabilities of the client, for the handshake.
    pub(crate) fn hello(&self) -> ClientOrServerDescription {
        let mut hello = ClientDescription::new(self.info.clone(), self.capabilities.clone());
        hello.vendor_methods = self.handlers.vendor_methods().collect();
        ClientOrServerDescription::Client(hello)
    }

    /// Negotiates the revision: tries the last revision of the server, then the revisions of the client's
    /// [`NegotiationMode`].
    async fn negotiate(
        &self,
        mailbox: &Arc<DriverMailbox>,
        last_revision: Option<Revision>,
        deadline: Moment,
    ) -> Result<NegotiationResult, Error> {
        let stateful =
            last_revision.filter(|revision| self.negotiation == NegotiationMode::Auto && !revision.is_stateless());
        if let Some(revision) = stateful {
            match self.handshake(mailbox, revision, deadline).await {
                // Another server has taken the place of the last one.
                Err(error) if rejects_handshake(&error) => {}
                result => return result,
            }
        }
        self.negotiate_by_mode(mailbox, deadline).await
    }

    async fn negotiate_by_mode(
        &self,
        mailbox: &Arc<DriverMailbox>,
        deadline: Moment,
    ) -> Result<NegotiationResult, Error> {
        match self.negotiation {
            NegotiationMode::Handshake(revision) => self.handshake(mailbox, revision, deadline).await,
            NegotiationMode::Stateless => match self.discover_with_retry(mailbox, deadline).await? {
                DiscoveryOutcome::Stateless(negotiation) => Ok(*negotiation),
                DiscoveryOutcome::Stateful(revision) => Err(Error::incompatible(format!(
                    "the newest revision of the server is {revision}, and `NegotiationMode::Stateless` allows only newer ones"
                ))),
            },
            NegotiationMode::Auto => match self.discover_with_retry(mailbox, self.halfway_to(deadline)).await {
                Ok(DiscoveryOutcome::Stateless(negotiation)) => Ok(*negotiation),
                Ok(DiscoveryOutcome::Stateful(revision)) => self.handshake(mailbox, revision, deadline).await,
                Err(error) if may_be_stateful_server(&error) => {
                    self.handshake(mailbox, Revision::LATEST_STATEFUL, deadline).await
                }
                Err(error) => {
                    match supported_revisions(&error).into_iter().filter(|revision| !revision.is_stateless()).max() {
                        Some(revision) => self.handshake(mailbox, revision, deadline).await,
                        None => Err(error),
                    }
                }
            },
        }
    }

    /// Sends `server/discover`, and once more if the server refuses the revision and lists one that this client supports.
    async fn discover_with_retry(
        &self,
        mailbox: &Arc<DriverMailbox>,
        deadline: Moment,
    ) -> Result<DiscoveryOutcome, Error> {
        let result = self.discover(mailbox, Revision::LATEST, deadline).await;
        let Err(error) = &result else { return result };
        match supported_revisions(error).into_iter().filter(|revision| revision.is_stateless()).max() {
            Some(revision) => self.discover(mailbox, revision, deadline).await,
            None => result,
        }
    }

    async fn discover(
        &self,
        mailbox: &Arc<DriverMailbox>,
        revision: Revision,
        deadline: Moment,
    ) -> Result<DiscoveryOutcome, Error> {
        let sender = ClientOutboundRequestSender::new(&self.dispatch, mailbox, revision);
        let end = sender.send::<request::Discover>(&EmptyParams::default(), self.options(deadline))?.await;
        let result: DiscoverResult = result_of::<request::Discover>(end)?;
        let revision = match result.known_versions().max() {
            Some(revision) if revision.is_stateless() => revision,
            Some(stateful) => return Ok(DiscoveryOutcome::Stateful(stateful)),
            None => return Err(Error::incompatible("the server supports no revision that this client supports")),
        };
        let mut peer = PeerInfo::new(revision);
        peer.info = result.meta.as_ref().and_then(steadfast_model::Meta::server_info);
        peer.server_capabilities = result.capabilities;
        // If the connection is closed, the first call fails with that.
        let _ = mailbox.post(DriverCommand::OpenStateless(Box::new(peer.clone())));
        Ok(DiscoveryOutcome::Stateless(Box::new(NegotiationResult { peer, instructions: result.instructions })))
    }

    async fn handshake(
        &self,
        mailbox: &Arc<DriverMailbox>,
        offered: Revision,
        deadline: Moment,
    ) -> Result<NegotiationResult, Error> {
        let end = PendingCall::initialize(mailbox, offered, self.options(deadline)).await;
        if let CallEnd::Unreadable(why) = end {
            return Err(Error::incompatible(why));
        }
        let result: InitializeResult = result_of::<request::Initialize>(end)?;
        let mut peer = PeerInfo::new(Revision::parse(&result.protocol_version).unwrap_or(offered));
        peer.info = Some(result.server_info);
        peer.server_capabilities = result.capabilities;
        Ok(NegotiationResult { peer, instructions: result.instructions })
    }

    /// Sends a request over an open connection to see whether the server still responds: any response will do. The
    /// probe uses at most half of the time, so that the rest is left to open another connection if the server has
    /// forgotten this one.
    pub(crate) async fn probe(&self, live: &ClientConnection, deadline: Moment) -> CallEnd {
        let deadline = self.halfway_to(deadline);
        let (params, options) = (EmptyParams::default(), self.options(deadline));
        let request = if live.peer.revision.is_stateless() {
            live.sender.send::<request::Discover>(&params, options)
        } else {
            live.sender.send::<request::Ping>(&params, options)
        };
        match request {
            Ok(request) => request.await,
            Err(error) => CallEnd::Unsendable(error.to_string()),
        }
    }

    fn options(&self, deadline: Moment) -> OutboundCallOptions {
        let left = deadline.since(self.runtime.now());
        OutboundCallOptions {
            timeout: Some(left),
            uncancellable: true,
            exempt_from_limit: true,
            ..OutboundCallOptions::default()
        }
    }

    /// The deadline of the first request to a server, which may not respond to it: half of the remaining time is left for a
    /// second request.
    fn halfway_to(&self, deadline: Moment) -> Moment {
        let now = self.runtime.now();
        now + deadline.since(now) / 2
    }
}

/// The result of `server/discover`, which tells whether the server needs the `initialize` handshake.
enum DiscoveryOutcome {
    /// The server speaks 2026-07-28 or newer: the negotiation is complete.
    Stateless(Box<NegotiationResult>),
    /// The newest revision of the server is this older one, which needs the `initialize` handshake.
    Stateful(Revision),
}

/// The result of the negotiation with a server, which has the revision and the description of the server.
pub(crate) struct NegotiationResult {
    pub(crate) peer: PeerInfo,
    pub(crate) instructions: Option<String>,
}

/// Whether another attempt to connect would fail in the same way as the one with this error.
pub(crate) fn is_permanent(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Incompatible | ErrorKind::Unsendable | ErrorKind::Encode => true,
        ErrorKind::Refused => matches!(error.refusal().and_then(http_status), Some(401 | 403)),
        _ => false,
    }
}

/// Whether this error means that the server responded to `initialize`, and does not accept the handshake.
fn rejects_handshake(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Refused => !error.refusal().is_some_and(is_auth_or_rate_limit),
        kind => matches!(kind, ErrorKind::Incompatible | ErrorKind::Decode),
    }
}

/// Pings the server, and closes the connection when the server does not respond.
async fn ping_interval(
    mailbox: Arc<DriverMailbox>,
    runtime: Arc<dyn Runtime>,
    interval: Duration,
    closed: watch::Receiver<bool>,
) {
    let lost = heartbeat::ping_timeout(Arc::clone(&mailbox), runtime, interval);
    if unless_stopped(wait_until_closed(closed), lost).await.is_some() {
        // An error means that it is closed already.
        let _ = mailbox.post(DriverCommand::ShutDown { at_once: true });
    }
}

/// The revisions that a server lists when it refuses the revision of the client.
fn supported_revisions(error: &Error) -> Vec<Revision> {
    let refusal = error.refusal().filter(|refusal| refusal.code == code::UNSUPPORTED_VERSION);
    let listed = refusal.and_then(|refusal| refusal.data.as_ref()?.get("supported")?.as_array());
    listed.into_iter().flatten().filter_map(|name| Revision::parse(name.as_str()?)).collect()
}

/// Whether the HTTP status of a refusal says nothing about the revision of the server: unauthorized, forbidden, or too
/// many requests.
fn is_auth_or_rate_limit(refusal: &ErrorObject) -> bool {
    matches!(http_status(refusal), Some(401 | 403 | 429))
}

/// The HTTP status of a refusal without a JSON-RPC error.
fn http_status(refusal: &ErrorObject) -> Option<u64> {
    refusal.data.as_ref()?.get(HTTP_STATUS)?.as_u64()
}

/// Whether an older server may have caused this error in reply to `server/discover`: any error except those that only
/// newer servers know, or a timeout.
fn may_be_stateful_server(error: &Error) -> bool {
    let modern_codes = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION];
    match error.kind() {
        ErrorKind::Refused => error
            .refusal()
            .is_none_or(|refusal| !modern_codes.contains(&refusal.code) && !is_auth_or_rate_limit(refusal)),
        ErrorKind::TimedOut | ErrorKind::Decode => true,
        _ => false,
    }
}
