//! Sends a message over HTTP+SSE, where the server responds on its event stream.

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

/// The maximum number of bytes that are read from the HTTP response with which a server accepts a message. The content
/// of such a response does not matter, but an HTTP connection can be reused only after the response on it was read to
/// its end.
const ACCEPTED_BODY: usize = 64 * 1024;

impl MessagePost {
    /// Sends the message over HTTP+SSE, if the connection uses it or is to try it first. Returns `None` if Streamable
    /// HTTP is to be tried instead.
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

    /// Called when the server refused `initialize` over Streamable HTTP. If the server opens an event stream of
    /// HTTP+SSE instead, the connection uses HTTP+SSE from here on; if not, the call ends with the refusal.
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
            None => Err(not_sent("the HTTP+SSE stream names no endpoint".to_owned())),
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

/// Marks the call as not sent: however the GET for the event stream failed, `initialize` was not sent.
fn initialize_not_sent(end: CallEnd) -> CallEnd {
    match end {
        CallEnd::Lost { why, .. } => not_sent(why),
        other => other,
    }
}
