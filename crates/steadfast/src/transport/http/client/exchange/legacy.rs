//! A message on its way over HTTP+SSE: what comes back is on the stream.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use reqwest::Url;
use steadfast_model::{ErrorObject, Method, code};
use steadfast_proto::connection::CallEnd;

use super::refusal::unanswered;
use super::{DriverEvent, MessagePost};
use crate::transport::http::client::fetch::{FetchResponse, body_of};
use crate::transport::http::client::legacy_sse::{OpenStreamError, is_refusal_of_its_kind, open};
use crate::transport::http::client::request::HttpRequest;
use crate::transport::http::client::stream::events::Events;

/// What a server says when it takes a message is not looked at. So much of it is read, that its connection can be used again.
const ACCEPTANCE: usize = 64 * 1024;

impl MessagePost {
    /// Sends it over HTTP+SSE, if that is spoken or expected to be. `None` if something newer is to be tried.
    pub(crate) async fn post_legacy(&mut self, body: &Bytes) -> Option<Result<(), CallEnd>> {
        let shared = Arc::clone(&self.shared);
        let legacy = &shared.legacy;
        if let Some(endpoint) = legacy.endpoint() {
            return Some(self.deliver(endpoint, body.clone()).await);
        }
        if !legacy.is_expected() {
            return None;
        }
        if self.outgoing.method != Some(Method::Initialize) {
            // Who probes for a newer revision goes on with the handshake.
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, "HTTP+SSE is spoken after a handshake only");
            return Some(Err(CallEnd::Refused(error)));
        }
        match open(&shared).await {
            Ok(events) => Some(self.opened(events, body.clone()).await),
            Err(OpenStreamError::Refused(_) | OpenStreamError::NotIt(_)) if !legacy.is_demanded() => {
                legacy.forget();
                None
            }
            Err(OpenStreamError::Refused(response)) => Some(self.refused(response).await),
            Err(OpenStreamError::NotIt(why) | OpenStreamError::Elsewhere(why)) => Some(Err(not_sent(why))),
            Err(OpenStreamError::NoResponse(why)) => Some(Err(unopened(unanswered(why)))),
        }
    }

    /// `initialize` was refused. If the server has the stream of HTTP+SSE instead, that is spoken from here on; if not, its
    /// refusal is what is known.
    pub(crate) async fn refused_or_legacy(&mut self, response: FetchResponse, body: Bytes) -> Result<(), CallEnd> {
        let refusal = self.read_refusal(response).await;
        if !is_refusal_of_its_kind(refusal.status, refusal.error.as_ref()) {
            return self.end_refused(refusal).await;
        }
        match open(&self.shared).await {
            Ok(events) => self.opened(events, body).await,
            Err(OpenStreamError::Elsewhere(why)) => Err(not_sent(why)),
            Err(OpenStreamError::Refused(response)) if response.status().is_redirection() => {
                self.refused(response).await
            }
            Err(_) => self.end_refused(refusal).await,
        }
    }

    async fn opened(&mut self, events: Events, body: Bytes) -> Result<(), CallEnd> {
        self.tell(DriverEvent::StreamOpened(Box::new(events))).await;
        let shared = Arc::clone(&self.shared);
        match shared.legacy.endpoint() {
            Some(endpoint) => self.deliver(endpoint, body).await,
            None => Err(not_sent("the stream has no endpoint".to_owned())),
        }
    }

    async fn deliver(&mut self, endpoint: &Url, body: Bytes) -> Result<(), CallEnd> {
        let wanted = HttpRequest { endpoint: Some(endpoint), ..self.wanted(body) };
        let response = self.shared.send(wanted).await.map_err(unanswered)?;
        match response.status() {
            StatusCode::NOT_FOUND => {
                self.tell(DriverEvent::SessionLost).await;
                Err(CallEnd::SessionLost)
            }
            status if status.is_success() => {
                self.note_delivered();
                drop(body_of(response, ACCEPTANCE).await);
                Ok(())
            }
            _ => self.refused(response).await,
        }
    }
}

fn not_sent(why: String) -> CallEnd {
    CallEnd::Lost { sent: false, why }
}

/// Whatever became of the request for the stream, `initialize` was not sent.
fn unopened(outcome: CallEnd) -> CallEnd {
    match outcome {
        CallEnd::Lost { why, .. } => not_sent(why),
        other => other,
    }
}
