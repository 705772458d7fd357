//! What a client keeps of what a server said: answers, the tools that were listed, who listens to its log.
//!
//! All of it is bounded, and none of it outlives what the server says to the contrary. A change is taken note of where it
//! arrives, before anybody who listens has looked ([`Kept::overhear`]), so nobody is given what the server has called stale.
//! When the connection is lost and made again ([`Kept::begin_anew`]) nothing is believed any more, whatever time it had left:
//! there was nobody to tell of changes in between, and it may be another server.

mod asked;
mod bounded;
mod cache;
mod keeping;
mod output;
mod reader;
mod tools;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{Cache, CacheScope, Method};
use steadfast_proto::Moment;
use steadfast_proto::envelope::OwnedParams;

pub use cache::ResponseCache;
pub(super) use keeping::Keeping;
pub(crate) use tools::KnownTool;

use super::logs::LogHearers;
use asked::{Asked, Stale};
use cache::Fetch;
use reader::Reader;
use tools::KnownTools;

/// What is kept for one client.
pub(crate) struct Kept {
    cache: Option<ResponseCache>,
    reader: Reader,
    /// Lists of which a page was private: then all of it is.
    private_lists: Mutex<BTreeSet<Method>>,
    tools: KnownTools,
    checks_output: bool,
    pub(super) logs: LogHearers,
}

impl Kept {
    pub(super) fn new(cache: Option<ResponseCache>, checks_output: bool) -> Arc<Self> {
        Arc::new(Self {
            cache,
            reader: Reader::new(),
            private_lists: Mutex::default(),
            tools: KnownTools::new(),
            checks_output,
            logs: LogHearers::default(),
        })
    }

    /// What is known of a tool: what the server said of it, if it was listed and nothing has changed since.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP mirrors arguments"))]
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.get(name)
    }

    /// The server says something. Called where it arrives.
    pub(super) fn overhear(&self, method: Method, params: &OwnedParams) {
        if method == Method::LoggingMessage {
            return self.logs.tell(params);
        }
        let Some(stale) = Stale::read(method, params) else { return };
        if stale.concerns_tools() {
            self.tools.forget();
        }
        if let Some(cache) = &self.cache {
            cache.spoil(|asked| stale.concerns(asked));
        }
    }

    /// The connection was lost and is made again, perhaps to another server.
    pub(super) fn begin_anew(&self) {
        self.tools.forget();
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }

    /// A request goes out with these credentials: what is private is kept for those alone.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has credentials"))]
    pub(crate) fn identify<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) {
        if let (Some(before), Some(cache)) = (self.reader.identify(credentials), &self.cache) {
            cache.forget(before);
        }
    }

    /// A cursor that the server gave out is none any more: the pages that are kept do not belong together. Returns whether
    /// there were any.
    pub(super) fn forget_pages(&self, method: Method) -> bool {
        let Some(cache) = &self.cache else { return false };
        let before = cache.len();
        cache.spoil(|asked| asked.method == method);
        cache.len() < before
    }

    /// There will be nothing more to hear.
    pub(super) fn close(&self) {
        self.logs.close();
    }

    /// The answer that is kept, or what it takes to keep the one that is asked for now.
    fn look_for(&self, asked: Asked, fresh: bool, now: Moment) -> Option<Result<Arc<str>, Fetch>> {
        let (cache, asked, reader) = (self.cache.as_ref()?, Arc::new(asked), self.reader.number());
        let found = if fresh { None } else { cache.find(&asked, reader, now) };
        Some(found.ok_or_else(|| cache.fetch(asked, reader, now)))
    }

    /// Keeps an answer for as long as the server said, and for whom.
    fn keep(&self, fetch: &Fetch, text: &str, said: Cache) {
        let said = Cache::new(said.ttl_ms, self.scope_of(fetch.asked(), said.scope));
        let alike = fetch.reader() == self.reader.number();
        // What was asked for under one authorization and answered under another may be anybody's.
        if alike || said.scope == CacheScope::Public {
            fetch.keep(text, said);
        }
    }

    /// All pages of a list have one scope. A server that says both is taken at its more careful word.
    fn scope_of(&self, asked: &Asked, said: CacheScope) -> CacheScope {
        let mut private = self.private_lists.lock().unwrap_or_else(PoisonError::into_inner);
        match (said, asked.goes_on()) {
            (CacheScope::Public, true) if private.contains(&asked.method) => CacheScope::Private,
            (CacheScope::Public, _) => {
                private.remove(&asked.method);
                CacheScope::Public
            }
            (CacheScope::Private, goes_on) => {
                private.insert(asked.method);
                if let Some(cache) = self.cache.as_ref().filter(|_| goes_on) {
                    cache.unshare(asked.method);
                }
                CacheScope::Private
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.forget(self.reader.number());
        }
    }
}
