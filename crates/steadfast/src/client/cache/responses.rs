//! Responses that a server allows its clients to cache (2026-07-28).
//!
//! The cache key of a response is its request. A cached response is fresh for the `ttlMs` in its result, or until a
//! notification of the server says that it has changed. A private response belongs to one scope: a client with its
//! current credentials. A public response is for every client that shares the cache.
//!
//! Every request is registered as a [`PendingCacheFill`] before it is sent. If the server notifies a change while a
//! request is in flight, the response goes to the caller, but is not stored in the cache: it may be older than the
//! change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_model::{CacheHints, CacheScope, Method};
use steadfast_proto::{Moment, mutant};

use super::key::ResponseCacheKey;
use super::lru::LruMap;

/// The default limits.
const DEFAULT_ENTRIES: usize = 1_024;
const DEFAULT_BYTES: usize = 16 << 20;

/// A cache of the responses that a server allows its clients to cache. A cache is cheap to clone; all clones are the
/// same cache.
///
/// By default every client has a cache of its own, with at most 1,024 responses and 16 MiB. Clients of one server can
/// share a cache:
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use steadfast::{prelude::*, CacheHints, CacheScope};
/// use steadfast::client::ResponseCache;
///
/// let server = Server::builder("steady", "1.0.0").cache(CacheHints::new(60_000, CacheScope::Public)).build();
/// let cache = ResponseCache::new();
/// let one = Client::connect(server.clone()).cache(cache.clone()).await?;
/// let two = Client::connect(server).cache(cache.clone()).await?;
/// # Ok::<_, steadfast::Error>(()) }).unwrap();
/// ```
///
/// Clients that share a cache share its public responses. Private responses in the cache are found only by the client
/// that stored them, and are removed when its credentials change. If the server notifies one client of a change, the
/// stale responses are removed for all clients. If one client reconnects, the cache is cleared for all clients: changes
/// during the disconnect were not notified, and the client may have reached another server.
///
/// Only clients of the same server may share a cache: its keys do not name the server. Clients with a
/// [runtime](crate::client::ConnectBuilder::runtime) of their own have to share that runtime too, for its clock.
#[derive(Clone)]
#[must_use = "a cache does nothing until a client uses it"]
pub struct ResponseCache {
    state: Arc<Mutex<ResponseCacheState>>,
}

struct ResponseCacheState {
    entries: LruMap<ScopedCacheKey, CachedResponse>,
    /// The requests in flight whose responses may be stored in the cache.
    fetches: BTreeMap<u64, Arc<ResponseCacheKey>>,
    last_fetch: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ScopedCacheKey {
    request: Arc<ResponseCacheKey>,
    /// The credential scope of a private response; `None` for a public one.
    scope_id: Option<u64>,
}

struct CachedResponse {
    text: Arc<str>,
    expires_at: Moment,
    /// The sequence number of the request whose response is stored here.
    fetch: u64,
}

impl ResponseCache {
    /// An empty cache.
    pub fn new() -> Self {
        let entries = LruMap::new(DEFAULT_ENTRIES, DEFAULT_BYTES);
        Self { state: Arc::new(Mutex::new(ResponseCacheState { entries, fetches: BTreeMap::new(), last_fetch: 0 })) }
    }

    /// The maximum number of stored responses; 1,024 by default. The limit applies to all clients that share the cache:
    /// a clone is the same cache.
    pub fn max_entries(self, max_entries: usize) -> Self {
        {
            let mut state = self.lock();
            let (_, max_bytes) = state.entries.limits();
            state.entries.set_limits(max_entries, max_bytes);
        }
        self
    }

    /// The maximum size of all stored responses and their keys, in bytes; 16 MiB by default. The byte limit applies to
    /// all clients that share the cache.
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        {
            let mut state = self.lock();
            let (max_entries, _) = state.entries.limits();
            state.entries.set_limits(max_entries, max_bytes);
        }
        self
    }

    /// The number of responses in the cache, including expired responses that were not requested since they expired.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether the response cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all responses from the cache, and does not store the responses to requests that are in flight.
    pub fn clear(&self) {
        self.invalidate(|_| true);
    }

    fn lock(&self) -> MutexGuard<'_, ResponseCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseCache {
    /// Returns the cached private response of this credential scope, or the cached public response, if it is fresh.
    pub(crate) fn find(&self, request: &Arc<ResponseCacheKey>, scope_id: u64, now: Moment) -> Option<Arc<str>> {
        let mut state = self.lock();
        for scope_id in [Some(scope_id), None] {
            let key = ScopedCacheKey { request: Arc::clone(request), scope_id };
            match state.entries.get(&key) {
                Some(entry) if now < entry.expires_at || mutant!(KeepExpired) => return Some(Arc::clone(&entry.text)),
                Some(_) => state.entries.remove(&key),
                None => {}
            }
        }
        None
    }

    /// Registers a request that the client sends now, whose response may be stored in the cache.
    pub(crate) fn begin_fetch(&self, request: Arc<ResponseCacheKey>, scope_id: u64, now: Moment) -> PendingCacheFill {
        let mut state = self.lock();
        state.last_fetch += 1;
        let number = state.last_fetch;
        state.fetches.insert(number, Arc::clone(&request));
        PendingCacheFill { cache: self.clone(), number, request, scope_id, sent_at: now }
    }

    /// Removes the responses to stale requests from the cache, and does not store the responses to stale requests in
    /// flight. Returns the number of removed responses.
    pub(crate) fn invalidate(&self, is_stale: impl Fn(&ResponseCacheKey) -> bool) -> usize {
        let mut state = self.lock();
        state.fetches.retain(|_, request| !is_stale(request));
        state.entries.retain(|key| !is_stale(&key.request))
    }

    /// Removes the private responses of a credential scope from the cache.
    pub(crate) fn remove_private(&self, scope_id: u64) {
        self.lock().entries.retain(|key| key.scope_id != Some(scope_id));
    }

    /// Removes the cached public pages of a list, because a later page turned out to be private.
    pub(crate) fn remove_public(&self, method: Method) {
        self.lock().entries.retain(|key| key.scope_id.is_some() || key.request.method != method);
    }
}

/// A request in flight whose response may be stored in the cache.
pub(crate) struct PendingCacheFill {
    cache: ResponseCache,
    number: u64,
    request: Arc<ResponseCacheKey>,
    scope_id: u64,
    sent_at: Moment,
}

impl PendingCacheFill {
    pub(crate) fn request(&self) -> &ResponseCacheKey {
        &self.request
    }

    /// The credential scope in which the request was sent.
    pub(crate) fn scope_id(&self) -> u64 {
        self.scope_id
    }

    /// Stores the response in the cache, unless it was invalidated in flight. The time to live of a response counts
    /// from when its request was sent: the server may have built the response at any time since, and the caller may
    /// have polled the call late.
    pub(crate) fn store(&self, text: &str, policy: CacheHints) {
        if policy.ttl_ms == 0 {
            self.cache.lock().fetches.remove(&self.number);
            return;
        }
        let expires_at = self.sent_at + Duration::from_millis(policy.ttl_ms);
        // The text is copied before the lock is taken: drivers wait for it.
        let entry = CachedResponse { text: text.into(), expires_at, fetch: self.number };
        let mut state = self.cache.lock();
        if state.fetches.remove(&self.number).is_none() {
            return;
        }
        let scope_id = (policy.scope == CacheScope::Private).then_some(self.scope_id);
        let key = ScopedCacheKey { request: Arc::clone(&self.request), scope_id };
        if state.entries.get(&key).is_some_and(|stored| stored.fetch > self.number) {
            return;
        }
        let bytes = text.len() + self.request.bytes();
        state.entries.insert(key, entry, bytes);
    }
}

impl Drop for PendingCacheFill {
    fn drop(&mut self) {
        self.cache.lock().fetches.remove(&self.number);
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self::new()
    }
}

/// The debug output shows no cached response, because responses may be private.
impl std::fmt::Debug for ResponseCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ResponseCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::request::ReadResource;
    use steadfast_model::{ReadResourceParams, Revision};

    use super::*;

    const PUBLIC: CacheHints = CacheHints::new(1_000, CacheScope::Public);
    const PRIVATE: CacheHints = CacheHints::new(1_000, CacheScope::Private);

    fn read(uri: &str) -> Arc<ResponseCacheKey> {
        Arc::new(ResponseCacheKey::of::<ReadResource>(Revision::LATEST, &ReadResourceParams::new(uri)).unwrap())
    }

    fn at(milliseconds: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(milliseconds))
    }

    fn find(cache: &ResponseCache, uri: &str, scope_id: u64, now: u64) -> Option<Arc<str>> {
        cache.find(&read(uri), scope_id, at(now))
    }

    #[test]
    fn a_response_is_fresh_until_it_expires_and_not_at_that_moment() {
        let cache = ResponseCache::new();
        cache.begin_fetch(read("a"), 1, at(500)).store("x", PUBLIC);
        assert_eq!(find(&cache, "a", 1, 1_499).as_deref(), Some("x"));
        assert_eq!(find(&cache, "a", 1, 1_500), None);
        assert!(cache.is_empty());
    }

    #[test]
    fn what_is_private_is_for_its_reader_alone() {
        let cache = ResponseCache::new();
        cache.begin_fetch(read("a"), 1, at(0)).store("x", PRIVATE);
        cache.begin_fetch(read("b"), 1, at(0)).store("y", PUBLIC);
        assert_eq!(find(&cache, "a", 1, 0).as_deref(), Some("x"));
        assert_eq!(find(&cache, "a", 2, 0), None);
        assert_eq!(find(&cache, "b", 2, 0).as_deref(), Some("y"));
        cache.remove_private(1);
        assert_eq!((find(&cache, "a", 1, 0), cache.len()), (None, 1));
    }

    #[test]
    fn a_response_that_is_invalidated_in_flight_is_not_stored_and_the_next_one_is() {
        let cache = ResponseCache::new();
        let (one, other) = (cache.begin_fetch(read("a"), 1, at(0)), cache.begin_fetch(read("b"), 1, at(0)));
        assert_eq!(cache.invalidate(|request| *request == *read("a")), 0);
        let later = cache.begin_fetch(read("a"), 1, at(0));
        one.store("old", PUBLIC);
        other.store("y", PUBLIC);
        assert_eq!((find(&cache, "a", 1, 0), find(&cache, "b", 1, 0).as_deref()), (None, Some("y")));
        later.store("new", PUBLIC);
        assert_eq!(find(&cache, "a", 1, 0).as_deref(), Some("new"));
    }

    #[test]
    fn invalidating_returns_the_number_of_removed_responses() {
        let cache = ResponseCache::new();
        for (uri, scope_id) in [("a", 1), ("a", 2), ("b", 1)] {
            cache.begin_fetch(read(uri), scope_id, at(0)).store("x", PRIVATE);
        }
        assert_eq!(cache.invalidate(|request| *request == *read("a")), 2);
        assert_eq!(cache.invalidate(|request| *request == *read("a")), 0);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn an_older_response_does_not_replace_a_newer_one() {
        let cache = ResponseCache::new();
        let (older, newer) = (cache.begin_fetch(read("a"), 1, at(0)), cache.begin_fetch(read("a"), 1, at(0)));
        newer.store("new", PUBLIC);
        older.store("old", PUBLIC);
        assert_eq!(find(&cache, "a", 1, 0).as_deref(), Some("new"));
    }

    #[test]
    fn a_fetch_that_is_dropped_or_not_cacheable_is_unregistered() {
        let cache = ResponseCache::new();
        drop(cache.begin_fetch(read("a"), 1, at(0)));
        cache.begin_fetch(read("a"), 1, at(0)).store("x", CacheHints::default());
        let fetches = cache.lock().fetches.len();
        assert_eq!((fetches, cache.len()), (0, 0));
    }

    #[test]
    fn entries_and_bytes_are_limited() {
        let cache = ResponseCache::new().max_entries(2).max_bytes(100);
        for uri in ["a", "b", "c"] {
            cache.begin_fetch(read(uri), 1, at(0)).store("x", PUBLIC);
        }
        assert_eq!((cache.len(), find(&cache, "a", 1, 0)), (2, None));
        cache.begin_fetch(read("d"), 1, at(0)).store(&"x".repeat(100), PUBLIC);
        assert_eq!(find(&cache, "d", 1, 0), None);
    }
}
