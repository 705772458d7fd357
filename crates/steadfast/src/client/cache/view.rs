//! One client's view of a [`ResponseCache`]. Several clients may share one cache.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{CacheHints, CacheScope, Method};
use steadfast_proto::Moment;

use super::credentials::CacheCredentialTracker;
use super::key::{CacheInvalidation, ResponseCacheKey};
use super::responses::{PendingCacheFill, ResponseCache};

/// See the [module](self).
pub(crate) struct ResponseCacheView {
    cache: ResponseCache,
    scope: CacheCredentialTracker,
    /// The lists of which the server marked a page as private: then the client caches the whole list as private.
    private_lists: Mutex<BTreeSet<Method>>,
    closed: AtomicBool,
}

impl ResponseCacheView {
    pub(crate) fn new(cache: ResponseCache) -> Self {
        Self {
            cache,
            scope: CacheCredentialTracker::new(),
            private_lists: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Returns the cached response, if it is fresh. A closed client finds no cached responses; other clients that share
    /// the cache still find them.
    pub(crate) fn find(&self, request: ResponseCacheKey, now: Moment) -> Option<Arc<str>> {
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        self.cache.find(&Arc::new(request), self.scope.id(), now)
    }

    /// Registers a request that is sent now, and whose response may be cached.
    pub(crate) fn begin_fetch(&self, request: ResponseCacheKey, now: Moment) -> PendingCacheFill {
        self.cache.begin_fetch(Arc::new(request), self.scope.id(), now)
    }

    /// Stores a response in the cache, with the time to live and the cache scope that the server gave it.
    pub(crate) fn store(&self, fetch: &PendingCacheFill, text: &str, policy: CacheHints) {
        let policy = CacheHints::new(policy.ttl_ms, self.effective_scope(fetch.request(), policy.scope));
        let same_credentials = fetch.scope_id() == self.scope.id();
        // If the credentials have changed since the request was sent, it is not known to which a private response belongs.
        if same_credentials || policy.scope == CacheScope::Public {
            fetch.store(text, policy);
        }
    }

    /// Removes the cached responses that a change at the server has made stale.
    pub(crate) fn invalidate(&self, change: &CacheInvalidation) {
        self.cache.invalidate(|request| change.affects(request));
    }

    /// Removes all cached pages of a list, because they do not belong together any more. Returns whether the cache
    /// had pages of the list.
    pub(crate) fn remove_pages(&self, method: Method) -> bool {
        self.cache.invalidate(|request| request.method == method) > 0
    }

    /// Removes all responses.
    pub(crate) fn clear(&self) {
        self.cache.clear();
    }

    /// Called when a request is sent with these credentials. If the credentials have changed, the cached private
    /// responses of the old credentials are removed.
    pub(crate) fn set_credentials<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let Some(old_id) = self.scope.update(credentials) {
            self.cache.remove_private(old_id);
        }
    }

    /// Closes the cache for this client: from now on the client finds no cached response.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// All pages of a list have one cache scope. If the server sends public and private pages, the whole list is
    /// private.
    fn effective_scope(&self, request: &ResponseCacheKey, scope: CacheScope) -> CacheScope {
        let mut private = self.private_lists.lock().unwrap_or_else(PoisonError::into_inner);
        match (scope, request.has_cursor()) {
            (CacheScope::Public, true) if private.contains(&request.method) => CacheScope::Private,
            (CacheScope::Public, _) => {
                private.remove(&request.method);
                CacheScope::Public
            }
            // A scope of a newer revision is taken for the stricter one.
            (_, has_cursor) => {
                private.insert(request.method);
                if has_cursor {
                    self.cache.remove_public(request.method);
                }
                CacheScope::Private
            }
        }
    }
}

/// Removes the private responses of the dropped client from the cache.
impl Drop for ResponseCacheView {
    fn drop(&mut self) {
        self.cache.remove_private(self.scope.id());
    }
}
