//! What all requests to one server share: its address, its session, and who makes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use steadfast_model::Revision;
use steadfast_proto::http::name;

use super::authorize::{Attempt, Authorize, Authorizing};
use super::fetch::{Fetch, FetchError, FetchRequest, FetchResponse};
use super::tools::Tools;
use crate::runtime::{Runtime, poll_quietly};

/// How often one request is made again because it was not let in.
const ASKED_AGAIN: usize = 4;

/// One server.
pub(super) struct Shared {
    url: reqwest::Url,
    headers: HeaderMap,
    fetch: Arc<dyn Fetch>,
    authorize: Option<Arc<dyn Authorize>>,
    /// The longest message that is taken.
    pub(super) longest: usize,
    pub(super) tools: Tools,
    pub(super) runtime: Arc<dyn Runtime>,
    session: Mutex<Session>,
}

/// What the handshake of an older revision has established.
#[derive(Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) revision: Option<Revision>,
}

impl Shared {
    pub(super) fn new(
        url: reqwest::Url,
        headers: HeaderMap,
        fetch: Arc<dyn Fetch>,
        authorize: Option<Arc<dyn Authorize>>,
        longest: usize,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let (tools, session) = (Tools::default(), Mutex::default());
        Self { url, headers, fetch, authorize, longest, tools, runtime, session }
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request, as often as whoever authorizes it asks for.
    pub(super) async fn send(&self, wanted: Wanted<'_>) -> Result<FetchResponse, Unsent> {
        let mut attempt = self.authorize.as_ref().map(|all| all.attempt(&wanted.method, self.url.as_str()));
        for _ in 0..ASKED_AGAIN {
            let response = self.send_once(&wanted, attempt.as_deref_mut()).await?;
            let Some(attempt) = &mut attempt else { return Ok(response) };
            let answered = fenced(attempt.answered(response.status(), response.headers())).await;
            let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            match answered {
                Ok(true) if refused => {}
                Err(error) if refused => return Err(Unsent::Unauthorized(error)),
                // What is wrong with its books is not the request's concern: it was let in.
                _ => return Ok(response),
            }
        }
        self.send_once(&wanted, attempt.as_deref_mut()).await
    }

    async fn send_once(
        &self,
        wanted: &Wanted<'_>,
        attempt: Option<&mut (dyn Attempt + 'static)>,
    ) -> Result<FetchResponse, Unsent> {
        let mut headers = self.headers.clone();
        if let Some(attempt) = attempt {
            fenced(attempt.sign(&mut headers)).await.map_err(Unsent::Unauthorized)?;
        }
        wanted.add_headers(&mut headers)?;
        headers.extend(wanted.mirrored.cloned().unwrap_or_else(|| self.session().headers()));
        let request = FetchRequest {
            method: wanted.method.clone(),
            url: self.url.as_str().to_owned(),
            headers,
            body: wanted.body.clone(),
            timeout: wanted.timeout,
        };
        self.fetch.fetch(request).await.map_err(Unsent::Failed)
    }
}

/// What authorizes requests is somebody else's code: its panic is its failure, and nobody waits for ever.
async fn fenced<T>(mut step: Authorizing<'_, T>) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
    std::future::poll_fn(|cx| {
        poll_quietly(step.as_mut(), cx).unwrap_or_else(|_| Poll::Ready(Err("it failed unexpectedly".into())))
    })
    .await
}

/// A request to be made.
#[derive(Clone, Default)]
pub(super) struct Wanted<'a> {
    pub(super) method: http::Method,
    /// The headers that a message of 2026-07-28 is mirrored in. Others have those of the session.
    pub(super) mirrored: Option<&'a HeaderMap>,
    pub(super) last_event_id: Option<&'a str>,
    pub(super) body: Option<bytes::Bytes>,
    pub(super) timeout: Option<Duration>,
}

impl Wanted<'_> {
    fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), Unsent> {
        let accept =
            if self.method == http::Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        headers.append(ACCEPT, HeaderValue::from_static(accept));
        if let Some(id) = self.last_event_id {
            // Without it, this would be another request.
            let id = HeaderValue::from_bytes(id.as_bytes());
            let id = id.map_err(|error| Unsent::Failed(FetchError::unsent(error.to_string())))?;
            headers.append(name::LAST_EVENT_ID, id);
        }
        if self.body.is_some() {
            headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok(())
    }
}

/// Why there is no response.
pub(super) enum Unsent {
    /// Whoever authorizes requests could not.
    Unauthorized(Box<dyn std::error::Error + Send + Sync>),
    Failed(FetchError),
}

impl Session {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(name::SESSION_ID, id.clone());
        }
        if let Some(revision) = self.revision {
            // Revision 2025-03-26 has no such header, and does not mind it.
            headers.insert(name::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        headers
    }
}
