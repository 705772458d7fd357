//! HTTP+SSE, the transport of 2024-11-05, for clients that know no other. Off unless
//! [`HttpOptions::legacy_sse`](super::HttpOptions::legacy_sse) says where it is.
//!
//! ```text
//!   GET  /sse                 --> 200, a stream of events:  endpoint: /sse?session_id=...
//!                                                           message:  whatever the server has to say
//!   POST /sse?session_id=...  --> 202; what it comes to is on the stream
//! ```
//!
//! The stream is the connection, as a socket would be: when it closes, everything that runs for it is stopped, and nothing
//! can be resumed. What is not read waits in the connection, within its limits, so that a cancellation still finds it there.

mod driver;
mod session;
mod stream;

use std::sync::Arc;

use http::request::Parts;
use http::{Method as HttpMethod, Response, StatusCode};
use http_body::Body;
use steadfast_model::{ErrorObject, RequestId};
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::Era;
use steadfast_proto::http::media::{self, Accepts};

pub(crate) use driver::Driver;
pub(crate) use session::SseSession;
pub(crate) use stream::SseStream;

use super::body::HttpBody;
use super::incoming::RequestHeaders;
use super::post::{Refusal, TOO_MANY as TOO_MANY_REQUESTS, contradiction, ids_of};
use super::reply;
use super::service::Shared;
use super::sessions::{SessionLimitReached, SessionSlot};
use crate::runtime::Runtime;
use session::SubmitError;

/// What the query calls a session, as servers of that time did.
const SESSION: &str = "session_id";

/// The methods of the endpoint.
const METHODS: &str = "GET, POST";

const TOO_MANY: &str = "as many sessions are open as may be";

impl Shared {
    /// Whether a request for this path is for the old transport. A router that has taken a prefix away leaves the end of
    /// what clients wrote.
    pub(crate) fn is_legacy_sse(&self, path: &str) -> bool {
        path.starts_with('/') && self.options.legacy_sse.as_deref().is_some_and(|known| known.ends_with(path))
    }

    /// Serves a request for the old transport.
    pub(crate) async fn legacy_sse<B: Body>(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: Parts,
        body: B,
    ) -> Response<HttpBody> {
        match parts.method {
            HttpMethod::GET => self.open_events(runtime, &parts),
            HttpMethod::POST => match self.take_posted(&runtime, &parts, body).await {
                Ok(()) => reply::empty(StatusCode::ACCEPTED),
                Err(refused) => *refused,
            },
            _ => reply::not_allowed(METHODS),
        }
    }

    /// GET: the stream, with a session of its own.
    fn open_events(&self, runtime: Arc<dyn Runtime>, parts: &Parts) -> Response<HttpBody> {
        if !Accepts::of(&RequestHeaders(&parts.headers)).events {
            return reply::refuse(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
        }
        if self.closing.is_closing() {
            return reply::overloaded("shutting down: no new sessions are opened");
        }
        if self.sessions.is_full() {
            return reply::overloaded(TOO_MANY);
        }
        let Ok(session) = SseSession::new(self, runtime, self.options.principal(parts)) else {
            let error = ErrorObject::internal("the system has no random numbers to name a session with");
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error);
        };
        if let Err(SessionLimitReached) = self.sessions.enter(SessionSlot::Sse(Arc::clone(&session))) {
            return reply::overloaded(TOO_MANY);
        }
        if self.closing.is_closing() {
            // It began while this one was on its way in, and may have missed it.
            session.shut_down();
        }
        // Without its host: whatever name the client used for us is the one that it reaches us by.
        let path = self.options.legacy_sse.as_deref().unwrap_or_default();
        let endpoint = format!("{path}?{SESSION}={}", session.id());
        let stream = SseStream::new(session, Arc::downgrade(&self.sessions), &endpoint);
        reply::events(HttpBody::sse(stream))
    }

    /// POST: a message of the client's.
    async fn take_posted<B: Body>(&self, runtime: &Arc<dyn Runtime>, parts: &Parts, body: B) -> Result<(), Refusal> {
        let lines = RequestHeaders(&parts.headers);
        let refuse = |status, message| Err(Box::new(reply::refuse(status, message)));
        if !media::is_json(&lines) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        let Some(id) = session_in(parts.uri.query().unwrap_or_default()) else {
            return refuse(StatusCode::BAD_REQUEST, "the query must name one session: begin with GET of this path");
        };
        let principal = self.options.principal(parts);
        let found = self.sessions.find_sse(id).filter(|session| session.belongs_to(principal.as_ref()));
        let Some(session) = found else { return Err(Box::new(gone(None))) };
        let (bytes, permit) = self.receive(runtime, body).await?;
        let message = match envelope::read(&bytes, self.limits.depth) {
            Ok(message) => message,
            Err(refusal) => {
                let id = refusal.salvaged.id.as_ref();
                return Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, &refusal.error())));
            }
        };
        if matches!(message, Message::Request { .. } | Message::Batch(_)) && !permit.is_for_request() {
            return Err(Box::new(reply::overloaded(TOO_MANY_REQUESTS)));
        }
        let id = if let Message::Request { id, .. } = &message { Some(id) } else { None };
        if let Some(refusal) = contradiction(&lines, &message) {
            return Err(Box::new(refusal));
        }
        if Era::of(&lines, &message) == Era::Modern {
            let error = ErrorObject::invalid_request("this transport has no messages of revision 2026-07-28");
            return Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, &error)));
        }
        let ids = match &message {
            Message::Request { id, .. } => vec![id.clone()],
            Message::Batch(batch) => ids_of(*batch, self.limits.depth),
            _ => Vec::new(),
        };
        session.submit(principal.as_ref(), &bytes, &ids, permit).map_err(|refused| Box::new(refusal(refused, id)))
    }
}

/// The session that a query names, if it names one.
fn session_in(query: &str) -> Option<&str> {
    let mut named = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| *name == SESSION);
    let (_, id) = named.next()?;
    named.next().is_none().then_some(id)
}

fn refusal(refused: SubmitError, id: Option<&RequestId>) -> Response<HttpBody> {
    match refused {
        SubmitError::Gone => gone(id),
        SubmitError::Unread => reply::overloaded("too many answers wait on the stream: read them first"),
        SubmitError::InFlight => {
            // Here it cannot be taken for the answer of the first, as it could on the stream.
            let error = ErrorObject::invalid_request("a request with this id is still in flight");
            reply::error(StatusCode::BAD_REQUEST, id, &error)
        }
    }
}

/// A session whose stream has closed, or that never was, or is somebody else's: which of them is nobody's business.
fn gone(id: Option<&RequestId>) -> Response<HttpBody> {
    let error = ErrorObject::invalid_request("there is no such session: its stream has closed, or never was");
    reply::error(StatusCode::NOT_FOUND, id, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_one_session_or_none() {
        assert_eq!(session_in("session_id=7"), Some("7"));
        assert_eq!(session_in("a=b&session_id=7&c"), Some("7"));
        for wrong in ["", "session_id", "sessionId=7", "session_id=7&session_id=8"] {
            assert_eq!(session_in(wrong), None, "{wrong}");
        }
    }
}
