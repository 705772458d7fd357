//! The metadata of a request of the peer: the revision that it is written in, and the client that sends it.
//!
//! A request of a stateless revision names the revision and describes its client in `_meta`. Any other request belongs to the
//! revision of the handshake.

use std::sync::Arc;

use steadfast_model::{ErrorObject, LoggingLevel, Method, ProgressToken, RequestId, Revision, meta};

use super::ClientOrServerDescription;
use crate::connection::{Connection, PeerInfo};
use crate::envelope::Params;
use crate::json;

/// The maximum length of the description of a client in `_meta`, in bytes. The decoded description of a client takes many times
/// the memory of its text.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;

/// The metadata of one request of the peer: the peer that sent it, its progress token and its log level.
pub(in crate::connection) struct RequestMetadata {
    pub(in crate::connection) peer: Arc<PeerInfo>,
    pub(in crate::connection) progress_token: Option<ProgressToken>,
    pub(in crate::connection) log_level: Option<LoggingLevel>,
}

/// A client as a stateless request described it, with the text of the description: if the next request has the same text, the
/// text is not decoded again.
#[derive(Debug, Clone)]
pub(in crate::connection) struct StatelessClientDescription {
    info: Option<Box<str>>,
    capabilities: Box<str>,
    pub(in crate::connection) peer: Arc<PeerInfo>,
}

/// The members of `_meta` that the protocol defines, as JSON text.
#[derive(Default)]
struct RawMetaMembers<'a> {
    version: Option<&'a str>,
    info: Option<&'a str>,
    capabilities: Option<&'a str>,
    log_level: Option<&'a str>,
    progress_token: Option<&'a str>,
}

impl<'a> RawMetaMembers<'a> {
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

impl Connection {
    /// Reads the metadata of a request.
    pub(in crate::connection) fn read_context(
        &mut self,
        method: &str,
        params: &Params<'_>,
    ) -> Result<RequestMetadata, ErrorObject> {
        let meta = RawMetaMembers::of(params);
        let progress_token = meta.progress_token.and_then(RequestId::parse).map(ProgressToken::from);
        let Some(version) = meta.version else {
            return Ok(RequestMetadata { peer: self.stateful_peer(method)?, progress_token, log_level: None });
        };
        let peer = self.stateless_peer(version, &meta)?;
        let log_level = match meta.log_level {
            None => None,
            Some(text) => Some(serde_json::from_str(text).map_err(|_| {
                ErrorObject::invalid_params(format!("_meta[\"{}\"] is not a log level", meta::key::LOG_LEVEL))
            })?),
        };
        Ok(RequestMetadata { peer, progress_token, log_level })
    }

    fn stateful_peer(&self, method: &str) -> Result<Arc<PeerInfo>, ErrorObject> {
        if let Some(peer) = &self.peer {
            return Ok(Arc::clone(peer));
        }
        let is_opening_call = method == Method::Initialize.name() || method == Method::Ping.name();
        if is_opening_call || matches!(*self.hello, ClientOrServerDescription::Client(_)) {
            return Ok(Arc::new(PeerInfo::new(Revision::LATEST_STATEFUL)));
        }
        Err(ErrorObject::invalid_params(format!(
            "the connection is not initialized: send initialize first (revisions up to {}), or name the protocol version in \
             params._meta[\"{}\"] of each request ({})",
            Revision::LATEST_STATEFUL,
            meta::key::PROTOCOL_VERSION,
            Revision::LATEST,
        )))
    }

    fn stateless_peer(&mut self, version: &str, meta: &RawMetaMembers<'_>) -> Result<Arc<PeerInfo>, ErrorObject> {
        let Ok(version) = serde_json::from_str::<String>(version) else {
            return Err(ErrorObject::invalid_params(format!(
                "_meta[\"{}\"] must be a string",
                meta::key::PROTOCOL_VERSION
            )));
        };
        let revision = Revision::parse(&version).filter(|revision| revision.is_stateless());
        let Some(revision) = revision else {
            return Err(ErrorObject::unsupported_version(&version, Revision::stateless()));
        };
        let Some(capabilities) = meta.capabilities else {
            let missing = format!("_meta[\"{}\"] is missing", meta::key::CLIENT_CAPABILITIES);
            return Err(ErrorObject::invalid_params(missing));
        };
        if let Some(known) = &self.stateless_client
            && known.peer.revision == revision
            && known.info.as_deref() == meta.info
            && &*known.capabilities == capabilities
        {
            return Ok(Arc::clone(&known.peer));
        }
        if capabilities.len() + meta.info.map_or(0, str::len) > MAX_DESCRIPTION_BYTES {
            let message = format!("the client info and capabilities are longer than {MAX_DESCRIPTION_BYTES} bytes");
            return Err(ErrorObject::invalid_params(message));
        }
        let mut peer = PeerInfo::new(revision);
        peer.client_capabilities = serde_json::from_str(capabilities).map_err(|error| {
            ErrorObject::invalid_params(format!("_meta[\"{}\"]: {error}", meta::key::CLIENT_CAPABILITIES))
        })?;
        if let Some(info) = meta.info {
            peer.info = serde_json::from_str(info).map_err(|error| {
                ErrorObject::invalid_params(format!("_meta[\"{}\"]: {error}", meta::key::CLIENT_INFO))
            })?;
        }
        let peer = Arc::new(peer);
        self.stateless_client = Some(StatelessClientDescription {
            info: meta.info.map(Into::into),
            capabilities: capabilities.into(),
            peer: Arc::clone(&peer),
        });
        Ok(peer)
    }
}
