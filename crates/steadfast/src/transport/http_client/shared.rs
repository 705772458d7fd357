//! What all requests to one server share, and how they are made: by whom, and let in by whom.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Url;
use tokio::sync::watch;

use super::authorize::{Attempt, Authorize, Authorizing};
use super::fetch::{Fetch, FetchRequest, FetchResponse};
use super::legacy_sse::Legacy;
use super::request::{Unsent, Wanted};
use super::session::Session;
use crate::client::kept::Kept;
use crate::runtime::{Runtime, poll_quietly};

/// How often one request is made again because it was not let in.
const ASKED_AGAIN: usize = 4;

/// One server.
pub(super) struct Shared {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) authorize: Option<Arc<dyn Authorize>>,
    /// The longest message that is taken.
    pub(super) longest: usize,
    /// How deep one may be nested.
    pub(super) depth: usize,
    /// What the client knows of tools, and has to know of who it is.
    pub(super) kept: Arc<Kept>,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) session: Mutex<Session>,
    pub(super) legacy: Legacy,
    /// Whether the server is heard when it speaks first, or never will be.
    pub(super) audible: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_audible(&self) {
        self.audible.send_replace(true);
    }

    /// Makes a request, as often as whoever authorizes it asks for.
    pub(super) async fn send(&self, wanted: Wanted<'_>) -> Result<FetchResponse, Unsent> {
        let url = wanted.endpoint.unwrap_or(&self.url);
        let mut attempt = self.authorize.as_ref().map(|all| all.attempt(&wanted.method, url.as_str()));
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
        let credentials = [AUTHORIZATION, COOKIE].into_iter().flat_map(|name| headers.get_all(name));
        self.kept.identify(credentials.map(HeaderValue::as_bytes));
        wanted.add_headers(&mut headers)?;
        headers.extend(wanted.mirrored.cloned().unwrap_or_else(|| self.session().headers()));
        let request = FetchRequest {
            method: wanted.method.clone(),
            url: wanted.endpoint.unwrap_or(&self.url).as_str().to_owned(),
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
