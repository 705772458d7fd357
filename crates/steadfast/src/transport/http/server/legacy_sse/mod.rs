//! The server side of HTTP+SSE, the transport of 2024-11-05, for clients that support no other transport. HTTP+SSE is
//! off unless [`HttpServerOptions::legacy_sse`](super::HttpServerOptions::legacy_sse) sets its path.
//!
//! ```text
//!   GET  /sse                 --> 200, a stream of events:  endpoint: /sse?session_id=...
//!                                                           message:  any message of the server
//!   POST /sse?session_id=...  --> 202; the response is on the stream
//! ```
//!
//! The event stream of HTTP+SSE is the connection, as a socket would be: when the stream closes, the handlers of its
//! requests are stopped, and nothing can be resumed. Messages that the client has not read stay queued in the
//! connection, within its limits, so that a cancellation can still remove them.

mod driver;
mod session;
mod stream;

use std::sync::Arc;

use http::request::Parts;
use http::{Method as HttpMethod, Response, StatusCode};
use http_body::Body;
use steadfast_model::{ErrorObject, RequestId};
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::HttpSessionMode;
use steadfast_proto::http::media::{self, Accepts};

pub(crate) use driver::ServerLegacySseDriver;
pub(crate) use session::ServerLegacySseSession;
pub(crate) use stream::ServerLegacySseStream;

use super::body::HttpServiceBody;
use super::incoming::HeaderMapAdapter;
use super::post::{EarlyResponse, NO_RANDOM, SESSION_LIMIT, TOO_MANY_REQUESTS, ids_of, method_mismatch};
use super::reply;
use super::service::HttpServiceState;
use super::sessions::{AnyHttpSession, SessionLimitReached};
use crate::runtime::Runtime;
use session::LegacySseSubmitError;

/// The query parameter with the session id, named as in other servers of HTTP+SSE.
const SESSION: &str = "session_id";

/// The HTTP methods that the HTTP+SSE endpoint allows.
const METHODS: &str = "GET, POST";

impl HttpServiceState {
    /// Whether an HTTP request for this path is for HTTP+SSE. The path may lack a prefix that a router has stripped.
    pub(crate) fn is_legacy_sse(&self, path: &str) -> bool {
        path.starts_with('/') && self.options.legacy_sse.as_deref().is_some_and(|known| known.ends_with(path))
    }

    /// Serves an HTTP request to the HTTP+SSE endpoint.
    pub(crate) async fn legacy_sse<B: Body>(
        self: Arc<Self>,
        runtime: Arc<dyn Runtime>,
        parts: Parts,
        body: B,
    ) -> Response<HttpServiceBody> {
        match parts.method {
            HttpMethod::GET => self.open_stream(runtime, &parts),
            HttpMethod::POST => match self.accept_post(&runtime, &parts, body).await {
                Ok(()) => reply::empty(StatusCode::ACCEPTED),
                Err(refused) => *refused,
            },
            _ => reply::not_allowed(METHODS),
        }
    }

    /// Handles a GET: opens an HTTP+SSE session and its event stream.
    fn open_stream(&self, runtime: Arc<dyn Runtime>, parts: &Parts) -> Response<HttpServiceBody> {
        if !Accepts::of(&HeaderMapAdapter(&parts.headers)).events {
            return reply::refuse(StatusCode::NOT_ACCEPTABLE, "Accept must list text/event-stream");
        }
        if self.closing.is_closing() {
            return reply::overloaded("shutting down: new sessions are refused");
        }
        if self.sessions.is_full() {
            return reply::overloaded(SESSION_LIMIT);
        }
        let Ok(session) = ServerLegacySseSession::new(self, runtime, self.options.principal(parts)) else {
            let error = ErrorObject::internal(NO_RANDOM);
            return reply::error(StatusCode::INTERNAL_SERVER_ERROR, None, &error);
        };
        if let Err(SessionLimitReached) = self.sessions.insert(AnyHttpSession::Sse(Arc::clone(&session))) {
            return reply::overloaded(SESSION_LIMIT);
        }
        if self.closing.is_closing() {
            // The shutdown has begun meanwhile, and may not have included this session.
            session.shut_down();
        }
        // Relative, without a host: the client uses the host by which it has reached the server.
        let path = self.options.legacy_sse.as_deref().unwrap_or_default();
        let endpoint = format!("{path}?{SESSION}={}", session.id());
        let stream = ServerLegacySseStream::new(session, Arc::downgrade(&self.sessions), &endpoint);
        reply::events(HttpServiceBody::sse(stream))
    }

    /// Handles a POST: a message of the client in an HTTP+SSE session.
    async fn accept_post<B: Body>(
        &self,
        runtime: &Arc<dyn Runtime>,
        parts: &Parts,
        body: B,
    ) -> Result<(), EarlyResponse> {
        let request_headers = HeaderMapAdapter(&parts.headers);
        let refuse = |status, message| Err(Box::new(reply::refuse(status, message)));
        if !media::is_json(&request_headers) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        let Some(id) = session_in(parts.uri.query().unwrap_or_default()) else {
            return refuse(StatusCode::BAD_REQUEST, "the query must name one session: open it with GET of this path");
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
        let id = if let Message::Request { id, .. } = &message { Some(id.clone()) } else { None };
        if let Some(refusal) = method_mismatch(&request_headers, &message) {
            return Err(Box::new(refusal));
        }
        if HttpSessionMode::of(&request_headers, &message) == HttpSessionMode::Stateless {
            let error = ErrorObject::invalid_request("HTTP+SSE does not carry messages of revision 2026-07-28");
            return Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id.as_ref(), &error)));
        }
        let ids = match &message {
            Message::Request { id, .. } => vec![id.clone()],
            Message::Batch(batch) => ids_of(*batch, self.limits.depth),
            _ => Vec::new(),
        };
        let submitted = session.submit(principal.as_ref(), message, &ids, permit);
        submitted.map_err(|error| Box::new(refusal(error, id.as_ref())))
    }
}

/// The session id in a query, if there is exactly one.
fn session_in(query: &str) -> Option<&str> {
    let mut named = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| *name == SESSION);
    let (_, id) = named.next()?;
    named.next().is_none().then_some(id)
}

fn refusal(error: LegacySseSubmitError, id: Option<&RequestId>) -> Response<HttpServiceBody> {
    match error {
        LegacySseSubmitError::SessionEnded => gone(id),
        LegacySseSubmitError::OutputFull => reply::overloaded("too many unread messages: read the event stream first"),
        LegacySseSubmitError::IdInUse => {
            // In this HTTP response it cannot be mistaken for the response to the other request, as it could on the stream.
            let error = ErrorObject::invalid_request("a request with this id is still in flight");
            reply::error(StatusCode::BAD_REQUEST, id, &error)
        }
    }
}

/// The HTTP response if the session has ended, never existed or belongs to another principal; it does not reveal which.
fn gone(id: Option<&RequestId>) -> Response<HttpServiceBody> {
    let error = ErrorObject::invalid_request("unknown session: its event stream has closed, or was never opened");
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
