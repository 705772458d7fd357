//! The state that all HTTP requests of one client connection share, and how a request is sent: authorized, redirected,
//! retried after 401 and 403.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Url;
use steadfast_model::Revision;
use steadfast_proto::envelope::Envelope;
use steadfast_proto::http::name;
use steadfast_proto::mutant;
use tokio::sync::watch;
use tracing::Level;

use super::authorize::Authorize;
use super::authorize::signing::ClientRequestAuthorizer;
use super::fetch::TransportFetchError;
use super::fetch::network::{REDIRECTS, redirected};
use super::fetch::{TransportFetch, TransportFetchRequest, TransportFetchResponse};
use super::in_flight::HttpPostDelivery;
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::ClientLegacySseState;
use super::mirrored_headers::ClientToolHeaders;
use crate::runtime::{PeerWarningRecord, RateLimitedLog, Runtime};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON_OR_EVENT_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The maximum number of times that one request is sent again after the server refused it with 401 or 403.
const AUTHORIZATION_RETRIES: usize = 4;

/// The state that all HTTP requests of one client connection share: the server's URL, the headers, the HTTP client,
/// authorization, limits and the MCP session.
pub(crate) struct HttpClientConnection {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) fetch: Arc<dyn TransportFetch>,
    /// Whether the HTTP transport of the client follows redirects itself. An HTTP client that the program supplies
    /// follows redirects by its own rules.
    pub(crate) follows_redirects: bool,
    pub(crate) authorize: Option<Arc<dyn Authorize>>,
    /// The maximum length of a message of the server, in bytes.
    pub(crate) max_message_bytes: usize,
    /// The maximum nesting of a message of the server.
    pub(crate) max_depth: usize,
    pub(crate) tool_headers: Arc<dyn ClientToolHeaders>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) session: Mutex<ClientHttpSession>,
    #[cfg(feature = "legacy-sse")]
    pub(crate) legacy: ClientLegacySseState,
    /// True when the stream of server-initiated messages is open, or when it is known that it will not be opened.
    pub(crate) receives_notifications: watch::Sender<bool>,
    pub(crate) log: Mutex<RateLimitedLog>,
}

impl HttpClientConnection {
    /// Whether this connection uses HTTP+SSE: its event stream has named an endpoint.
    #[cfg_attr(
        not(feature = "legacy-sse"),
        allow(clippy::unused_self, reason = "a connection never uses HTTP+SSE without the feature")
    )]
    pub(crate) fn speaks_legacy_sse(&self) -> bool {
        #[cfg(feature = "legacy-sse")]
        return self.legacy.endpoint().is_some();
        #[cfg(not(feature = "legacy-sse"))]
        return false;
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, ClientHttpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses a message of the server, within the limits of the connection.
    pub(crate) fn parse(&self, message: Vec<u8>) -> Box<Envelope> {
        Box::new(Envelope::read(message, self.max_depth))
    }

    pub(crate) fn note_receives_notifications(&self) {
        self.receives_notifications.send_replace(true);
    }

    /// Logs something that the server may have caused, at a limited rate. HTTP requests are polled on the thread of all
    /// connections, so the log is not written on that thread (law L6).
    pub(crate) fn log(&self, level: Level, what: &'static str, why: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.write(self.runtime.now(), PeerWarningRecord::transport(level, what, why));
    }

    /// Sends an HTTP request, and follows redirects. The request is authorized anew for each URL, because credentials
    /// may be for one URL only.
    pub(crate) async fn send(
        &self,
        request: ClientHttpRequest<'_>,
    ) -> Result<TransportFetchResponse, ClientHttpRequestError> {
        let mut redirect = None;
        let mut redirects_left = REDIRECTS;
        loop {
            let url = redirect.as_ref().or(request.endpoint).unwrap_or(&self.url);
            let response = self.send_to(url, &request).await?;
            let may_follow = self.follows_redirects && redirects_left > 0;
            let next = may_follow.then(|| redirected(url, response.status(), response.headers())).flatten();
            if next.is_none() {
                return Ok(response);
            }
            // The server has not acted on it.
            request.delivery.into_iter().for_each(HttpPostDelivery::note_not_delivered);
            redirect = next;
            redirects_left -= 1;
        }
    }

    /// Sends an HTTP request to one URL, and sends it again as long as the authorizer asks for a retry.
    async fn send_to(
        &self,
        url: &Url,
        request: &ClientHttpRequest<'_>,
    ) -> Result<TransportFetchResponse, ClientHttpRequestError> {
        let authorize = self.authorize.as_ref();
        let mut signing =
            authorize.map(|all| ClientRequestAuthorizer::new(all, &request.method, url.as_str(), &self.runtime));
        let mut retries_left = AUTHORIZATION_RETRIES;
        loop {
            let response = self.send_once(url, request, signing.as_mut()).await?;
            let Some(signing) = &mut signing else {
                request.delivery.into_iter().for_each(HttpPostDelivery::note_settled);
                return Ok(response);
            };
            let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if refused {
                // If the call is cancelled while the user logs in, there is nothing to cancel at the server.
                request.delivery.into_iter().for_each(HttpPostDelivery::note_not_delivered);
            }
            let answered = signing.answered(response.status(), response.headers().clone()).await;
            if !refused {
                // Not earlier: once delivery is settled, a cancelled call may be aborted at the await above, before its status was
                // looked at. The status may say that the session is lost.
                request.delivery.into_iter().for_each(HttpPostDelivery::note_settled);
            }
            match answered {
                Ok(true) if refused && retries_left > 0 => retries_left -= 1,
                Err(error) if refused => return Err(ClientHttpRequestError::Unauthorized(error)),
                // The server accepted the request, so a failure of the authorizer does not matter to it.
                _ => return Ok(response),
            }
        }
    }

    async fn send_once(
        &self,
        url: &Url,
        request: &ClientHttpRequest<'_>,
        signing: Option<&mut ClientRequestAuthorizer>,
    ) -> Result<TransportFetchResponse, ClientHttpRequestError> {
        let mut headers = self.headers.clone();
        if let Some(signing) = signing {
            headers = signing.sign(headers).await.map_err(ClientHttpRequestError::Unauthorized)?;
        }
        let credentials = [AUTHORIZATION, COOKIE].into_iter().flat_map(|name| headers.get_all(name));
        self.tool_headers.identify(&mut credentials.map(HeaderValue::as_bytes));
        request.add_headers(&mut headers)?;
        headers.extend(request.mirrored.cloned().unwrap_or_else(|| self.session().headers()));
        let fetch = TransportFetchRequest {
            method: request.method.clone(),
            url: url.as_str().to_owned(),
            headers,
            body: request.body.clone(),
            timeout: request.timeout,
        };
        let Some(delivery) = request.delivery else {
            return self.fetch.fetch(fetch).await.map_err(ClientHttpRequestError::Failed);
        };
        delivery.note_sending(self.runtime.now());
        let fetched = self.fetch.fetch(fetch).await;
        match &fetched {
            // Settled when the status was looked at, by the caller.
            Ok(_) if !mutant!(DeliverBeforeStatus) => {}
            Err(error) if !error.may_be_sent() => delivery.note_not_delivered(),
            // The server may have received it, and nothing more will be known.
            _ => delivery.note_settled(),
        }
        fetched.map_err(ClientHttpRequestError::Failed)
    }
}

/// One HTTP request of the client.
#[derive(Default)]
pub(crate) struct ClientHttpRequest<'a> {
    pub(crate) method: http::Method,
    /// Where to send the request, if not to the URL of the target: the endpoint that a stream of HTTP+SSE has named.
    pub(crate) endpoint: Option<&'a Url>,
    /// The headers that mirror a request of 2026-07-28. Requests of older revisions have the headers of the MCP session
    /// instead of mirrored headers.
    pub(crate) mirrored: Option<&'a HeaderMap>,
    pub(crate) last_event_id: Option<&'a str>,
    pub(crate) body: Option<bytes::Bytes>,
    /// Tracks whether the server may have received the message of this request.
    pub(crate) delivery: Option<&'a HttpPostDelivery>,
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

/// Why an HTTP request of the client got no response.
pub(crate) enum ClientHttpRequestError {
    /// The authorizer failed, either before the request was sent, or after the server refused it with 401 or 403.
    Unauthorized(Box<dyn std::error::Error + Send + Sync>),
    /// The HTTP client failed to send the request or to receive the response.
    Failed(TransportFetchError),
}

impl ClientHttpRequestError {
    /// Whether a retry of the HTTP request would fail too. After 401 the authorizer has already tried to get another token.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unauthorized(_) => true,
            Self::Failed(error) => error.is_invalid_request(),
        }
    }
}

/// The MCP session that a handshake of an older revision has opened, whose headers are sent with every request.
/// Before the handshake, the id and the revision of the session are not set. Since revision 2026-07-28, MCP has no
/// sessions.
#[derive(Clone, Default)]
pub(crate) struct ClientHttpSession {
    pub(crate) id: Option<HeaderValue>,
    pub(crate) revision: Option<Revision>,
}

impl ClientHttpSession {
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
