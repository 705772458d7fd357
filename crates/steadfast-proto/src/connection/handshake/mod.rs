//! Negotiation of the revision: the `initialize` handshake of stateful revisions, and the discovery of stateless revisions.
//!
//! One connection may carry requests of stateful and of stateless revisions. A request belongs to a stateless revision if its
//! `_meta` names a protocol version; any other request belongs to the revision of the handshake. The method table decides
//! whether a method exists for a revision and side, and the declared capabilities decide whether the method is offered; nothing
//! in this module compares revisions.

mod hello;
mod metadata;

use std::sync::Arc;

use steadfast_model::wire::{self, PerMessageMembers};
use steadfast_model::{
    DiscoverResult, ErrorObject, InitializeParams, InitializeResult, Method, RequestId, Revision, SetLevelParams,
};

pub use hello::{ClientDescription, ClientOrServerDescription, ServerDescription};
pub(in crate::connection) use metadata::{RequestMetadata, StatelessClientDescription};

use super::event::{ConnectionEvent, PeerInfo};
use super::{Call, CallKey, Connection, ConnectionStage, NotSentReason};
use crate::Moment;
use crate::connection::outbox::TransmitKind;
use crate::encode::{self, EncodedResponse};
use crate::envelope::Params;

/// What is known of `server/discover` on the connection of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::connection) enum Discovery {
    #[default]
    NotSent,
    /// The client has queued `server/discover` with this id. The call may have ended since, without an answer.
    Sent(RequestId),
    /// The peer has answered `server/discover` with a result, so the peer uses a stateless revision and sends no requests, unless
    /// `initialize` is sent. While `initialize` is only queued, the peer does not know of it, and it may be withdrawn.
    Answered,
}

/// Commands with which a client opens its connection.
impl Connection {
    /// Sends `initialize`. When the response to `initialize` arrives, the connection sends `notifications/initialized`, and
    /// [`ConnectionEvent::Opened`] names the revision.
    pub fn initialize(
        &mut self,
        now: Moment,
        call: CallKey,
        mut request: Call,
        offered: Revision,
    ) -> Result<(), NotSentReason> {
        let ClientOrServerDescription::Client(hello) = &*self.hello else { return Err(NotSentReason::NotInRevision) };
        let params = InitializeParams::new(offered.as_str(), hello.capabilities.clone(), hello.info.clone());
        request.method = Method::Initialize;
        // These types have string keys and finite numbers, so they can be encoded.
        request.params = wire::params_text(offered, &params, &PerMessageMembers::none()).ok();
        request.cancellable = false;
        self.open_call(now, call, request)
    }

    /// Opens a client's connection in the stateless revision of this server: there is no handshake, and each request of the
    /// client carries its metadata.
    pub fn open_stateless(&mut self, peer: PeerInfo) {
        if self.stage.is_closed() {
            return;
        }
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        self.initialized = true;
        if self.stage == ConnectionStage::Opening {
            self.stage = ConnectionStage::Ready;
        }
        self.events.push_back(ConnectionEvent::Opened(peer));
    }
}

impl Connection {
    /// Whether the peer is known to use a stateless revision.
    pub(in crate::connection) fn is_stateless(&self) -> bool {
        self.peer.as_ref().map_or(self.stateless_client.is_some(), |peer| peer.revision.is_stateless())
    }

    /// The revision of messages that do not name their revision; the newest revision while nothing is known of the peer.
    pub(in crate::connection) fn revision(&self) -> Revision {
        self.last_peer().map_or(Revision::LATEST, |peer| peer.revision)
    }

    /// Whether this side never sends responses: it is a client of a stateless revision, in which servers send no requests.
    pub(in crate::connection) fn never_responds(&self) -> bool {
        matches!(*self.hello, ClientOrServerDescription::Client(_))
            && self.peer.as_ref().is_some_and(|peer| peer.revision.is_stateless())
    }

    /// Whether this side does not answer requests of the peer: a client of a stateless revision does not, nor a client that has
    /// the response to `server/discover` but has not opened a revision yet.
    pub(in crate::connection) fn ignores_requests(&self) -> bool {
        let is_answered = self.discovery == Discovery::Answered;
        let discovered = is_answered && self.peer.is_none() && !crate::mutant!(AnswerBehindDiscover);
        self.never_responds() || discovered
    }

    /// Takes note of a result with this id: it may answer `server/discover`, also after the client has given up the call.
    pub(in crate::connection) fn note_discovery(&mut self, id: Option<&RequestId>) {
        if let Discovery::Sent(sent) = &self.discovery
            && id == Some(sent)
        {
            self.discovery = Discovery::Answered;
        }
    }

    /// Whether this side writes `"id": null` into an error response without an id.
    pub(in crate::connection) fn writes_null_id(&self) -> bool {
        match &self.peer {
            Some(peer) => peer.revision.requires_null_id(),
            None => self.stateless_client.is_none(),
        }
    }

    /// The method with this name, if the peer may send it and this side offers it.
    pub(in crate::connection) fn find_method(
        &self,
        name: &str,
        context: &RequestMetadata,
    ) -> Result<Method, ErrorObject> {
        let revision = context.peer.revision;
        self.hello
            .find_method(name)
            .filter(|method| !method.is_notification())
            .filter(|method| self.hello.may_receive(*method, revision) && self.hello.offers(*method, revision))
            .ok_or_else(|| ErrorObject::method_not_found(name))
    }

    /// The response to a request that the connection answers itself, without a handler, such as `ping`.
    pub(in crate::connection) fn answer_directly(
        &mut self,
        id: &RequestId,
        method: Method,
        params: &Params<'_>,
        context: &RequestMetadata,
    ) -> Option<EncodedResponse> {
        match method {
            Method::Ping => Some(EncodedResponse::result(id, |out| {
                out.extend_from_slice(b"{}");
                Ok::<_, std::convert::Infallible>(())
            })),
            Method::Initialize => Some(self.accept_initialize(id, params)),
            Method::Discover => Some(self.discover(id, context)),
            Method::SetLevel => Some(self.set_level(id, params)),
            _ => None,
        }
    }

    fn accept_initialize(&mut self, id: &RequestId, params: &Params<'_>) -> EncodedResponse {
        let hello = Arc::clone(&self.hello);
        let ClientOrServerDescription::Server(hello) = &*hello else {
            return EncodedResponse::error(id, &ErrorObject::method_not_found(Method::Initialize.name()));
        };
        if self.peer.is_some() {
            return EncodedResponse::error(
                id,
                &ErrorObject::invalid_request("initialize may be sent only once per connection"),
            );
        }
        let request: InitializeParams = match serde_json::from_str(params.text()) {
            Ok(request) => request,
            Err(error) => {
                return EncodedResponse::error(id, &ErrorObject::invalid_params(format!("initialize: {error}")));
            }
        };
        let offered = Revision::parse(&request.protocol_version).filter(|revision| !revision.is_stateless());
        let revision = offered.unwrap_or(Revision::LATEST_STATEFUL);
        let mut peer = PeerInfo::new(revision);
        peer.info = Some(request.client_info);
        peer.client_capabilities = request.capabilities;
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        if self.stage == ConnectionStage::Opening {
            self.stage = ConnectionStage::Ready;
        }
        self.events.push_back(ConnectionEvent::Opened(peer));
        let mut result = InitializeResult::new(revision.as_str(), hello.capabilities.clone(), hello.info.clone());
        result.instructions.clone_from(&hello.instructions);
        EncodedResponse::result(id, |out| wire::write_result(revision, &result, &PerMessageMembers::none(), out))
    }

    fn discover(&self, id: &RequestId, context: &RequestMetadata) -> EncodedResponse {
        let ClientOrServerDescription::Server(hello) = &*self.hello else {
            return EncodedResponse::error(id, &ErrorObject::method_not_found(Method::Discover.name()));
        };
        let mut result = DiscoverResult::new(Revision::stateless(), hello.capabilities.clone());
        result.instructions.clone_from(&hello.instructions);
        EncodedResponse::result(id, |out| {
            wire::write_result(context.peer.revision, &result, hello.common_members(), out)
        })
    }

    fn set_level(&mut self, id: &RequestId, params: &Params<'_>) -> EncodedResponse {
        match serde_json::from_str::<SetLevelParams>(params.text()) {
            Ok(params) => {
                self.log_level = params.level;
                EncodedResponse::serialized(id, &serde_json::Map::new())
            }
            Err(error) => {
                EncodedResponse::error(id, &ErrorObject::invalid_params(format!("logging/setLevel: {error}")))
            }
        }
    }

    pub(in crate::connection) fn receive_initialized(&mut self) {
        if self.peer.is_some() && !self.initialized {
            self.initialized = true;
            self.send_held_calls();
        }
    }

    /// Opens the connection with the result of `initialize`.
    pub(in crate::connection) fn accept_initialize_result(&mut self, result: &str) -> Result<(), String> {
        let ClientOrServerDescription::Client(client) = &*self.hello else {
            return Err("a server cannot accept a result of initialize, which only clients send".to_owned());
        };
        let result =
            (client.decode_result)(result).map_err(|error| format!("the result of initialize is invalid: {error}"))?;
        let revision =
            Revision::parse(&result.protocol_version).filter(|revision| !revision.is_stateless()).ok_or_else(|| {
                format!("the server chose revision {}, which this client does not support", result.protocol_version)
            })?;
        let mut peer = PeerInfo::new(revision);
        peer.info = Some(result.server_info);
        peer.server_capabilities = result.capabilities;
        let peer = Arc::new(peer);
        self.peer = Some(Arc::clone(&peer));
        if self.stage == ConnectionStage::Opening {
            self.stage = ConnectionStage::Ready;
        }
        let body = encode::notification(Method::Initialized.name(), None);
        self.outbox.push(TransmitKind::Notification(Method::Initialized), body, None);
        self.initialized = true;
        self.events.push_back(ConnectionEvent::Opened(peer));
        self.send_held_calls();
        Ok(())
    }
}
