//! Keys that are fetched from the authorization server, and again when they change.
//!
//! What happens when a token asks for a key:
//!
//! ```text
//! key known, set fresh ........ used
//! key known, set old .......... used, and fetched anew behind it
//! key unknown ................. fetched, if the last fetch is long enough ago; all who ask meanwhile wait for that one
//! fetching fails .............. the old set goes on being used, until it is too old
//! ```
//!
//! A fetch is a task of its own: a client that hangs up does not end it, so nobody can keep the keys from arriving.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, Uri};
use tokio::sync::watch;
use tokio::time::Instant;

use super::keys::{KeySet, KeySource, Keys, KeysUnavailable};
use crate::http_client::endpoint;
use crate::resource_server::{HttpClient, InsecureEndpoint, Payload};
use crate::shown::shown;

/// The longest document that is read.
const LONGEST: usize = 256 * 1024;
/// The longest that one fetch may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Public keys at a URL (`jwks_uri`), fetched when they are needed and kept.
#[derive(Clone)]
pub struct FetchedKeys(Arc<Shared>);

#[derive(Clone)]
struct Shared {
    client: Arc<dyn HttpClient>,
    uri: Uri,
    times: Times,
    state: watch::Sender<State>,
}

#[derive(Clone, Debug)]
struct Times {
    /// How long a set is as good as new.
    fresh: Duration,
    /// How long a set is used when there is no newer one to be had.
    usable: Duration,
    /// How long there is between two fetches.
    pause: Duration,
}

#[derive(Clone, Debug, Default)]
struct State {
    keys: Option<(Arc<KeySet>, Instant)>,
    /// When the last fetch began.
    begun: Option<Instant>,
    fetching: bool,
}

#[derive(Debug)]
enum Decision {
    Use(Arc<KeySet>),
    UseAndFetch(Arc<KeySet>),
    Fetch,
    Wait,
    Unavailable,
}

impl FetchedKeys {
    /// The keys at this URL.
    pub fn new(client: impl HttpClient, url: &str) -> Result<Self, InsecureEndpoint> {
        let times = Times {
            fresh: Duration::from_secs(60 * 60),
            usable: Duration::from_secs(24 * 60 * 60),
            pause: Duration::from_secs(30),
        };
        let state = watch::Sender::new(State::default());
        Ok(Self(Arc::new(Shared { client: Arc::new(client), uri: endpoint(url)?, times, state })))
    }

    /// How long keys are used before they are fetched again. An hour without it.
    pub fn fresh_for(mut self, time: Duration) -> Self {
        self.times().fresh = time;
        self
    }

    /// How long keys are used when they cannot be fetched again: a revoked key may live that long. A day without it.
    pub fn usable_for(mut self, time: Duration) -> Self {
        self.times().usable = time;
        self
    }

    /// How long there is at least between two fetches, whatever keys tokens ask for. 30 seconds without it.
    pub fn pause(mut self, time: Duration) -> Self {
        self.times().pause = time;
        self
    }

    fn times(&mut self) -> &mut Times {
        &mut Arc::make_mut(&mut self.0).times
    }
}

impl KeySource for FetchedKeys {
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> Keys<'a> {
        Box::pin(self.0.find(wanted))
    }
}

impl fmt::Debug for FetchedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FetchedKeys")
            .field("uri", &shown(&self.0.uri.to_string()))
            .field("times", &self.0.times)
            .finish_non_exhaustive()
    }
}

impl Shared {
    async fn find(self: &Arc<Self>, wanted: Option<&str>) -> Result<Arc<KeySet>, KeysUnavailable> {
        let mut changes = self.state.subscribe();
        match self.decide(wanted) {
            Decision::Use(keys) => return Ok(keys),
            Decision::UseAndFetch(keys) => {
                self.begin();
                return Ok(keys);
            }
            Decision::Fetch => self.begin(),
            Decision::Wait => {}
            Decision::Unavailable => return Err(KeysUnavailable),
        }
        // One fetch is all that a token is worth: what it brought is the answer.
        let state = changes.wait_for(|state| !state.fetching).await.map_err(|_| KeysUnavailable)?;
        state.kept(&self.times, Instant::now()).map(|(keys, _)| keys.clone()).ok_or(KeysUnavailable)
    }

    /// Decides, and notes a fetch that is about to begin in the same step, so that two do not.
    fn decide(&self, wanted: Option<&str>) -> Decision {
        let mut decision = Decision::Unavailable;
        let now = Instant::now();
        self.state.send_if_modified(|state| {
            decision = state.decide(&self.times, now, wanted);
            if matches!(decision, Decision::Fetch | Decision::UseAndFetch(_)) {
                state.fetching = true;
                state.begun = Some(now);
            }
            false
        });
        decision
    }

    fn begin(self: &Arc<Self>) {
        let ending = Ending(self.clone());
        tokio::spawn(async move {
            let fetched = tokio::time::timeout(PATIENCE, ending.0.fetch()).await;
            match fetched.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(keys) => {
                    tracing::debug!(uri = shown(&ending.0.uri.to_string()), keys = keys.len(), "keys fetched");
                    let keys = Some((Arc::new(keys), Instant::now()));
                    ending.0.state.send_modify(|state| state.keys = keys);
                }
                Err(reason) => tracing::warn!(uri = shown(&ending.0.uri.to_string()), reason, "keys cannot be fetched"),
            }
        });
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let mut request = Request::new(Payload::default());
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let response = self.client.send(request, LONGEST).await.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer was {}", response.status()));
        }
        let body = response.body().as_bytes();
        if body.len() > LONGEST {
            return Err("the document is too long".to_owned());
        }
        let keys = KeySet::from_json(body).map_err(|error| error.to_string())?;
        if keys.is_empty() { Err("there is no usable key in the document".to_owned()) } else { Ok(keys) }
    }
}

/// However a fetch ends, by itself, with a panic of the client or with the runtime, nobody waits for it afterwards.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.fetching = false);
    }
}

impl State {
    /// The keys, unless they are too old to be used.
    fn kept(&self, times: &Times, now: Instant) -> Option<&(Arc<KeySet>, Instant)> {
        self.keys.as_ref().filter(|(_, fetched)| now.duration_since(*fetched) < times.usable)
    }

    fn decide(&self, times: &Times, now: Instant, wanted: Option<&str>) -> Decision {
        let may_fetch = !self.fetching && self.begun.is_none_or(|begun| now.duration_since(begun) >= times.pause);
        match self.kept(times, now) {
            Some((keys, fetched)) if keys.has(wanted) => {
                if now.duration_since(*fetched) >= times.fresh && may_fetch {
                    Decision::UseAndFetch(keys.clone())
                } else {
                    Decision::Use(keys.clone())
                }
            }
            _ if self.fetching => Decision::Wait,
            _ if may_fetch => Decision::Fetch,
            Some((keys, _)) => Decision::Use(keys.clone()),
            None => Decision::Unavailable,
        }
    }
}
