//! An HTTP request to the server, before the URL and the headers of the target are added, and the session that it belongs to.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::Url;
use steadfast_model::Revision;
use steadfast_proto::http::name;

use super::fetch::TransportFetchError;
use super::in_flight::DeliveryState;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENT_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One HTTP request.
#[derive(Default)]
pub(crate) struct ClientHttpRequest<'a> {
    pub(crate) method: http::Method,
    /// Where to send the request, if not to the URL of the target: the endpoint that a stream of HTTP+SSE has named.
    pub(crate) endpoint: Option<&'a Url>,
    /// The headers that mirror a request of 2026-07-28. Other requests have the headers of the session.
    pub(crate) mirrored: Option<&'a HeaderMap>,
    pub(crate) last_event_id: Option<&'a str>,
    pub(crate) body: Option<bytes::Bytes>,
    /// Tracks whether the server may have received it.
    pub(crate) delivery: Option<&'a DeliveryState>,
    pub(crate) timeout: Option<Duration>,
}

impl ClientHttpRequest<'_> {
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), ClientHttpRequestError> {
        headers.insert(ACCEPT, if self.method == http::Method::GET { EVENT_STREAM } else { JSON_OR_EVENT_STREAM });
        if let Some(id) = self.last_event_id {
            // Without this header it would open another stream.
            let id = HeaderValue::from_bytes(id.as_bytes());
            let id = id.map_err(|error| {
                ClientHttpRequestError::Failed(
                    TransportFetchError::invalid_request(error.to_string()).with_source(error),
                )
            })?;
            headers.insert(name::LAST_EVENT_ID, id);
        }
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, JSON);
        }
        Ok(())
    }
}

/// Why a request got no response.
pub(crate) enum ClientHttpRequestError {
    /// The authorizer failed, or the server refused the request and the authorizer could not help.
    Unauthorized(Box<dyn std::error::Error + Send + Sync>),
    /// The HTTP client failed.
    Failed(TransportFetchError),
}

impl ClientHttpRequestError {
    /// Whether a retry would fail too. An authorizer has tried what it could, and may have asked the user.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unauthorized(_) => true,
            Self::Failed(error) => error.is_invalid_request(),
        }
    }
}

/// The session that a handshake of an older revision has opened, as headers of every request. Empty before the handshake. There are no sessions since 2026-07-28.
#[derive(Clone, Default)]
pub(crate) struct HttpSession {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) revision: Option<Revision>,
}

impl HttpSession {
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(name::SESSION_ID, id.clone());
        }
        if let Some(revision) = self.revision {
            // Revision 2025-03-26 does not have this header; its servers ignore it.
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }
}
