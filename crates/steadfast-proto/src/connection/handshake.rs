//! Who speaks which revision: the initialize handshake of the older ones, and the metadata of each request in 2026-07-28.
//!
//! Both may be spoken on one connection. A request is of 2026-07-28 if its `_meta` names a protocol version; everything
//! else belongs to the handshake. The table of methods is asked whether a method exists for the revision and side, and
//! what was declared whether it is offered; nothing else here compares revisions.

use std::sync::Arc;

use steadfast_model::era::{self, Decoration};
use steadfast_model::{
    ClientCapabilities, DiscoverResult, ErrorObject, Implementation, InitializeParams, InitializeResult, LoggingLevel,
    Method, ProgressToken, RequestId, Revision, ServerCapabilities, SetLevelParams, meta,
};

use super::event::{Event, Peer, ProtocolWarning};
use super::outbound::Call;
use super::outbox::TransmitKind;
use super::{CallKey, CallRefused, Connection, Stage};
use crate::encode::{self, Answer};
use crate::envelope::Params;
use crate::{Moment, json};

/// The revisions that are spoken with metadata on each request.
const MODERN: &[Revision] = &[Revision::V2026_07_28];

/// How much a client may say of itself with each request: read, it takes many times the room of its text.
const LONGEST_DESCRIPTION: usize = 64 * 1024;

/// What we are, as we tell the peer.
#[derive(Debug, Clone)]
pub enum Hello {
    /// We are a server.
    Server(ServerHello),
    /// We are a client.
    Client(ClientHello),
}

/// What a server says of itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerHello {
    /// Its name and version.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// How to use it, for a model.
    pub instructions: Option<String>,
    /// What its results say of it in 2026-07-28.
    decoration: Decoration,
}

impl ServerHello {
    /// A server with that name that offers that.
    pub fn new(info: Implementation, capabilities: ServerCapabilities) -> Self {
        let decoration = Decoration::of_server(&info);
        Self { info, capabilities, instructions: None, decoration }
    }

    /// What its results say of it in 2026-07-28.
    pub(super) fn decoration(&self) -> &Decoration {
        &self.decoration
    }
}

/// What a client says of itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientHello {
    /// Its name and version.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: ClientCapabilities,
}

impl ClientHello {
    /// A client with that name that offers that.
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self { info, capabilities }
    }
}

impl From<ServerHello> for Hello {
    fn from(hello: ServerHello) -> Self {
        Self::Server(hello)
    }
}

impl From<ClientHello> for Hello {
    fn from(hello: ClientHello) -> Self {
        Self::Client(hello)
    }
}

impl Hello {
    /// Whether we may send this message in that revision.
    pub(super) fn may_send(&self, method: Method, revision: Revision) -> bool {
        match self {
            Self::Server(_) => method.from_server_in(revision),
            Self::Client(_) => method.from_client_in(revision),
        }
    }

    /// Whether the peer may send us this message in that revision.
    pub(super) fn may_receive(&self, method: Method, revision: Revision) -> bool {
        match self {
            Self::Server(_) => method.from_client_in(revision),
            Self::Client(_) => method.from_server_in(revision),
        }
    }

    /// Whether we declared what this method needs of us.
    fn offers(&self, method: Method, revision: Revision) -> bool {
        let Some(capability) = method.capability().filter(|capability| capability.exists_in(revision)) else {
            return true;
        };
        match self {
            Self::Server(hello) => hello.capabilities.has(capability),
            Self::Client(hello) => hello.capabilities.has(capability),
        }
    }
}

/// How one request is spoken.
pub(super) struct Wire {
    pub(super) peer: Arc<Peer>,
    pub(super) progress_token: Option<ProgressToken>,
    pub(super) log_level: Option<LoggingLevel>,
}

/// A peer as a 2026-07-28 request described it, with the text of the description: the next request that says the same is
/// from the same peer, and need not be read again.
#[derive(Debug, Clone)]
pub(super) struct ModernPeer {
    info: Option<Box<str>>,
    capabilities: Box<str>,
    peer: Arc<Peer>,
}

/// The members of `_meta` that concern the protocol, as JSON text.
#[derive(Default)]
struct MetaText<'a> {
    version: Option<&'a str>,
    info: Option<&'a str>,
    capabilities: Option<&'a str>,
    log_level: Option<&'a str>,
    progress_token: Option<&'a str>,
}

impl<'a> MetaText<'a> {
    fn of(params: &Params<'a>) -> Self {
        let mut found = Self::default();
        let Some(text) = params.get("_meta") else { return found };
        json::each_member(text, |key, value| {
            let slot = match &*key {
                meta::key::PROTOCOL_VERSION => &mut found.version,
                meta::key::CLIENT_INFO => &mut found.info,
                meta::key::CLIENT_CAPABILITIES => &mut found.capabilities,
                meta::key::LOG_LEVEL => &mut found.log_level,
                meta::key::PROGRESS_TOKEN => &mut found.progress_token,
                _ => return,
            };
            *slot = Some(value);
        });
        found
    }
}

/// Commands of a client.
impl Connection {
    /// Sends `initialize`. When it is answered, `notifications/initialized` follows by itself and [`Event::Opened`] tells
    /// which revision is spoken.
    pub fn initialize(
        &mut self,
        now: Moment,
        call: CallKey,
        mut request: Call,
        offered: Revision,
    ) -> Result<(), CallRefused> {
        let Hello::Client(hello) = &*self.hello else { return Err(CallRefused::NotInRevision) };
        let params = InitializeParams::new(offered.as_str(), hello.capabilities.clone(), hello.info.clone());
        request.method = Method::Initialize;
        // Types of ours with string keys and finite numbers: they can be written.
        request.params = era::params_text(offered, &params, &Decoration::none()).ok();
        request.cancellable = false;
        // Whatever it answered to `server/discover`, it is asked to speak an older revision now, in which it sends requests.
        self.discovered = false;
        self.open_call(now, call, request)
    }

    /// The peer speaks 2026-07-28: there is no handshake, and requests of ours carry their own metadata.
    pub fn speak_modern(&mut self, peer: Peer) {
        if self.stage.is_closed() {
            return;
        }
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        self.initialized = true;
        if self.stage == Stage::Opening {
            self.stage = Stage::Ready;
        }
        self.events.push_back(Event::Opened(peer));
    }
}

impl Connection {
    /// Whether the peer is known to speak 2026-07-28.
    pub(super) fn speaks_modern(&self) -> bool {
        self.peer.as_ref().map_or(self.modern.is_some(), |peer| peer.revision.is_modern())
    }

    /// Whether whatever the peer sends stays without an answer: since 2026-07-28 servers send no requests, and clients no
    /// answers.
    pub(super) fn answers_nothing(&self) -> bool {
        matches!(*self.hello, Hello::Client(_)) && self.peer.as_ref().is_some_and(|peer| peer.revision.is_modern())
    }

    /// Whether requests of the peer stay without an answer: also those that a server sends behind its answer to
    /// `server/discover`, before it was looked at.
    pub(super) fn ignores_requests(&self) -> bool {
        let discovered = self.discovered && self.peer.is_none() && !crate::mutant!(AnswerBehindDiscover);
        self.answers_nothing() || discovered
    }

    /// Whether an error without an id says so with `null`: until 2025-11-25 made the member optional.
    pub(super) fn writes_null_id(&self) -> bool {
        match &self.peer {
            Some(peer) => peer.revision < Revision::V2025_11_25,
            None => self.modern.is_none(),
        }
    }

    /// Finds out how a request is spoken.
    pub(super) fn wire_of(&mut self, method: &str, params: &Params<'_>) -> Result<Wire, ErrorObject> {
        let meta = MetaText::of(params);
        let progress_token = meta.progress_token.and_then(RequestId::parse).map(ProgressToken);
        let Some(version) = meta.version else {
            return Ok(Wire { peer: self.legacy_peer(method)?, progress_token, log_level: None });
        };
        let peer = self.modern_peer(version, &meta)?;
        let log_level = match meta.log_level {
            None => None,
            Some(text) => Some(serde_json::from_str(text).map_err(|_| {
                ErrorObject::invalid_params(format!("_meta[\"{}\"] is no log level", meta::key::LOG_LEVEL))
            })?),
        };
        Ok(Wire { peer, progress_token, log_level })
    }

    fn legacy_peer(&self, method: &str) -> Result<Arc<Peer>, ErrorObject> {
        if let Some(peer) = &self.peer {
            return Ok(Arc::clone(peer));
        }
        let opens = method == Method::Initialize.name() || method == Method::Ping.name();
        if opens || matches!(*self.hello, Hello::Client(_)) {
            return Ok(Arc::new(Peer::new(Revision::LATEST_LEGACY)));
        }
        Err(ErrorObject::invalid_params(format!(
            "nothing is known of the client yet: begin with initialize (revisions up to {}), or name the protocol version in \
             params._meta[\"{}\"] of each request ({})",
            Revision::LATEST_LEGACY,
            meta::key::PROTOCOL_VERSION,
            Revision::LATEST,
        )))
    }

    fn modern_peer(&mut self, version: &str, meta: &MetaText<'_>) -> Result<Arc<Peer>, ErrorObject> {
        let Ok(version) = serde_json::from_str::<String>(version) else {
            return Err(ErrorObject::invalid_params(format!(
                "_meta[\"{}\"] must be a string",
                meta::key::PROTOCOL_VERSION
            )));
        };
        let revision = Revision::parse(&version).filter(|revision| MODERN.contains(revision));
        let Some(revision) = revision else { return Err(ErrorObject::unsupported_version(&version, MODERN)) };
        let Some(capabilities) = meta.capabilities else {
            let missing = format!("_meta[\"{}\"] is missing", meta::key::CLIENT_CAPABILITIES);
            return Err(ErrorObject::invalid_params(missing));
        };
        if let Some(known) = &self.modern
            && known.peer.revision == revision
            && known.info.as_deref() == meta.info
            && &*known.capabilities == capabilities
        {
            return Ok(Arc::clone(&known.peer));
        }
        if capabilities.len() + meta.info.map_or(0, str::len) > LONGEST_DESCRIPTION {
            let message = format!("what the client says of itself is longer than {LONGEST_DESCRIPTION} bytes");
            return Err(ErrorObject::invalid_params(message));
        }
        let mut peer = Peer::new(revision);
        peer.client_capabilities = serde_json::from_str(capabilities).map_err(|error| {
            ErrorObject::invalid_params(format!("_meta[\"{}\"]: {error}", meta::key::CLIENT_CAPABILITIES))
        })?;
        if let Some(info) = meta.info {
            peer.info = serde_json::from_str(info).map_err(|error| {
                ErrorObject::invalid_params(format!("_meta[\"{}\"]: {error}", meta::key::CLIENT_INFO))
            })?;
        }
        let peer = Arc::new(peer);
        self.modern = Some(ModernPeer {
            info: meta.info.map(Into::into),
            capabilities: capabilities.into(),
            peer: Arc::clone(&peer),
        });
        Ok(peer)
    }

    /// Whether the method exists for the peer, and is offered.
    pub(super) fn gate(&self, name: &str, wire: &Wire) -> Result<Method, ErrorObject> {
        let revision = wire.peer.revision;
        Method::from_name(name)
            .filter(|method| !method.is_notification())
            .filter(|method| self.hello.may_receive(*method, revision) && self.hello.offers(*method, revision))
            .ok_or_else(|| ErrorObject::method_not_found(name))
    }

    /// The methods whose answer is a matter of the connection itself.
    pub(super) fn answer_itself(
        &mut self,
        id: &RequestId,
        method: Method,
        params: &Params<'_>,
        wire: &Wire,
    ) -> Option<Answer> {
        match method {
            Method::Ping => Some(Answer::result(id, |out| {
                out.extend_from_slice(b"{}");
                Ok::<_, std::convert::Infallible>(())
            })),
            Method::Initialize => Some(self.take_initialize(id, params)),
            Method::Discover => Some(self.discover(id, wire)),
            Method::SetLevel => Some(self.set_level(id, params)),
            _ => None,
        }
    }

    fn take_initialize(&mut self, id: &RequestId, params: &Params<'_>) -> Answer {
        let hello = Arc::clone(&self.hello);
        let Hello::Server(hello) = &*hello else {
            return Answer::error(id, &ErrorObject::method_not_found(Method::Initialize.name()));
        };
        if self.peer.is_some() {
            return Answer::error(
                id,
                &ErrorObject::invalid_request("initialize was done before; it is done once a connection"),
            );
        }
        let request: InitializeParams = match serde_json::from_str(params.text()) {
            Ok(request) => request,
            Err(error) => return Answer::error(id, &ErrorObject::invalid_params(format!("initialize: {error}"))),
        };
        let offered = Revision::parse(&request.protocol_version).filter(|revision| !revision.is_modern());
        let revision = offered.unwrap_or(Revision::LATEST_LEGACY);
        let mut peer = Peer::new(revision);
        peer.info = Some(request.client_info);
        peer.client_capabilities = request.capabilities;
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        if self.stage == Stage::Opening {
            self.stage = Stage::Ready;
        }
        self.events.push_back(Event::Opened(peer));
        let mut result = InitializeResult::new(revision.as_str(), hello.capabilities.clone(), hello.info.clone());
        result.instructions.clone_from(&hello.instructions);
        Answer::result(id, |out| era::write_result(revision, &result, &Decoration::none(), out))
    }

    fn discover(&self, id: &RequestId, wire: &Wire) -> Answer {
        let Hello::Server(hello) = &*self.hello else {
            return Answer::error(id, &ErrorObject::method_not_found(Method::Discover.name()));
        };
        let mut result = DiscoverResult::new(MODERN, hello.capabilities.clone());
        result.instructions.clone_from(&hello.instructions);
        Answer::result(id, |out| era::write_result(wire.peer.revision, &result, &hello.decoration, out))
    }

    fn set_level(&mut self, id: &RequestId, params: &Params<'_>) -> Answer {
        match serde_json::from_str::<SetLevelParams>(params.text()) {
            Ok(params) => {
                self.log_level = params.level;
                Answer::serialized(id, &serde_json::Map::new())
            }
            Err(error) => Answer::error(id, &ErrorObject::invalid_params(format!("logging/setLevel: {error}"))),
        }
    }

    pub(super) fn take_notification(&mut self, now: Moment, name: &str, params: &Params<'_>) {
        let revision = self.peer.as_ref().map_or(Revision::LATEST, |peer| peer.revision);
        let known = Method::from_name(name).filter(|method| method.is_notification());
        let Some(method) = known.filter(|method| self.hello.may_receive(*method, revision)) else {
            return self.odd(ProtocolWarning::UnknownNotification(name.chars().take(128).collect()));
        };
        match method {
            Method::Cancelled => self.take_cancelled(params),
            Method::Progress => self.take_progress(now, params),
            Method::Initialized => self.take_initialized(),
            _ => {
                let call = self.subscription_of(params);
                self.events.push_back(Event::Notification { call, method, params: params.to_owned() });
            }
        }
    }

    fn take_initialized(&mut self) {
        if self.peer.is_some() && !self.initialized {
            self.initialized = true;
            self.release_calls();
        }
    }

    /// A call of ours was answered. If it was `initialize`, the connection is open now.
    pub(super) fn note_initialized(&mut self, result: &str) -> Result<(), String> {
        let result: InitializeResult =
            serde_json::from_str(result).map_err(|error| format!("the answer to initialize: {error}"))?;
        let revision = Revision::parse(&result.protocol_version)
            .filter(|revision| !revision.is_modern())
            .ok_or_else(|| format!("the server chose revision {}, which we do not speak", result.protocol_version))?;
        let mut peer = Peer::new(revision);
        peer.info = Some(result.server_info);
        peer.server_capabilities = result.capabilities;
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        if self.stage == Stage::Opening {
            self.stage = Stage::Ready;
        }
        let body = encode::notification(Method::Initialized.name(), None);
        self.outbox.push(TransmitKind::Notification(Method::Initialized), body, None);
        self.initialized = true;
        self.events.push_back(Event::Opened(peer));
        self.release_calls();
        Ok(())
    }
}
