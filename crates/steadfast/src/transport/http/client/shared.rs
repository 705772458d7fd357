//! What all requests to one server share, and how they are made: by whom, and let in by whom.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Url;
use steadfast_proto::mutant;
use tokio::sync::watch;
use tracing::Level;

use super::authorize::Authorize;
use super::authorize::signing::Signing;
use super::fetch::network::{REDIRECTS, redirected};
use super::fetch::{Fetch, FetchRequest, FetchResponse};
use super::in_flight::delivery::Delivery;
#[cfg(feature = "legacy-sse")]
use super::legacy_sse::LegacySse;
use super::request::{HttpRequest, NoResponse};
use super::session::Session;
use super::tool_headers::ToolHeaders;
use crate::runtime::{PeerLogRecord, RateLimitedLog, Runtime};

/// How often one request is made again because it was not let in.
const ASKED_AGAIN: usize = 4;

/// One server.
pub(crate) struct Shared {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) fetch: Arc<dyn Fetch>,
    /// Whether redirects are followed here. A client of the program's follows its own rules.
    pub(crate) follows: bool,
    pub(crate) authorize: Option<Arc<dyn Authorize>>,
    /// The longest message that is taken.
    pub(crate) longest: usize,
    /// How deep one may be nested.
    pub(crate) depth: usize,
    /// Knows of tools, and has to know who asks.
    pub(crate) tool_headers: Arc<dyn ToolHeaders>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) session: Mutex<Session>,
    #[cfg(feature = "legacy-sse")]
    pub(crate) legacy: LegacySse,
    /// Whether the server is heard when it speaks first, or never will be.
    pub(crate) audible: watch::Sender<bool>,
    pub(crate) log: Mutex<RateLimitedLog>,
}

impl Shared {
    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection is a stream of HTTP+SSE.
    #[cfg_attr(not(feature = "legacy-sse"), allow(clippy::unused_self, reason = "nothing else is spoken"))]
    pub(crate) fn speaks_legacy_sse(&self) -> bool {
        #[cfg(feature = "legacy-sse")]
        return self.legacy.endpoint().is_some();
        #[cfg(not(feature = "legacy-sse"))]
        return false;
    }

    pub(crate) fn note_audible(&self) {
        self.audible.send_replace(true);
    }

    /// Something that the server may have provoked. Tasks are on the thread of all connections, and do not write there (L6).
    pub(crate) fn log(&self, level: Level, what: &'static str, why: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.write(self.runtime.now(), PeerLogRecord::transport(level, what, why));
    }

    /// Makes a request, wherever it is sent on to. At each URL it is another one to whoever authorizes it: what proves who sends it
    /// may be for that URL alone.
    pub(crate) async fn send(&self, request: HttpRequest<'_>) -> Result<FetchResponse, NoResponse> {
        let mut elsewhere = None;
        let mut left = REDIRECTS;
        loop {
            let url = elsewhere.as_ref().or(request.endpoint).unwrap_or(&self.url);
            let response = self.send_to(url, &request).await?;
            let may_follow = self.follows && left > 0;
            let next = may_follow.then(|| redirected(url, response.status(), response.headers())).flatten();
            if next.is_none() {
                return Ok(response);
            }
            // It has not been carried out there.
            request.delivery.into_iter().for_each(Delivery::note_back);
            elsewhere = next;
            left -= 1;
        }
    }

    /// Makes a request, as often as whoever authorizes it asks for.
    async fn send_to(&self, url: &Url, request: &HttpRequest<'_>) -> Result<FetchResponse, NoResponse> {
        let authorize = self.authorize.as_ref();
        let mut signing = authorize.map(|all| Signing::new(all, &request.method, url.as_str(), &self.runtime));
        let mut left = ASKED_AGAIN;
        loop {
            let response = self.send_once(url, request, signing.as_mut()).await?;
            let Some(signing) = &mut signing else {
                request.delivery.into_iter().for_each(Delivery::note_arrived);
                return Ok(response);
            };
            let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if refused {
                // Whoever gives it up while somebody logs in has nothing to tell the server.
                request.delivery.into_iter().for_each(Delivery::note_back);
            }
            let answered = signing.answered(response.status(), response.headers().clone()).await;
            if !refused {
                // Not earlier: what has arrived may be given up, and dropped at the await above with the status that nothing has
                // looked at yet. It may say that the session is lost.
                request.delivery.into_iter().for_each(Delivery::note_arrived);
            }
            match answered {
                Ok(true) if refused && left > 0 => left -= 1,
                Err(error) if refused => return Err(NoResponse::Unauthorized(error)),
                // What is wrong with its books is not the request's concern: it was let in.
                _ => return Ok(response),
            }
        }
    }

    async fn send_once(
        &self,
        url: &Url,
        request: &HttpRequest<'_>,
        signing: Option<&mut Signing>,
    ) -> Result<FetchResponse, NoResponse> {
        let mut headers = self.headers.clone();
        if let Some(signing) = signing {
            headers = signing.sign(headers).await.map_err(NoResponse::Unauthorized)?;
        }
        let credentials = [AUTHORIZATION, COOKIE].into_iter().flat_map(|name| headers.get_all(name));
        self.tool_headers.identify(&mut credentials.map(HeaderValue::as_bytes));
        request.add_headers(&mut headers)?;
        headers.extend(request.mirrored.cloned().unwrap_or_else(|| self.session().headers()));
        let fetch = FetchRequest {
            method: request.method.clone(),
            url: url.as_str().to_owned(),
            headers,
            body: request.body.clone(),
            timeout: request.timeout,
        };
        let Some(delivery) = request.delivery else {
            return self.fetch.fetch(fetch).await.map_err(NoResponse::Failed);
        };
        delivery.note_under_way(self.runtime.now());
        let fetched = self.fetch.fetch(fetch).await;
        match &fetched {
            // It has arrived when its head was looked at.
            Ok(_) if !mutant!(ArriveUnread) => {}
            Err(error) if !error.is_sent() => delivery.note_back(),
            // What broke off may have arrived, and nothing more will be known of it.
            _ => delivery.note_arrived(),
        }
        fetched.map_err(NoResponse::Failed)
    }
}
