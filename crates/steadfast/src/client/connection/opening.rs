//! How a connection begins: it is opened, and it is found out which revision the server speaks.
//!
//! 2026-07-28 is asked for first with `server/discover`, which older servers refuse or do not answer; then comes their
//! handshake. Some hang up on it: they are opened once more, and have the handshake at once. A server that is come back to is
//! asked first for what it spoke before.

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::era::{self, Decoration};
use steadfast_model::request;
use steadfast_model::{
    ClientCapabilities, DiscoverResult, EmptyParams, ErrorObject, Implementation, InitializeResult, Method, Revision,
    code,
};
use steadfast_proto::Moment;
use steadfast_proto::connection::{CallEnd, ClientHello, Hello, Limits, Peer};
use tokio::sync::watch;

use super::live::{DrivenConnection, LiveConnection, wait_until_closed};
use super::target::Connector;
use crate::client::cache::ClientCache;
use crate::client::handlers::Handlers;
use crate::client::tasks::registry::TaskRegistry;
use crate::error::{Error, ErrorKind, HTTP_STATUS, Outcome};
use crate::runtime::connection::call_result::result_of;
use crate::runtime::connection::heartbeat;
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{CallOptions, DriverCommand, Mailbox, PendingCall, Runtime, io_handle};

/// Which revisions a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Era {
    /// 2026-07-28 first, then the handshake of the older ones.
    #[default]
    Any,
    /// 2026-07-28 only.
    Modern,
    /// The handshake, offering this revision.
    Handshake(Revision),
}

/// What it takes to open a connection, as often as it is needed.
pub(crate) struct Opener {
    pub(crate) connector: Connector,
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) decoration: Decoration,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) cache: Arc<ClientCache>,
    /// The tasks that are followed, over whichever connection.
    pub(crate) followed: Arc<TaskRegistry>,
    pub(crate) era: Era,
    pub(crate) limits: Limits,
    /// For all that an opening takes.
    pub(crate) timeout: Duration,
    /// How often a server is asked whether it is there, where the revision has pings.
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// Drivers run on a thread of their own.
    pub(crate) apart: bool,
}

impl Opener {
    /// When an opening that begins now has to be done.
    pub(crate) fn deadline(&self) -> Moment {
        self.runtime.now() + self.timeout
    }

    /// Opens a connection to a server, which spoke `known` before, until the deadline. `begun` is told how to learn of its end
    /// as soon as there is something to end. If it comes to nothing, nothing of it is left when this returns. Dropping this
    /// future begins its end.
    pub(crate) async fn open(
        &self,
        known: Option<Revision>,
        deadline: Moment,
        begun: impl Fn(watch::Receiver<bool>),
    ) -> Result<LiveConnection, Error> {
        let unsent = |error| Error::transport(Outcome::NotSent, error);
        // What may fail here fails before there is anything to end.
        let apart = self.apart.then(io_handle).transpose().map_err(unsent)?;
        let mut known = known;
        loop {
            let carrier = timeout_at(&*self.runtime, Some(deadline), self.connector.open()).await;
            let carrier = carrier.ok_or_else(|| Error::not_opened_within(self.timeout))?.map_err(unsent)?;
            let driven = DrivenConnection::begin(self, carrier, apart).map_err(unsent)?;
            begun(driven.closed());
            let error = match self.greet(&driven.mailbox, known, deadline).await {
                Ok(opened) => return Ok(self.join(driven, opened)),
                Err(error) => error,
            };
            let once_more = known.is_none() && self.may_have_hung_up_on_the_probe(&error);
            let error = self.give_up(driven, error).await;
            if !once_more {
                return Err(error);
            }
            known = Some(Revision::LATEST_LEGACY);
        }
    }

    /// Whether it may be a server of the older revisions that takes nothing before their handshake, and ends. Over HTTP those
    /// refuse it.
    fn may_have_hung_up_on_the_probe(&self, error: &Error) -> bool {
        let hung_up = error.kind() == ErrorKind::Closed && error.outcome() == Outcome::Unknown;
        hung_up && self.era == Era::Any && self.connector.opens_again() && !self.connector.is_http()
    }

    fn join(&self, driven: DrivenConnection, opened: Negotiation) -> LiveConnection {
        if let Some(every) = self.keep_alive.filter(|_| !opened.peer.revision.is_modern()) {
            let (mailbox, runtime) = (Arc::clone(&driven.mailbox), Arc::clone(&self.runtime));
            self.runtime.spawn(Box::pin(keep_alive(mailbox, runtime, every, driven.closed())));
        }
        LiveConnection::new(driven, opened, self.runtime.now())
    }

    /// Ends a connection that was begun in vain, and says what for.
    async fn give_up(&self, driven: DrivenConnection, error: Error) -> Error {
        driven.shut_down();
        wait_until_closed(driven.closed()).await;
        if error.kind() == ErrorKind::TimedOut {
            return Error::not_opened_within(self.timeout);
        }
        error.of_opening().explained_by(driven.exit_reason(&*self.runtime).await)
    }

    /// Who the client is.
    pub(crate) fn hello(&self) -> Hello {
        Hello::Client(ClientHello::new(self.info.clone(), self.capabilities.clone()))
    }

    async fn greet(
        &self,
        mailbox: &Arc<Mailbox>,
        known: Option<Revision>,
        deadline: Moment,
    ) -> Result<Negotiation, Error> {
        let known = known.filter(|known| self.era == Era::Any && !known.is_modern());
        if let Some(known) = known {
            match self.handshake(mailbox, known, deadline).await {
                // Another server has taken its place.
                Err(error) if says_no(&error) => {}
                opened => return opened,
            }
        }
        self.find(mailbox, deadline).await
    }

    async fn find(&self, mailbox: &Arc<Mailbox>, deadline: Moment) -> Result<Negotiation, Error> {
        match self.era {
            Era::Handshake(revision) => self.handshake(mailbox, revision, deadline).await,
            Era::Modern => match self.negotiate(mailbox, deadline).await? {
                Discovery::Opened(opened) => Ok(*opened),
                Discovery::Older(revision) => Err(speaks_nothing_of_ours(revision)),
            },
            Era::Any => match self.negotiate(mailbox, self.halfway_to(deadline)).await {
                Ok(Discovery::Opened(opened)) => Ok(*opened),
                Ok(Discovery::Older(revision)) => self.handshake(mailbox, revision, deadline).await,
                Err(error) if is_of_an_older_server(&error) => {
                    self.handshake(mailbox, Revision::LATEST_LEGACY, deadline).await
                }
                Err(error) => match spoken(&error).into_iter().filter(|revision| !revision.is_modern()).max() {
                    Some(revision) => self.handshake(mailbox, revision, deadline).await,
                    None => Err(error),
                },
            },
        }
    }

    /// Asks, and asks again if the server refuses the revision and names one that we speak too.
    async fn negotiate(&self, mailbox: &Arc<Mailbox>, deadline: Moment) -> Result<Discovery, Error> {
        match self.discover(mailbox, deadline).await {
            Err(error) if spoken(&error).contains(&Revision::LATEST) => self.discover(mailbox, deadline).await,
            found => found,
        }
    }

    async fn discover(&self, mailbox: &Arc<Mailbox>, deadline: Moment) -> Result<Discovery, Error> {
        let ending = self.ask_who_is_there(mailbox, deadline)?.await;
        let result: DiscoverResult = result_of::<request::Discover>(ending)?;
        let revision = match result.known_versions().max() {
            Some(revision) if revision.is_modern() => revision,
            Some(older) => return Ok(Discovery::Older(older)),
            None => return Err(Error::incompatible("the server names no revision that this client speaks")),
        };
        let mut peer = Peer::new(revision);
        peer.info = result.meta.as_ref().and_then(steadfast_model::Meta::server_info);
        peer.server_capabilities = result.capabilities;
        // If the connection is closed, the first call says so.
        let _ = mailbox.post(DriverCommand::SpeakModern(Box::new(peer.clone())));
        Ok(Discovery::Opened(Box::new(Negotiation { peer, instructions: result.instructions })))
    }

    fn ask_who_is_there(&self, mailbox: &Arc<Mailbox>, deadline: Moment) -> Result<PendingCall, Error> {
        let params = EmptyParams::default();
        let text = era::params_text(Revision::LATEST, &params, &self.decoration).map_err(Error::encode)?;
        Ok(PendingCall::new(mailbox, Method::Discover, Some(text), self.options(deadline)))
    }

    async fn handshake(
        &self,
        mailbox: &Arc<Mailbox>,
        offered: Revision,
        deadline: Moment,
    ) -> Result<Negotiation, Error> {
        let ending = PendingCall::initialize(mailbox, offered, self.options(deadline)).await;
        if let CallEnd::Unreadable(why) = ending {
            return Err(Error::incompatible(why));
        }
        let result: InitializeResult = result_of::<request::Initialize>(ending)?;
        let mut peer = Peer::new(Revision::parse(&result.protocol_version).unwrap_or(offered));
        peer.info = Some(result.server_info);
        peer.server_capabilities = result.capabilities;
        Ok(Negotiation { peer, instructions: result.instructions })
    }

    /// Asks on a connection that is open whether the server is still there: any answer says so. Half of the time is left to open
    /// another if it has forgotten this one.
    pub(crate) async fn probe(&self, live: &LiveConnection, deadline: Moment) -> CallEnd {
        let deadline = self.halfway_to(deadline);
        let asked = if live.peer.revision.is_modern() {
            self.ask_who_is_there(&live.mailbox, deadline)
        } else {
            Ok(PendingCall::new(&live.mailbox, Method::Ping, None, self.options(deadline)))
        };
        match asked {
            Ok(asked) => asked.await,
            Err(error) => CallEnd::Unsendable(error.to_string()),
        }
    }

    fn options(&self, deadline: Moment) -> CallOptions {
        let left = deadline.since(self.runtime.now());
        CallOptions { timeout: Some(left), uncancellable: true, ..CallOptions::default() }
    }

    /// What is asked first may not be answered: a server of the older revisions does not know `server/discover`. Half of the
    /// time is left for what comes then.
    fn halfway_to(&self, deadline: Moment) -> Moment {
        let now = self.runtime.now();
        now + deadline.since(now) / 2
    }
}

/// What a server says when it is asked which revisions it speaks.
enum Discovery {
    /// That of the question, so that is what is spoken.
    Opened(Box<Negotiation>),
    /// This, and nothing newer: it wants a handshake.
    Older(Revision),
}

fn speaks_nothing_of_ours(revision: Revision) -> Error {
    Error::incompatible(format!(
        "the server speaks nothing newer than {revision}, which this client was told not to speak"
    ))
}

/// What a server turned out to be.
pub(crate) struct Negotiation {
    pub(crate) peer: Peer,
    pub(crate) instructions: Option<String>,
}

/// Whether it is no use to try to come back: the server was reached, and will say the same again.
pub(crate) fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Incompatible | ErrorKind::Unsendable | ErrorKind::Encode => true,
        ErrorKind::Refused => matches!(error.refusal().and_then(status_of), Some(401 | 403)),
        _ => false,
    }
}

/// Whether the server was reached, and does not want this handshake.
fn says_no(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Refused => !error.refusal().is_some_and(keeps_everyone_out),
        kind => matches!(kind, ErrorKind::Incompatible | ErrorKind::Decode),
    }
}

/// Ends a connection whose server does not answer pings any more.
async fn keep_alive(mailbox: Arc<Mailbox>, runtime: Arc<dyn Runtime>, every: Duration, closed: watch::Receiver<bool>) {
    let lost = heartbeat::ping_timeout(Arc::clone(&mailbox), runtime, every);
    if unless_stopped(wait_until_closed(closed), lost).await.is_some() {
        // If it is closed already, so much the better.
        let _ = mailbox.post(DriverCommand::ShutDown { at_once: true });
    }
}

/// The revisions that a server names that refuses ours.
fn spoken(error: &Error) -> Vec<Revision> {
    let refusal = error.refusal().filter(|refusal| refusal.code == code::UNSUPPORTED_VERSION);
    let named = refusal.and_then(|refusal| refusal.data.as_ref()?.get("supported")?.as_array());
    named.into_iter().flatten().filter_map(|name| Revision::parse(name.as_str()?)).collect()
}

/// Whether it was refused with a status that says nothing about the revision: who is not let in, or comes too often.
fn keeps_everyone_out(refusal: &ErrorObject) -> bool {
    matches!(status_of(refusal), Some(401 | 403 | 429))
}

/// The bare status that a server refused something with.
fn status_of(refusal: &ErrorObject) -> Option<u64> {
    refusal.data.as_ref()?.get(HTTP_STATUS)?.as_u64()
}

/// Whether the answer to the probe is one that a server of the older revisions may give: any refusal but those that only
/// a newer one knows, or none in time.
fn is_of_an_older_server(error: &Error) -> bool {
    let modern = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION];
    match error.kind() {
        ErrorKind::Refused => {
            error.refusal().is_none_or(|refusal| !modern.contains(&refusal.code) && !keeps_everyone_out(refusal))
        }
        ErrorKind::TimedOut | ErrorKind::Decode => true,
        _ => false,
    }
}
