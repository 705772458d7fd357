//! The answers that one client keeps, and finds again: its side of a [`ResponseCache`], which others may share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{Cache, CacheScope, Method};
use steadfast_proto::Moment;

use super::credentials::CredentialScope;
use super::key::{Invalidation, RequestKey};
use super::responses::{PendingFetch, ResponseCache};

/// See the [module](self).
pub(crate) struct CachedAnswers {
    cache: ResponseCache,
    reader: CredentialScope,
    /// Lists of which a page was private: then all of it is.
    private_lists: Mutex<BTreeSet<Method>>,
    closed: AtomicBool,
}

impl CachedAnswers {
    pub(crate) fn new(cache: ResponseCache) -> Self {
        Self { cache, reader: CredentialScope::new(), private_lists: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// The answer that is kept, if it is fresh. A client that was closed has none: it answers nothing any more, and others
    /// who share the cache still do.
    pub(crate) fn find(&self, asked: RequestKey, now: Moment) -> Option<Arc<str>> {
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        self.cache.find(&Arc::new(asked), self.reader.number(), now)
    }

    /// It is asked for now, and may be kept.
    pub(crate) fn fetch(&self, asked: RequestKey, now: Moment) -> PendingFetch {
        self.cache.fetch(Arc::new(asked), self.reader.number(), now)
    }

    /// Keeps an answer for as long as the server said, and for whom.
    pub(crate) fn keep(&self, fetch: &PendingFetch, text: &str, said: Cache) {
        let said = Cache::new(said.ttl_ms, self.scope_of(fetch.asked(), said.scope));
        let alike = fetch.reader() == self.reader.number();
        // What was asked for under one authorization and answered under another may be anybody's.
        if alike || said.scope == CacheScope::Public {
            fetch.keep(text, said);
        }
    }

    /// Something has changed.
    pub(crate) fn spoil(&self, stale: &Invalidation) {
        self.cache.spoil(|asked| stale.concerns(asked));
    }

    /// The pages of a list do not belong together any more. Returns whether there were any.
    pub(crate) fn forget_pages(&self, method: Method) -> bool {
        self.cache.spoil(|asked| asked.method == method) > 0
    }

    /// Nothing is believed any more.
    pub(crate) fn clear(&self) {
        self.cache.clear();
    }

    /// A request goes out with these credentials: what is private is kept for those alone.
    pub(crate) fn identify<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let Some(before) = self.reader.identify(credentials) {
            self.cache.forget(before);
        }
    }

    /// Nothing is found any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// All pages of a list have one scope. A server that says both is taken at its more careful word.
    fn scope_of(&self, asked: &RequestKey, said: CacheScope) -> CacheScope {
        let mut private = self.private_lists.lock().unwrap_or_else(PoisonError::into_inner);
        match (said, asked.goes_on()) {
            (CacheScope::Public, true) if private.contains(&asked.method) => CacheScope::Private,
            (CacheScope::Public, _) => {
                private.remove(&asked.method);
                CacheScope::Public
            }
            (CacheScope::Private, goes_on) => {
                private.insert(asked.method);
                if goes_on {
                    self.cache.unshare(asked.method);
                }
                CacheScope::Private
            }
        }
    }
}

/// What was kept for this client alone goes with it.
impl Drop for CachedAnswers {
    fn drop(&mut self) {
        self.cache.forget(self.reader.number());
    }
}
