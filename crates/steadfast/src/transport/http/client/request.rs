//! A request that is to be made, and what it says of itself.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use reqwest::Url;
use steadfast_proto::http::name;

use super::fetch::FetchError;
use super::in_flight::delivery::Delivery;

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const ANYTHING: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request to be made.
#[derive(Default)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: http::Method,
    /// Where to, if not to the server's URL.
    pub(crate) endpoint: Option<&'a Url>,
    /// The headers that a message of 2026-07-28 is mirrored in. Others have those of the session.
    pub(crate) mirrored: Option<&'a HeaderMap>,
    pub(crate) last_event_id: Option<&'a str>,
    pub(crate) body: Option<bytes::Bytes>,
    /// Who wants to know how far it has come.
    pub(crate) delivery: Option<&'a Delivery>,
    pub(crate) timeout: Option<Duration>,
}

impl HttpRequest<'_> {
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), NoResponse> {
        headers.insert(ACCEPT, if self.method == http::Method::GET { EVENTS } else { ANYTHING });
        if let Some(id) = self.last_event_id {
            // Without it, this would be another request.
            let id = HeaderValue::from_bytes(id.as_bytes());
            let id =
                id.map_err(|error| NoResponse::Failed(FetchError::unwritable(error.to_string()).with_source(error)))?;
            headers.insert(name::LAST_EVENT_ID, id);
        }
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, JSON);
        }
        Ok(())
    }
}

/// Why there is no response.
pub(crate) enum NoResponse {
    /// Whoever authorizes requests could not.
    Unauthorized(Box<dyn std::error::Error + Send + Sync>),
    Failed(FetchError),
}

impl NoResponse {
    /// Whether it will be no better next time. Whoever authorizes has tried what there is to try, and may have asked somebody.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unauthorized(_) => true,
            Self::Failed(error) => error.is_unwritable(),
        }
    }
}
