//! Public keys that are fetched from the authorization server, and fetched again when they change.
//!
//! What happens when the key of a token is needed:
//!
//! ```text
//! key known, set fresh ........ used
//! key known, set old .......... used, and fetched again in the background
//! key unknown ................. fetched, if the last fetch is long enough ago; concurrent callers wait for that fetch
//! fetch failed ................ the old set is used until it is too old
//! ```
//!
//! A fetch of the keys runs on its own tokio task, so that a client that disconnects does not cancel it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use tokio::sync::watch;
use tokio::time::Instant;

use super::keys::{KeySet, KeySource, KeysFuture, KeysUnavailable};
use crate::http_client::endpoint;
use crate::redact::redact_url;
use crate::resource_server::{HttpClient, HttpClientBody, InsecureEndpoint};

/// Limit of the length of the fetched JWK Set, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// Timeout of an HTTP request that fetches the JWK Set.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Public keys at a URL (`jwks_uri`), fetched when they are needed and cached.
#[derive(Clone)]
pub struct RemoteKeySet(Arc<JwksCache>);

#[derive(Clone)]
struct JwksCache {
    client: Arc<dyn HttpClient>,
    uri: Uri,
    times: KeyCacheTimes,
    state: watch::Sender<KeyFetchState>,
}

#[derive(Clone, Debug)]
struct KeyCacheTimes {
    /// Maximum age of a key set that is used without fetching it again.
    fresh: Duration,
    /// Maximum age of a key set that is still used if it cannot be fetched again.
    usable: Duration,
    /// Minimum time between two fetches of the key set.
    pause: Duration,
}

#[derive(Clone, Debug, Default)]
struct KeyFetchState {
    keys: Option<(Arc<KeySet>, Instant)>,
    /// When the last fetch of the key set started.
    begun: Option<Instant>,
    fetching: bool,
}

#[derive(Debug)]
enum KeyFetchDecision {
    Use(Arc<KeySet>),
    UseAndFetch(Arc<KeySet>),
    Fetch,
    Wait,
    Unavailable,
}

impl RemoteKeySet {
    /// Creates a key set whose keys are fetched from this URL (`jwks_uri`) when they are needed.
    pub fn new(client: impl HttpClient, url: &str) -> Result<Self, InsecureEndpoint> {
        let times = KeyCacheTimes {
            fresh: Duration::from_secs(60 * 60),
            usable: Duration::from_secs(24 * 60 * 60),
            pause: Duration::from_secs(30),
        };
        let state = watch::Sender::new(KeyFetchState::default());
        Ok(Self(Arc::new(JwksCache { client: Arc::new(client), uri: endpoint(url)?, times, state })))
    }

    /// Sets the age up to which cached keys are used without fetching them again. Default: one hour.
    pub fn fresh_for(mut self, time: Duration) -> Self {
        self.times().fresh = time;
        self
    }

    /// Sets the age up to which cached keys are used if they cannot be fetched again: a revoked key may be accepted that long.
    /// Default: one day.
    pub fn max_age(mut self, time: Duration) -> Self {
        self.times().usable = time;
        self
    }

    /// Sets the minimum time between two fetches of the keys, whatever key ids the tokens have. Default: 30 seconds.
    pub fn pause(mut self, time: Duration) -> Self {
        self.times().pause = time;
        self
    }

    fn times(&mut self) -> &mut KeyCacheTimes {
        &mut Arc::make_mut(&mut self.0).times
    }
}

impl KeySource for RemoteKeySet {
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> KeysFuture<'a> {
        Box::pin(self.0.find(wanted))
    }
}

impl fmt::Debug for RemoteKeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RemoteKeySet")
            .field("uri", &redact_url(&self.0.uri.to_string()))
            .field("times", &self.0.times)
            .finish_non_exhaustive()
    }
}

impl JwksCache {
    async fn find(self: &Arc<Self>, wanted: Option<&str>) -> Result<Arc<KeySet>, KeysUnavailable> {
        let mut changes = self.state.subscribe();
        match self.decide(wanted) {
            KeyFetchDecision::Use(keys) => return Ok(keys),
            KeyFetchDecision::UseAndFetch(keys) => {
                self.start_fetch();
                return Ok(keys);
            }
            KeyFetchDecision::Fetch => self.start_fetch(),
            KeyFetchDecision::Wait => {}
            KeyFetchDecision::Unavailable => return Err(KeysUnavailable),
        }
        // At most one fetch per token: its result decides.
        let state = changes.wait_for(|state| !state.fetching).await.map_err(|_| KeysUnavailable)?;
        state.usable_keys(&self.times, Instant::now()).map(|(keys, _)| keys.clone()).ok_or(KeysUnavailable)
    }

    /// Decides whether to use the cached keys, to fetch keys or to wait for a running fetch. A fetch is recorded as started in
    /// the same step, so that only one fetch of the keys starts.
    fn decide(&self, wanted: Option<&str>) -> KeyFetchDecision {
        let mut decision = KeyFetchDecision::Unavailable;
        let now = Instant::now();
        self.state.send_if_modified(|state| {
            decision = state.decide(&self.times, now, wanted);
            if matches!(decision, KeyFetchDecision::Fetch | KeyFetchDecision::UseAndFetch(_)) {
                state.fetching = true;
                state.begun = Some(now);
            }
            false
        });
        decision
    }

    fn start_fetch(self: &Arc<Self>) {
        let guard = KeyFetchGuard(self.clone());
        tokio::spawn(async move {
            let fetched = tokio::time::timeout(REQUEST_TIMEOUT, guard.0.fetch()).await;
            match fetched.unwrap_or_else(|_| Err("request timed out".to_owned())) {
                Ok(keys) => {
                    tracing::debug!(uri = redact_url(&guard.0.uri.to_string()), keys = keys.len(), "keys fetched");
                    let keys = Some((Arc::new(keys), Instant::now()));
                    guard.0.state.send_modify(|state| state.keys = keys);
                }
                Err(reason) => {
                    tracing::warn!(uri = redact_url(&guard.0.uri.to_string()), reason, "failed to fetch keys");
                }
            }
        });
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let mut request = Request::new(HttpClientBody::default());
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let response = self.client.send(request, MAX_BYTES).await.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("the response status was {}", response.status()));
        }
        let body = response.body().as_bytes();
        if body.len() > MAX_BYTES {
            return Err("the JWK Set is too long".to_owned());
        }
        let keys = KeySet::from_json(body).map_err(|error| error.to_string())?;
        if keys.is_empty() { Err("there is no usable key in the JWK Set".to_owned()) } else { Ok(keys) }
    }
}

/// A guard that marks the fetch of the keys as finished when the guard is dropped: also if the HTTP client panics or the
/// runtime shuts down.
struct KeyFetchGuard(Arc<JwksCache>);

impl Drop for KeyFetchGuard {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.fetching = false);
    }
}

impl KeyFetchState {
    /// The cached keys, unless they are too old to be used.
    fn usable_keys(&self, times: &KeyCacheTimes, now: Instant) -> Option<&(Arc<KeySet>, Instant)> {
        self.keys.as_ref().filter(|(_, fetched)| now.duration_since(*fetched) < times.usable)
    }

    fn decide(&self, times: &KeyCacheTimes, now: Instant, wanted: Option<&str>) -> KeyFetchDecision {
        let may_fetch = !self.fetching && self.begun.is_none_or(|begun| now.duration_since(begun) >= times.pause);
        match self.usable_keys(times, now) {
            Some((keys, fetched)) if keys.has(wanted) => {
                if now.duration_since(*fetched) >= times.fresh && may_fetch {
                    KeyFetchDecision::UseAndFetch(keys.clone())
                } else {
                    KeyFetchDecision::Use(keys.clone())
                }
            }
            _ if self.fetching => KeyFetchDecision::Wait,
            _ if may_fetch => KeyFetchDecision::Fetch,
            Some((keys, _)) => KeyFetchDecision::Use(keys.clone()),
            None => KeyFetchDecision::Unavailable,
        }
    }
}
