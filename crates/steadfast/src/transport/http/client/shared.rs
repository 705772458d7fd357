//! What all requests to one server share, and how a request is sent: authorized, redirected, retried after 401 and 403.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Url;
use steadfast_proto::envelope::Envelope;
use steadfast_proto::mutant;
use tokio::sync::watch;
use tracing::Level;

use super::authorize::Authorize;
use super::authorize::signing::ClientRequestAuthorizer;
use super::fetch::network::{REDIRECTS, redirected};
use super::fetch::{TransportFetch, TransportFetchRequest, TransportFetchResponse};
use super::in_flight::DeliveryState;
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::ClientLegacySseState;
use super::mirrored_headers::ClientToolHeaders;
use super::request::{ClientHttpRequest, ClientHttpRequestError, HttpSession};
use crate::runtime::{PeerWarningRecord, RateLimitedLog, Runtime};

/// How often one request is sent again after the server refused it with 401 or 403.
const AUTHORIZATION_RETRIES: usize = 4;

/// One server, and the connection to it.
pub(crate) struct HttpClientConnection {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) fetch: Arc<dyn TransportFetch>,
    /// Whether redirects are followed here. An HTTP client of the program follows them by its own rules.
    pub(crate) follows_redirects: bool,
    pub(crate) authorize: Option<Arc<dyn Authorize>>,
    /// The longest message that is accepted, in bytes.
    pub(crate) max_message_bytes: usize,
    /// The deepest nesting of a message that is accepted.
    pub(crate) max_depth: usize,
    pub(crate) tool_headers: Arc<dyn ClientToolHeaders>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) session: Mutex<HttpSession>,
    #[cfg(feature = "legacy-sse")]
    pub(crate) legacy: ClientLegacySseState,
    /// True when the stream of messages that the server sends by itself is open, or will not be opened.
    pub(crate) receives_notifications: watch::Sender<bool>,
    pub(crate) log: Mutex<RateLimitedLog>,
}

impl HttpClientConnection {
    /// Whether the connection is a stream of HTTP+SSE.
    #[cfg_attr(not(feature = "legacy-sse"), allow(clippy::unused_self, reason = "without the feature it never is"))]
    pub(crate) fn speaks_legacy_sse(&self) -> bool {
        #[cfg(feature = "legacy-sse")]
        return self.legacy.endpoint().is_some();
        #[cfg(not(feature = "legacy-sse"))]
        return false;
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, HttpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses a message of the server, within the limits of the connection.
    pub(crate) fn parse(&self, message: Vec<u8>) -> Box<Envelope> {
        Box::new(Envelope::read(message, self.max_depth))
    }

    pub(crate) fn note_receives_notifications(&self) {
        self.receives_notifications.send_replace(true);
    }

    /// Logs something that the server may have caused, at a limited rate. Tasks run on the thread of all connections, so the log
    /// is not written there (L6).
    pub(crate) fn log(&self, level: Level, what: &'static str, why: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.write(self.runtime.now(), PeerWarningRecord::transport(level, what, why));
    }

    /// Sends a request, and follows redirects. It is authorized anew for each URL, because credentials may be for one URL only.
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
            request.delivery.into_iter().for_each(DeliveryState::note_not_delivered);
            redirect = next;
            redirects_left -= 1;
        }
    }

    /// Sends a request to one URL, and again as long as the authorizer asks for a retry.
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
                request.delivery.into_iter().for_each(DeliveryState::note_settled);
                return Ok(response);
            };
            let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if refused {
                // If the call is cancelled while the user logs in, there is nothing to cancel at the server.
                request.delivery.into_iter().for_each(DeliveryState::note_not_delivered);
            }
            let answered = signing.answered(response.status(), response.headers().clone()).await;
            if !refused {
                // Not earlier: once delivery is settled, a cancelled call may be aborted at the await above, before its status was
                // looked at. The status may say that the session is lost.
                request.delivery.into_iter().for_each(DeliveryState::note_settled);
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
