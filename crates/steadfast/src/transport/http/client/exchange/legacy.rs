//! Sending a message over HTTP+SSE, where the server responds on its stream.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use reqwest::Url;
use steadfast_model::{ErrorObject, Method, code};
use steadfast_proto::connection::CallEnd;

use super::request_failed;
use super::{HttpClientDriverEvent, MessagePost};
use crate::transport::http::client::fetch::{TransportFetchResponse, read_body};
use crate::transport::http::client::legacy_sse::{LegacySseOpenError, is_legacy_refusal, open};
use crate::transport::http::client::shared::ClientHttpRequest;
use crate::transport::http::client::stream::events::SseMessageReader;

/// How much is read of the body with which a server accepts a message. The content does not matter, but a response that was read
/// to its end leaves its connection reusable.
const ACCEPTED_BODY: usize = 64 * 1024;

impl MessagePost {
    /// Sends the message over HTTP+SSE, if the connection uses it or is to try it first. `None` if Streamable HTTP is to be tried.
    pub(crate) async fn post_legacy(&mut self, body: &Bytes) -> Option<Result<(), CallEnd>> {
        let shared = Arc::clone(&self.shared);
        let legacy = &shared.legacy;
        if let Some(endpoint) = legacy.endpoint() {
            return Some(self.post_to_endpoint(endpoint, body.clone()).await);
        }
        if !legacy.is_tried_first() {
            return None;
        }
        if self.kind.method() != Some(Method::Initialize) {
            // A client that probes for a newer revision goes on to the handshake.
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, "HTTP+SSE needs a handshake: send initialize first");
            return Some(Err(CallEnd::Refused(error)));
        }
        match open(&shared).await {
            Ok(events) => Some(self.stream_opened(events, body.clone()).await),
            Err(LegacySseOpenError::Refused(_) | LegacySseOpenError::NotLegacy(_)) if !legacy.is_required() => {
                legacy.forget();
                None
            }
            Err(LegacySseOpenError::Refused(response)) => Some(self.refused(response).await),
            Err(LegacySseOpenError::NotLegacy(why) | LegacySseOpenError::BadEndpoint(why)) => Some(Err(not_sent(why))),
            Err(LegacySseOpenError::NoResponse(why)) => Some(Err(initialize_not_sent(request_failed(why)))),
        }
    }

    /// The server refused `initialize`. If it opens the stream of HTTP+SSE instead, the connection uses that from here on; if
    /// not, the call ends with the refusal.
    pub(crate) async fn refused_or_legacy(
        &mut self,
        response: TransportFetchResponse,
        body: Bytes,
    ) -> Result<(), CallEnd> {
        let refusal = self.read_refusal(response).await;
        if !is_legacy_refusal(refusal.status, refusal.error.as_ref()) {
            return self.end_refused(refusal).await;
        }
        match open(&self.shared).await {
            Ok(events) => self.stream_opened(events, body).await,
            Err(LegacySseOpenError::BadEndpoint(why)) => Err(not_sent(why)),
            Err(LegacySseOpenError::Refused(response)) if response.status().is_redirection() => {
                self.refused(response).await
            }
            Err(_) => self.end_refused(refusal).await,
        }
    }

    async fn stream_opened(&mut self, events: SseMessageReader, body: Bytes) -> Result<(), CallEnd> {
        self.report(HttpClientDriverEvent::LegacyStreamOpened(Box::new(events))).await;
        let shared = Arc::clone(&self.shared);
        match shared.legacy.endpoint() {
            Some(endpoint) => self.post_to_endpoint(endpoint, body).await,
            None => Err(not_sent("the stream names no endpoint".to_owned())),
        }
    }

    async fn post_to_endpoint(&mut self, endpoint: &Url, body: Bytes) -> Result<(), CallEnd> {
        let request = ClientHttpRequest { endpoint: Some(endpoint), ..self.request(body) };
        let response = self.shared.send(request).await.map_err(request_failed)?;
        match response.status() {
            StatusCode::NOT_FOUND => {
                self.report(HttpClientDriverEvent::SessionLost).await;
                Err(CallEnd::SessionLost)
            }
            status if status.is_success() => {
                self.note_delivered();
                drop(read_body(response, ACCEPTED_BODY).await);
                Ok(())
            }
            _ => self.refused(response).await,
        }
    }
}

fn not_sent(why: String) -> CallEnd {
    CallEnd::Lost { sent: false, why }
}

/// However the request for the stream failed, `initialize` was not sent.
fn initialize_not_sent(end: CallEnd) -> CallEnd {
    match end {
        CallEnd::Lost { why, .. } => not_sent(why),
        other => other,
    }
}
