//! Answers that a server lets its clients keep for a while (2026-07-28).
//!
//! An answer is kept under what was asked for, for as long as its `ttlMs` says, and no longer than nothing is heard of a
//! change. A private one is kept for one reader: a client, for as long as its requests are authorized alike. A public one is
//! for every client that shares the cache.
//!
//! Whoever asks takes a [`PendingFetch`] first. A change that is heard while the answer is on its way spoils it: the answer may be
//! older than the change, and is given to whoever asked and not kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_model::{Cache, CacheScope, Method};
use steadfast_proto::{Moment, mutant};

use super::bounded::LruMap;
use super::key::RequestKey;

/// How many answers are kept, and of how many bytes, unless told.
const ENTRIES: usize = 1_024;
const BYTES: usize = 16 << 20;

/// The answers that clients of a server keep, if it lets them. Cheap to clone; all clones are the same cache.
///
/// Every client has one of its own, with room for 1,024 answers of 16 MiB together. Clients of one server can share one:
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use steadfast::{prelude::*, Cache, CacheScope};
/// use steadfast::client::ResponseCache;
///
/// let server = Server::builder("steady", "1.0.0").cache(Cache::new(60_000, CacheScope::Public)).build();
/// let cache = ResponseCache::new();
/// let one = Client::connect(server.clone()).cache(cache.clone()).await?;
/// let two = Client::connect(server).cache(cache.clone()).await?;
/// # Ok::<_, steadfast::Error>(()) }).unwrap();
/// ```
///
/// They share what the server calls public; what it calls private each keeps for itself, and forgets when its requests are
/// authorized differently. A change that one of them is told of is one for all. So is the return of one whose connection was
/// lost: nobody told it of changes in the meantime, and it may have come to another server. That empties the cache, for all who
/// share it.
///
/// Only clients of the same server may share a cache: nothing in it says whose answers they are.
/// Those with a [runtime](crate::client::Connecting::with_runtime) of their own have to share that too, for its clock.
#[derive(Clone)]
#[must_use = "nothing is kept in a cache that no client has"]
pub struct ResponseCache {
    state: Arc<Mutex<State>>,
}

struct State {
    entries: LruMap<Key, Entry>,
    /// What is on its way, and not spoilt.
    fetches: BTreeMap<u64, Arc<RequestKey>>,
    next: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    asked: Arc<RequestKey>,
    /// Who may be given it; everyone if it is public.
    reader: Option<u64>,
}

struct Entry {
    text: Arc<str>,
    until: Moment,
    /// The fetch that it came with.
    fetch: u64,
}

impl ResponseCache {
    /// An empty cache.
    pub fn new() -> Self {
        let entries = LruMap::new(ENTRIES, BYTES);
        Self { state: Arc::new(Mutex::new(State { entries, fetches: BTreeMap::new(), next: 0 })) }
    }

    /// With room for so many answers; 1,024 unless told. A clone is the same cache, so this is for all who share it.
    pub fn with_entries(self, most: usize) -> Self {
        {
            let mut state = self.lock();
            let (_, bytes) = state.entries.bounds();
            state.entries.resize(most, bytes);
        }
        self
    }

    /// With room for so many bytes of answers; 16 MiB unless told. That, too, is for all who share it.
    pub fn with_bytes(self, most: usize) -> Self {
        {
            let mut state = self.lock();
            let (entries, _) = state.entries.bounds();
            state.entries.resize(entries, most);
        }
        self
    }

    /// How many answers are kept, among them such as have expired and were not asked for since.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// True if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything, also what is on its way.
    pub fn clear(&self) {
        self.spoil(|_| true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseCache {
    /// The answer that is kept for this reader, if it is fresh.
    pub(crate) fn find(&self, asked: &Arc<RequestKey>, reader: u64, now: Moment) -> Option<Arc<str>> {
        let mut state = self.lock();
        for reader in [Some(reader), None] {
            let key = Key { asked: Arc::clone(asked), reader };
            match state.entries.get(&key) {
                Some(entry) if now < entry.until || mutant!(KeepExpired) => return Some(Arc::clone(&entry.text)),
                Some(_) => state.entries.remove(&key),
                None => {}
            }
        }
        None
    }

    /// It is asked for now.
    pub(crate) fn fetch(&self, asked: Arc<RequestKey>, reader: u64, now: Moment) -> PendingFetch {
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.fetches.insert(number, Arc::clone(&asked));
        PendingFetch { cache: self.clone(), number, asked, reader, begun: now }
    }

    /// Forgets what may not be believed any more. What is on its way of it will not be kept. Returns how many answers went.
    pub(crate) fn spoil(&self, stale: impl Fn(&RequestKey) -> bool) -> usize {
        let mut state = self.lock();
        state.fetches.retain(|_, asked| !stale(asked));
        state.entries.retain(|key| !stale(&key.asked))
    }

    /// Forgets what was kept for a reader alone.
    pub(crate) fn forget(&self, reader: u64) {
        self.lock().entries.retain(|key| key.reader != Some(reader));
    }

    /// A list that was shared turns out to be private.
    pub(crate) fn unshare(&self, method: Method) {
        self.lock().entries.retain(|key| key.reader.is_some() || key.asked.method != method);
    }
}

/// An answer on its way.
pub(crate) struct PendingFetch {
    cache: ResponseCache,
    number: u64,
    asked: Arc<RequestKey>,
    reader: u64,
    begun: Moment,
}

impl PendingFetch {
    pub(crate) fn asked(&self) -> &RequestKey {
        &self.asked
    }

    /// For whom it was asked.
    pub(crate) fn reader(&self) -> u64 {
        self.reader
    }

    /// Keeps the answer, if nothing has changed since it was asked for. Its time counts from there: the server may have
    /// made it at any moment since, and whoever waits may have looked at it late.
    pub(crate) fn keep(&self, text: &str, said: Cache) {
        if said.ttl_ms == 0 {
            self.cache.lock().fetches.remove(&self.number);
            return;
        }
        let until = self.begun + Duration::from_millis(said.ttl_ms);
        // Drivers wait for the lock: what is long is copied without it.
        let entry = Entry { text: text.into(), until, fetch: self.number };
        let mut state = self.cache.lock();
        if state.fetches.remove(&self.number).is_none() {
            return;
        }
        let reader = (said.scope == CacheScope::Private).then_some(self.reader);
        let key = Key { asked: Arc::clone(&self.asked), reader };
        if state.entries.get(&key).is_some_and(|newer| newer.fetch > self.number) {
            return;
        }
        let bytes = text.len() + self.asked.bytes();
        state.entries.insert(key, entry, bytes);
    }
}

impl Drop for PendingFetch {
    fn drop(&mut self) {
        self.cache.lock().fetches.remove(&self.number);
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows no answer.
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

    const PUBLIC: Cache = Cache::new(1_000, CacheScope::Public);
    const PRIVATE: Cache = Cache::new(1_000, CacheScope::Private);

    fn read(uri: &str) -> Arc<RequestKey> {
        Arc::new(RequestKey::of::<ReadResource>(Revision::LATEST, &ReadResourceParams::new(uri)).unwrap())
    }

    fn at(milliseconds: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(milliseconds))
    }

    fn lookup(cache: &ResponseCache, uri: &str, reader: u64, now: u64) -> Option<Arc<str>> {
        cache.find(&read(uri), reader, at(now))
    }

    #[test]
    fn an_answer_is_fresh_until_its_time_is_over_and_not_at_that_moment() {
        let cache = ResponseCache::new();
        cache.fetch(read("a"), 1, at(500)).keep("x", PUBLIC);
        assert_eq!(lookup(&cache, "a", 1, 1_499).as_deref(), Some("x"));
        assert_eq!(lookup(&cache, "a", 1, 1_500), None);
        assert!(cache.is_empty());
    }

    #[test]
    fn what_is_private_is_for_its_reader_alone() {
        let cache = ResponseCache::new();
        cache.fetch(read("a"), 1, at(0)).keep("x", PRIVATE);
        cache.fetch(read("b"), 1, at(0)).keep("y", PUBLIC);
        assert_eq!(lookup(&cache, "a", 1, 0).as_deref(), Some("x"));
        assert_eq!(lookup(&cache, "a", 2, 0), None);
        assert_eq!(lookup(&cache, "b", 2, 0).as_deref(), Some("y"));
        cache.forget(1);
        assert_eq!((lookup(&cache, "a", 1, 0), cache.len()), (None, 1));
    }

    #[test]
    fn what_changed_on_the_way_is_not_kept_and_the_next_one_is() {
        let cache = ResponseCache::new();
        let (one, other) = (cache.fetch(read("a"), 1, at(0)), cache.fetch(read("b"), 1, at(0)));
        assert_eq!(cache.spoil(|asked| *asked == *read("a")), 0);
        let later = cache.fetch(read("a"), 1, at(0));
        one.keep("old", PUBLIC);
        other.keep("y", PUBLIC);
        assert_eq!((lookup(&cache, "a", 1, 0), lookup(&cache, "b", 1, 0).as_deref()), (None, Some("y")));
        later.keep("new", PUBLIC);
        assert_eq!(lookup(&cache, "a", 1, 0).as_deref(), Some("new"));
    }

    #[test]
    fn whoever_spoils_answers_knows_how_many_went_whatever_others_keep() {
        let cache = ResponseCache::new();
        for (uri, reader) in [("a", 1), ("a", 2), ("b", 1)] {
            cache.fetch(read(uri), reader, at(0)).keep("x", PRIVATE);
        }
        assert_eq!(cache.spoil(|asked| *asked == *read("a")), 2);
        assert_eq!(cache.spoil(|asked| *asked == *read("a")), 0);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn an_older_answer_does_not_take_the_place_of_a_newer_one() {
        let cache = ResponseCache::new();
        let (older, newer) = (cache.fetch(read("a"), 1, at(0)), cache.fetch(read("a"), 1, at(0)));
        newer.keep("new", PUBLIC);
        older.keep("old", PUBLIC);
        assert_eq!(lookup(&cache, "a", 1, 0).as_deref(), Some("new"));
    }

    #[test]
    fn fetches_that_nobody_waits_for_leave_nothing_behind() {
        let cache = ResponseCache::new();
        drop(cache.fetch(read("a"), 1, at(0)));
        cache.fetch(read("a"), 1, at(0)).keep("x", Cache::default());
        let waiting = cache.lock().fetches.len();
        assert_eq!((waiting, cache.len()), (0, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = ResponseCache::new().with_entries(2).with_bytes(100);
        for uri in ["a", "b", "c"] {
            cache.fetch(read(uri), 1, at(0)).keep("x", PUBLIC);
        }
        assert_eq!((cache.len(), lookup(&cache, "a", 1, 0)), (2, None));
        cache.fetch(read("d"), 1, at(0)).keep(&"x".repeat(100), PUBLIC);
        assert_eq!(lookup(&cache, "d", 1, 0), None);
    }
}
