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

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_model::{Cache, CacheScope, CallToolParams, Method};
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::{Moment, mutant};

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
    comes_back: bool,
    closed: AtomicBool,
    pub(super) logs: LogHearers,
}

impl Kept {
    /// `comes_back`: a connection that is lost is made again.
    pub(super) fn new(cache: Option<ResponseCache>, checks_output: bool, comes_back: bool) -> Arc<Self> {
        Arc::new(Self {
            cache,
            reader: Reader::new(),
            private_lists: Mutex::default(),
            tools: KnownTools::new(),
            checks_output,
            comes_back,
            closed: AtomicBool::new(false),
            logs: LogHearers::default(),
        })
    }

    /// What is known of a tool: what the server said of it, if it was listed and nothing has changed since.
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
        if let Some(cache) = self.cache.as_ref().filter(|_| !mutant!(KeepStale)) {
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
        cache.spoil(|asked| asked.method == method) > 0
    }

    /// Whether these are the parameters of a call of a tool that may be called twice, as the server said when it was listed.
    pub(super) fn may_repeat(&self, params: &dyn Any) -> bool {
        let call: Option<&CallToolParams> = params.downcast_ref();
        call.and_then(|call| self.tool(&call.name)).is_some_and(|tool| tool.says_it_may_be_repeated())
    }

    /// The connection has ended.
    pub(super) fn note_lost(&self) {
        if !self.comes_back {
            self.logs.close();
        }
    }

    /// The client was closed: there will be nothing more to hear, and nothing that was kept is found.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.logs.close();
    }

    /// The answer that is kept, if it is fresh. A client that was closed has none: it answers nothing any more, and others
    /// who share the cache still do.
    fn find(&self, asked: Asked, now: Moment) -> Option<Arc<str>> {
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        self.cache.as_ref()?.find(&Arc::new(asked), self.reader.number(), now)
    }

    /// It is asked for now, and may be kept.
    fn fetch(&self, asked: Asked, now: Moment) -> Option<Fetch> {
        Some(self.cache.as_ref()?.fetch(Arc::new(asked), self.reader.number(), now))
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
