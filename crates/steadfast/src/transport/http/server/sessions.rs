//! The open sessions of an HTTP service, by id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "legacy-sse")]
use super::legacy_sse::{self, ServerLegacySseSession};
use super::session::{ServerHttpSession, ServerHttpSessionDriver};

/// A session of Streamable HTTP or of HTTP+SSE.
#[derive(Clone)]
pub(crate) enum AnyHttpSession {
    /// Of Streamable HTTP.
    Streamable(Arc<ServerHttpSession>),
    /// Of HTTP+SSE.
    #[cfg(feature = "legacy-sse")]
    Sse(Arc<ServerLegacySseSession>),
}

impl AnyHttpSession {
    fn id(&self) -> &str {
        match self {
            Self::Streamable(session) => session.id(),
            #[cfg(feature = "legacy-sse")]
            Self::Sse(session) => session.id(),
        }
    }

    fn shut_down(&self) {
        match self {
            Self::Streamable(session) => session.shut_down(),
            #[cfg(feature = "legacy-sse")]
            Self::Sse(session) => session.shut_down(),
        }
    }

    fn end(&self) {
        match self {
            Self::Streamable(session) => session.end(),
            #[cfg(feature = "legacy-sse")]
            Self::Sse(session) => session.end(),
        }
    }
}

/// The open sessions. The lock of a session is never taken while the lock of the session table is held. The sessions
/// are sorted by id, so that a seed of the simulator replays the order in which they end.
pub(crate) struct HttpSessionTable {
    limit: usize,
    table: Mutex<BTreeMap<Box<str>, AnyHttpSession>>,
}

/// The HTTP server cannot open another session: as many are open as the limit allows.
#[derive(Debug)]
pub(crate) struct SessionLimitReached;

impl HttpSessionTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, table: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<ServerHttpSession>> {
        match self.lock().get(id) {
            Some(AnyHttpSession::Streamable(session)) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    /// Finds the HTTP+SSE session with that id. Ids of Streamable HTTP sessions are not found by this method.
    #[cfg(feature = "legacy-sse")]
    pub(crate) fn find_sse(&self, id: &str) -> Option<Arc<ServerLegacySseSession>> {
        match self.lock().get(id) {
            Some(AnyHttpSession::Sse(session)) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    /// Inserts a session and spawns its driver.
    pub(crate) fn insert(self: &Arc<Self>, slot: AnyHttpSession) -> Result<(), SessionLimitReached> {
        let mut table = self.lock();
        if table.len() >= self.limit {
            return Err(SessionLimitReached);
        }
        table.insert(slot.id().into(), slot.clone());
        drop(table);
        match slot {
            AnyHttpSession::Streamable(session) => ServerHttpSessionDriver::spawn(session, Arc::downgrade(self)),
            #[cfg(feature = "legacy-sse")]
            AnyHttpSession::Sse(session) => legacy_sse::ServerLegacySseDriver::spawn(session, Arc::downgrade(self)),
        }
        Ok(())
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Starts a graceful shutdown of every session: each session ends at its drain deadline at the latest.
    pub(crate) fn shut_down(&self) {
        for session in self.all() {
            session.shut_down();
        }
    }

    fn all(&self) -> Vec<AnyHttpSession> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, AnyHttpSession>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HttpSessionTable {
    /// Ends all sessions: the HTTP service is gone, so no client can reach a session any more.
    fn drop(&mut self) {
        for session in self.all() {
            session.end();
        }
    }
}
