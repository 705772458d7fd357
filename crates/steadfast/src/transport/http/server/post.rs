//! The HTTP methods of the endpoint: POST for all revisions, GET and DELETE for sessions.
#![allow(
    clippy::result_large_err,
    clippy::large_enum_variant,
    reason = "the large HTTP response is moved only twice, and there is one per request"
)]

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;
use steadfast_model::{ErrorObject, Method, Principal, RequestId, Revision};
use steadfast_proto::envelope::{self, Message, Params};
use steadfast_proto::http::headers::{self, HttpSessionMode};
use steadfast_proto::http::media::{self, Accepts};
use steadfast_proto::http::{SingleHeader, name};
use steadfast_proto::mutant;

use super::body::HttpServiceBody;
use super::exchange::{self, ServerHttpExchange};
use super::incoming::{HeaderMapAdapter, read_body};
use super::load::ServerLoadPermit;
use super::reply;
use super::service::HttpServiceState;
use super::session::{
    HttpSessionSubmitError, HttpSessionSubmitResult, PostReplyFuture, ServerHttpSession, SessionPostResponse,
};
use super::sessions::{AnyHttpSession, SessionLimitReached};
use super::socket::SocketHangupWatcher;
use crate::runtime::Runtime;

pub(crate) const TOO_MANY_REQUESTS: &str = "request limit reached: retry when another request has ended";

/// How the server responds to a POST, once the body of the POST was read.
enum ServerPostAction {
    Respond(Response<HttpServiceBody>),
    /// Runs the request of 2026-07-28 in the body of the POST.
    Run(Box<ServerHttpExchange>),
    /// Waits for the response to a request that belongs to a session.
    Wait(PostReplyFuture),
}

/// The HTTP response to a request that the server does not handle further.
pub(crate) type EarlyResponse = Box<Response<HttpServiceBody>>;

impl From<Response<HttpServiceBody>> for ServerPostAction {
    fn from(response: Response<HttpServiceBody>) -> Self {
        Self::Respond(response)
    }
}

/// The refusal of a message whose `Mcp-Method` header names another method than the body. For revisions before
/// 2026-07-28, the server compares only `Mcp-Method` with the body; in 2026-07-28 it compares all mirrored headers.
pub(crate) fn method_mismatch(
    request_headers: &HeaderMapAdapter<'_>,
    message: &Message<'_>,
) -> Option<Response<HttpServiceBody>> {
    if HttpSessionMode::of(request_headers, message) == HttpSessionMode::Stateless
        || headers::method_agrees(request_headers, message)
    {
        return None;
    }
    let id = if let Message::Request { id, .. } = message { Some(id) } else { None };
    let error = ErrorObject::invalid_request("the Mcp-Method header and the method of the body differ");
    Some(reply::error(StatusCode::BAD_REQUEST, id, &error))
}

impl HttpServiceState {
    /// Handles a POST, which holds a message of the client.
    pub(crate) async fn post<B: Body>(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: Parts,
        body: B,
    ) -> Response<HttpServiceBody> {
        let request_headers = HeaderMapAdapter(&parts.headers);
        if !media::is_json(&request_headers) {
            return reply::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        if !Accepts::of(&request_headers).both() {
            let message = "Accept must list application/json and text/event-stream";
            return reply::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let (bytes, permit) = match self.receive(&runtime, body).await {
            Ok(received) => received,
            Err(refused) => {
                self.note_used(&parts);
                return *refused;
            }
        };
        let hangup = parts.extensions.get::<SocketHangupWatcher>().cloned();
        match self.decide(runtime, &parts, bytes, permit) {
            ServerPostAction::Respond(response) => response,
            ServerPostAction::Run(running) => exchange::respond(running, hangup).await,
            ServerPostAction::Wait(waiting) => match waiting.await {
                SessionPostResponse::Message(body) => reply::json(StatusCode::OK, body),
                SessionPostResponse::Events(stream) => reply::events(HttpServiceBody::session(stream)),
                SessionPostResponse::SessionEnded => {
                    // Not 404, which would mean that the request was not begun.
                    let error = ErrorObject::internal("the session ended before the request was answered");
                    reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error)
                }
            },
        }
    }

    /// Reads the body of a POST, within the limits of the HTTP service.
    pub(crate) async fn receive<B: Body>(
        &self,
        runtime: &Arc<dyn Runtime>,
        body: B,
    ) -> Result<(Bytes, ServerLoadPermit), EarlyResponse> {
        let Some(mut permit) = self.load.try_acquire() else {
            return Err(Box::new(reply::overloaded(TOO_MANY_REQUESTS)));
        };
        let deadline = runtime.now() + self.options.body_timeout;
        let limit = self.limits.message_bytes;
        match read_body(body, limit, &mut permit, || runtime.timer(), deadline).await {
            Ok(bytes) => Ok((bytes, permit)),
            Err(unread) => Err(Box::new(reply::refuse(unread.status(), unread.message()))),
        }
    }

    fn decide(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: &Parts,
        bytes: Bytes,
        permit: ServerLoadPermit,
    ) -> ServerPostAction {
        let request_headers = HeaderMapAdapter(&parts.headers);
        let message = match envelope::read(&bytes, self.limits.depth) {
            Ok(message) => message,
            Err(refusal) => {
                let id = refusal.salvaged.id.as_ref();
                return reply::error(StatusCode::BAD_REQUEST, id, &refusal.error()).into();
            }
        };
        if self.closing.is_closing() && self.holds_request(&message) {
            return reply::overloaded("shutting down: new requests are refused").into();
        }
        if matches!(message, Message::Request { .. } | Message::Batch(_)) && !permit.is_for_request() {
            self.note_used(parts);
            return reply::overloaded(TOO_MANY_REQUESTS).into();
        }
        if let Some(refusal) = method_mismatch(&request_headers, &message) {
            return refusal.into();
        }
        match HttpSessionMode::of(&request_headers, &message) {
            HttpSessionMode::Session => self.legacy(runtime, parts, message, permit),
            HttpSessionMode::Stateless => match message {
                Message::Request { id, method, params } => {
                    if let Err(error) = self.check_headers(&request_headers, &method, &params) {
                        return reply::error(StatusCode::BAD_REQUEST, Some(&id), &error).into();
                    }
                    let principal = self.options.principal(parts);
                    let message = Message::Request { id, method, params };
                    let running = ServerHttpExchange::begin(self, runtime, principal.as_ref(), message, permit);
                    ServerPostAction::Run(Box::new(running))
                }
                // No notification has an effect: clients cancel by closing the response.
                Message::Notification { .. } => reply::empty(StatusCode::ACCEPTED).into(),
                Message::Response { .. } => reply::refuse(
                    StatusCode::BAD_REQUEST,
                    "servers send no requests in this revision, so there is nothing to respond to",
                )
                .into(),
                Message::Batch(_) => reply::refuse(StatusCode::BAD_REQUEST, NO_BATCHES).into(),
            },
        }
    }

    /// Whether a message of the client is a request or a batch with a request. Messages without a request are
    /// accepted during a shutdown, because they help running requests to end.
    fn holds_request(&self, message: &Message<'_>) -> bool {
        match message {
            Message::Request { .. } => true,
            Message::Batch(batch) => !ids_of(*batch, self.limits.depth).is_empty(),
            Message::Notification { .. } | Message::Response { .. } => false,
        }
    }

    fn check_headers(
        &self,
        request_headers: &HeaderMapAdapter<'_>,
        method: &str,
        params: &Params<'_>,
    ) -> Result<(), ErrorObject> {
        headers::check(request_headers, method, params).map_err(|refused| refused.error())?;
        if method != Method::CallTool.name() {
            return Ok(());
        }
        let tool = params.get_string("name").and_then(|name| self.server.tool(&name));
        let Some(tool) = tool.filter(|tool| !tool.mirrored().is_empty()) else { return Ok(()) };
        tool.mirrored().check(request_headers, params).map_err(|mismatch| headers::HeaderError::from(mismatch).error())
    }

    fn legacy(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: &Parts,
        message: Message<'_>,
        permit: ServerLoadPermit,
    ) -> ServerPostAction {
        let request_headers = HeaderMapAdapter(&parts.headers);
        let id = if let Message::Request { id, .. } = &message { Some(id.clone()) } else { None };
        let id = id.as_ref();
        let initializes = matches!(&message, Message::Request { method, .. } if *method == Method::Initialize.name());
        if initializes && request_headers.single(name::SESSION_ID) == SingleHeader::Absent {
            return self.open_session(runtime, parts, message, id).into();
        }
        let (session, principal) = match self.session_of(parts, id) {
            Ok(found) => found,
            Err(response) => return ServerPostAction::Respond(*response),
        };
        if matches!(message, Message::Batch(_)) && !session.takes_batches() {
            return reply::refuse(StatusCode::BAD_REQUEST, NO_BATCHES).into();
        }
        let (ids, may_cancel) = match &message {
            Message::Request { id, .. } => (vec![id.clone()], false),
            Message::Batch(batch) => (ids_of(*batch, self.limits.depth), true),
            Message::Notification { method, .. } => (Vec::new(), *method == Method::Cancelled.name()),
            Message::Response { .. } => (Vec::new(), false),
        };
        match session.submit(principal.as_ref(), message, &ids, may_cancel, permit) {
            Ok(HttpSessionSubmitResult::Waiting(waiting)) => ServerPostAction::Wait(waiting),
            Ok(HttpSessionSubmitResult::Accepted) => reply::empty(StatusCode::ACCEPTED).into(),
            Ok(HttpSessionSubmitResult::Refused(refusal)) => reply::json(StatusCode::BAD_REQUEST, refusal).into(),
            Err(HttpSessionSubmitError::SessionEnded) => session_gone(id).into(),
            Err(HttpSessionSubmitError::IdInUse) => {
                // In the HTTP response to this POST it cannot be mistaken for the response to the other request.
                let error = ErrorObject::invalid_request("a request with this id is still in flight");
                reply::error(StatusCode::BAD_REQUEST, id, &error).into()
            }
        }
    }

    fn open_session(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: &Parts,
        message: Message<'_>,
        id: Option<&RequestId>,
    ) -> Response<HttpServiceBody> {
        if self.sessions.is_full() {
            return reply::overloaded(SESSION_LIMIT);
        }
        let Ok(session) = ServerHttpSession::new(&self, runtime, self.options.principal(parts)) else {
            let error = ErrorObject::internal(NO_RANDOM);
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, id, &error);
        };
        let initialized = session.initialize(message);
        if !session.is_open() {
            // The handshake failed: the client gets the error, and the session is dropped.
            return reply::json(StatusCode::BAD_REQUEST, initialized);
        }
        match self.sessions.insert(AnyHttpSession::Streamable(Arc::clone(&session))) {
            Ok(()) => {}
            Err(SessionLimitReached) => return reply::overloaded(SESSION_LIMIT),
        }
        if self.closing.is_closing() {
            // The shutdown has begun meanwhile, and did not include this session.
            session.shut_down();
        }
        let mut response = reply::json(StatusCode::OK, initialized);
        if let Ok(id) = HeaderValue::from_str(session.id()) {
            response.headers_mut().insert(name::SESSION_ID, id);
        }
        response
    }

    /// Handles a GET: opens the event stream for messages that belong to no request of the client, or the rest of an
    /// event stream that was cut off.
    pub(crate) fn listen(&self, parts: &Parts) -> Response<HttpServiceBody> {
        let request_headers = HeaderMapAdapter(&parts.headers);
        if is_stateless(&request_headers) {
            return reply::not_allowed("POST");
        }
        if !Accepts::of(&request_headers).events {
            return reply::refuse(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
        }
        let session = match self.session_of(parts, None) {
            Ok((session, _)) => session,
            Err(response) => return *response,
        };
        let stream = match request_headers.single(name::LAST_EVENT_ID) {
            SingleHeader::Absent => session.listen(),
            SingleHeader::Value(id) => session.resume(id),
            SingleHeader::Repeated | SingleHeader::Unreadable => Err(steadfast_proto::http::resume::UnknownEventId),
        };
        match stream {
            Ok(stream) => reply::events(HttpServiceBody::session(stream)),
            Err(unknown) => {
                let error = ErrorObject::invalid_request(unknown.to_string());
                reply::error(StatusCode::BAD_REQUEST, None, &error)
            }
        }
    }

    /// Handles a DELETE: the client ends its session.
    pub(crate) fn delete(&self, parts: &Parts) -> Response<HttpServiceBody> {
        if is_stateless(&HeaderMapAdapter(&parts.headers)) {
            return reply::not_allowed("POST");
        }
        match self.session_of(parts, None) {
            Ok((session, _)) => {
                self.sessions.remove(session.id());
                if !mutant!(KeepDeleted) {
                    session.end();
                }
                reply::empty(StatusCode::NO_CONTENT)
            }
            Err(response) => *response,
        }
    }

    /// Restarts the idle timeout of a session although its request is refused: its client is not gone.
    fn note_used(&self, parts: &Parts) {
        if let Ok((session, _)) = self.session_of(parts, None) {
            session.note_used();
        }
    }

    /// Finds the session of an HTTP request and its principal.
    ///
    /// # Errors
    ///
    /// The HTTP error response, if the request belongs to no session.
    fn session_of(
        &self,
        parts: &Parts,
        id: Option<&RequestId>,
    ) -> Result<(Arc<ServerHttpSession>, Option<Principal>), EarlyResponse> {
        let request_headers = HeaderMapAdapter(&parts.headers);
        let refuse = |message: &'static str| {
            Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, &ErrorObject::invalid_request(message))))
        };
        match request_headers.single(name::PROTOCOL_VERSION) {
            SingleHeader::Absent => {}
            SingleHeader::Value(version)
                if Revision::parse(version).is_some_and(|revision| !revision.is_stateless()) => {}
            _ => return refuse("MCP-Protocol-Version names no revision that has sessions"),
        }
        let session = match request_headers.single(name::SESSION_ID) {
            SingleHeader::Value(session) => session,
            SingleHeader::Absent => {
                return refuse("Mcp-Session-Id is missing: send initialize first, or use revision 2026-07-28");
            }
            SingleHeader::Repeated | SingleHeader::Unreadable => {
                return refuse("Mcp-Session-Id is repeated or not valid text");
            }
        };
        let principal = self.options.principal(parts);
        let found = self.sessions.find(session).filter(|session| session.belongs_to(principal.as_ref()));
        found.map(|session| (session, principal)).ok_or_else(|| Box::new(session_gone(id)))
    }
}

/// The HTTP response if the session has ended, never existed or belongs to another principal; it does not reveal which.
/// A client takes status 404 to mean that its request was not begun, and sends the request again in a new session, so a
/// request that was begun never gets 404 (law L10).
fn session_gone(id: Option<&RequestId>) -> Response<HttpServiceBody> {
    let error = ErrorObject::invalid_request("unknown session: send initialize to open a new one");
    reply::error(StatusCode::NOT_FOUND, id, &error)
}

/// Whether an HTTP request without a body is of revision 2026-07-28 or later: only the header `MCP-Protocol-Version`
/// can say so.
fn is_stateless(request_headers: &HeaderMapAdapter<'_>) -> bool {
    matches!(request_headers.single(name::PROTOCOL_VERSION), SingleHeader::Value(version)
        if Revision::parse(version).is_some_and(Revision::is_stateless))
}

pub(crate) const SESSION_LIMIT: &str = "session limit reached";

pub(crate) const NO_RANDOM: &str = "the system provided no random bytes for a session id";

const NO_BATCHES: &str = "batches exist in revision 2025-03-26 only";

/// The ids of the requests in a JSON-RPC batch. The members of a batch are parsed here and again by the connection:
/// only 2025-03-26 has batches, and storing the parsed members would make every other message more expensive.
pub(crate) fn ids_of(batch: envelope::Batch<'_>, depth: usize) -> Vec<RequestId> {
    let mut ids = Vec::new();
    batch.each(|member| {
        if let Ok(Message::Request { id, .. }) = envelope::read_text(member, depth) {
            ids.push(id);
        }
    });
    ids
}
