//! What is done with a request: POST in both eras, and the GET and DELETE of sessions.
#![allow(
    clippy::result_large_err,
    clippy::large_enum_variant,
    reason = "a response is made once a request, and moved twice"
)]

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;
use steadfast_model::{ErrorObject, Method, Principal, RequestId, Revision};
use steadfast_proto::envelope::{self, Message, Params};
use steadfast_proto::http::headers::{self, Era};
use steadfast_proto::http::media::{self, Accepts};
use steadfast_proto::http::{SingleHeader, name};
use steadfast_proto::mutant;

use super::body::HttpBody;
use super::exchange::{self, RunningExchange};
use super::incoming::{RequestHeaders, read_body};
use super::load::Permit;
use super::reply;
use super::service::Shared;
use super::session::{AnswerWait, PostReply, Session, SubmitError, SubmitResult};
use super::sessions::{SessionLimitReached, SessionSlot};
use super::socket::Hangup;
use crate::runtime::Runtime;

pub(crate) const TOO_MANY: &str = "as many requests are in flight as may be; send it again when one has ended";

/// What a POST comes to once its body was read.
enum Decision {
    Respond(Response<HttpBody>),
    /// A request of 2026-07-28.
    Run(Box<RunningExchange>),
    /// A request of a session.
    Wait(AnswerWait),
}

/// The response for what goes no further.
pub(crate) type Refusal = Box<Response<HttpBody>>;

impl From<Response<HttpBody>> for Decision {
    fn from(response: Response<HttpBody>) -> Self {
        Self::Respond(response)
    }
}

/// The refusal of a message whose header says another method, where nothing else compares the two.
pub(crate) fn contradiction(lines: &RequestHeaders<'_>, message: &Message<'_>) -> Option<Response<HttpBody>> {
    if Era::of(lines, message) == Era::Modern || headers::method_agrees(lines, message) {
        return None;
    }
    let id = if let Message::Request { id, .. } = message { Some(id) } else { None };
    let error = ErrorObject::invalid_request("the Mcp-Method header does not say the method of the body");
    Some(reply::error(StatusCode::BAD_REQUEST, id, &error))
}

impl Shared {
    /// POST: a message of the client's.
    pub(crate) async fn post<B: Body>(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: Parts,
        body: B,
    ) -> Response<HttpBody> {
        let lines = RequestHeaders(&parts.headers);
        if !media::is_json(&lines) {
            return reply::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        if !Accepts::of(&lines).both() {
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
        let hangup = parts.extensions.get::<Hangup>().cloned();
        match self.decide(runtime, &parts, bytes, permit) {
            Decision::Respond(response) => response,
            Decision::Run(running) => exchange::answer(running, hangup).await,
            Decision::Wait(waiting) => match waiting.await {
                PostReply::Answer(body) => reply::json(StatusCode::OK, body),
                PostReply::Events(stream) => reply::events(HttpBody::session(stream)),
                PostReply::Lost => {
                    // Not 404, which would say that nothing was begun.
                    let error = ErrorObject::internal("the session ended before its request did");
                    reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error)
                }
            },
        }
    }

    /// Reads a body, as far as there is room for it.
    pub(crate) async fn receive<B: Body>(
        &self,
        runtime: &Arc<dyn Runtime>,
        body: B,
    ) -> Result<(Bytes, Permit), Refusal> {
        let Some(mut permit) = self.load.enter() else { return Err(Box::new(reply::overloaded(TOO_MANY))) };
        let deadline = runtime.now() + self.options.body_timeout;
        let limit = self.limits.message_bytes;
        match read_body(body, limit, &mut permit, || runtime.timer(), deadline).await {
            Ok(bytes) => Ok((bytes, permit)),
            Err(unread) => Err(Box::new(reply::refuse(unread.status(), unread.message()))),
        }
    }

    fn decide(self: Arc<Self>, runtime: Arc<dyn Runtime>, parts: &Parts, bytes: Bytes, permit: Permit) -> Decision {
        let lines = RequestHeaders(&parts.headers);
        let message = match envelope::read(&bytes, self.limits.depth) {
            Ok(message) => message,
            Err(refusal) => {
                let id = refusal.salvaged.id.as_ref();
                return reply::error(StatusCode::BAD_REQUEST, id, &refusal.error()).into();
            }
        };
        if self.closing.is_closing() && self.begins_something(&message) {
            return reply::overloaded("shutting down: no new requests are taken").into();
        }
        if matches!(message, Message::Request { .. } | Message::Batch(_)) && !permit.is_for_request() {
            self.note_used(parts);
            return reply::overloaded(TOO_MANY).into();
        }
        if let Some(refusal) = contradiction(&lines, &message) {
            return refusal.into();
        }
        match Era::of(&lines, &message) {
            Era::Legacy => self.legacy(runtime, parts, &bytes, &message, permit),
            Era::Modern => match message {
                Message::Request { id, method, params } => {
                    if let Err(error) = self.check_headers(&lines, &method, &params) {
                        return reply::error(StatusCode::BAD_REQUEST, Some(&id), &error).into();
                    }
                    let principal = self.options.principal(parts);
                    let message = Message::Request { id, method, params };
                    let running = RunningExchange::begin(self, runtime, principal.as_ref(), message, permit);
                    Decision::Run(Box::new(running))
                }
                // There is none that would have an effect: hanging up is the cancellation.
                Message::Notification { .. } => reply::empty(StatusCode::ACCEPTED).into(),
                Message::Response { .. } => reply::refuse(
                    StatusCode::BAD_REQUEST,
                    "servers of this revision ask nothing: there is nothing to answer",
                )
                .into(),
                Message::Batch(_) => reply::refuse(StatusCode::BAD_REQUEST, NO_BATCHES).into(),
            },
        }
    }

    /// Whether it holds a request. What is none, an answer or a cancellation, helps those that run to come to their end.
    fn begins_something(&self, message: &Message<'_>) -> bool {
        match message {
            Message::Request { .. } => true,
            Message::Batch(batch) => !ids_of(*batch, self.limits.depth).is_empty(),
            Message::Notification { .. } | Message::Response { .. } => false,
        }
    }

    fn check_headers(&self, lines: &RequestHeaders<'_>, method: &str, params: &Params<'_>) -> Result<(), ErrorObject> {
        headers::check(lines, method, params).map_err(|refused| refused.error())?;
        if method != Method::CallTool.name() {
            return Ok(());
        }
        let tool = params.get_string("name").and_then(|name| self.server.tool(&name));
        let Some(tool) = tool.filter(|tool| !tool.mirrored().is_empty()) else { return Ok(()) };
        tool.mirrored().check(lines, params).map_err(|mismatch| headers::HeaderError::from(mismatch).error())
    }

    fn legacy(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: &Parts,
        bytes: &[u8],
        message: &Message<'_>,
        permit: Permit,
    ) -> Decision {
        let lines = RequestHeaders(&parts.headers);
        let id = if let Message::Request { id, .. } = message { Some(id) } else { None };
        let initializes = matches!(message, Message::Request { method, .. } if *method == Method::Initialize.name());
        if initializes && lines.single(name::SESSION_ID) == SingleHeader::Absent {
            return self.open_session(runtime, parts, bytes, id).into();
        }
        let (session, principal) = match self.session_of(parts, id) {
            Ok(found) => found,
            Err(response) => return Decision::Respond(*response),
        };
        if matches!(message, Message::Batch(_)) && !session.takes_batches() {
            return reply::refuse(StatusCode::BAD_REQUEST, NO_BATCHES).into();
        }
        let (ids, sweep) = match message {
            Message::Request { id, .. } => (vec![id.clone()], false),
            Message::Batch(batch) => (ids_of(*batch, self.limits.depth), true),
            Message::Notification { method, .. } => (Vec::new(), *method == Method::Cancelled.name()),
            Message::Response { .. } => (Vec::new(), false),
        };
        match session.submit(principal.as_ref(), bytes, &ids, sweep, permit) {
            Ok(SubmitResult::Waiting(waiting)) => Decision::Wait(waiting),
            Ok(SubmitResult::Taken) => reply::empty(StatusCode::ACCEPTED).into(),
            Ok(SubmitResult::Refused(refusal)) => reply::json(StatusCode::BAD_REQUEST, refusal).into(),
            Err(SubmitError::Gone) => session_gone(id).into(),
            Err(SubmitError::InFlight) => {
                // In this POST's own answer it cannot be taken for the answer of the first.
                let error = ErrorObject::invalid_request("a request with this id is still in flight");
                reply::error(StatusCode::BAD_REQUEST, id, &error).into()
            }
        }
    }

    fn open_session(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: &Parts,
        bytes: &[u8],
        id: Option<&RequestId>,
    ) -> Response<HttpBody> {
        if self.sessions.is_full() {
            return reply::overloaded("as many sessions are open as may be");
        }
        let Ok(session) = Session::new(&self, runtime, self.options.principal(parts)) else {
            let error = ErrorObject::internal("the system has no random numbers to name a session with");
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, id, &error);
        };
        let answer = session.initialize(bytes);
        if !session.is_open() {
            // What opened nothing is answered and forgotten.
            return reply::json(StatusCode::BAD_REQUEST, answer);
        }
        match self.sessions.enter(SessionSlot::Streamable(Arc::clone(&session))) {
            Ok(()) => {}
            Err(SessionLimitReached) => return reply::overloaded("as many sessions are open as may be"),
        }
        if self.closing.is_closing() {
            // It was not among those that were told.
            session.shut_down();
        }
        let mut response = reply::json(StatusCode::OK, answer);
        if let Ok(id) = HeaderValue::from_str(session.id()) {
            response.headers_mut().insert(name::SESSION_ID, id);
        }
        response
    }

    /// GET: a stream of what belongs to no request, or the rest of one that was cut.
    pub(crate) fn listen(&self, parts: &Parts) -> Response<HttpBody> {
        let lines = RequestHeaders(&parts.headers);
        if is_stateless(&lines) {
            return reply::not_allowed("POST");
        }
        if !Accepts::of(&lines).events {
            return reply::refuse(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
        }
        let session = match self.session_of(parts, None) {
            Ok((session, _)) => session,
            Err(response) => return *response,
        };
        let stream = match lines.single(name::LAST_EVENT_ID) {
            SingleHeader::Absent => session.listen(),
            SingleHeader::Value(id) => session.resume(id),
            SingleHeader::Repeated | SingleHeader::Unreadable => Err(steadfast_proto::http::resume::UnknownEvent),
        };
        match stream {
            Ok(stream) => reply::events(HttpBody::session(stream)),
            Err(unknown) => {
                let error = ErrorObject::invalid_request(unknown.to_string());
                reply::error(StatusCode::BAD_REQUEST, None, &error)
            }
        }
    }

    /// DELETE: the client is done with a session.
    pub(crate) fn delete(&self, parts: &Parts) -> Response<HttpBody> {
        if is_stateless(&RequestHeaders(&parts.headers)) {
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

    /// A client whose request is not taken is there all the same: its session is not idle.
    fn note_used(&self, parts: &Parts) {
        if let Ok((session, _)) = self.session_of(parts, None) {
            session.note_used();
        }
    }

    /// The session that a request belongs to and who sent it, or the response for one that belongs to none.
    fn session_of(&self, parts: &Parts, id: Option<&RequestId>) -> Result<(Arc<Session>, Option<Principal>), Refusal> {
        let lines = RequestHeaders(&parts.headers);
        let refuse = |message: &'static str| {
            Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, &ErrorObject::invalid_request(message))))
        };
        match lines.single(name::PROTOCOL_VERSION) {
            SingleHeader::Absent => {}
            SingleHeader::Value(version)
                if Revision::parse(version).is_some_and(|revision| !revision.is_stateless()) => {}
            _ => return refuse("MCP-Protocol-Version names no revision that a session can have"),
        }
        let session = match lines.single(name::SESSION_ID) {
            SingleHeader::Value(session) => session,
            SingleHeader::Absent => {
                return refuse(
                    "Mcp-Session-Id is missing: begin with initialize, or write requests in revision 2026-07-28",
                );
            }
            SingleHeader::Repeated | SingleHeader::Unreadable => return refuse("Mcp-Session-Id must be there once"),
        };
        let principal = self.options.principal(parts);
        let found = self.sessions.find(session).filter(|session| session.belongs_to(principal.as_ref()));
        found.map(|session| (session, principal)).ok_or_else(|| Box::new(session_gone(id)))
    }
}

/// A session that has ended, or never was, or is somebody else's: which of them is nobody's business. Clients take it for a
/// request that was never begun, and send it again in a new session; so nothing that was begun is answered with it (L10).
fn session_gone(id: Option<&RequestId>) -> Response<HttpBody> {
    let error = ErrorObject::invalid_request("there is no such session: begin again with initialize");
    reply::error(StatusCode::NOT_FOUND, id, &error)
}

/// The methods of the endpoint depend on the era, and what has no body says it in its header alone.
fn is_stateless(lines: &RequestHeaders<'_>) -> bool {
    matches!(lines.single(name::PROTOCOL_VERSION), SingleHeader::Value(version)
        if Revision::parse(version).is_some_and(Revision::is_stateless))
}

const NO_BATCHES: &str = "batches exist in revision 2025-03-26 only";

/// The ids of the requests in a batch.
pub(crate) fn ids_of(batch: envelope::Batch<'_>, depth: usize) -> Vec<RequestId> {
    let mut ids = Vec::new();
    batch.each(|member| {
        if let Ok(Message::Request { id, .. }) = envelope::read_text(member, depth) {
            ids.push(id);
        }
    });
    ids
}
