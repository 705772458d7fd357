//! The credentials that private responses belong to: a client finds a private response in its cache only while its
//! requests carry the same credentials as when the response was cached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// A process-wide unique id for one client with its current credentials. The id changes when the credentials do.
pub(crate) struct CacheCredentialTracker(Mutex<CacheCredentialTrackerState>);

struct CacheCredentialTrackerState {
    id: u64,
    /// The fingerprint of the credentials of the client's last request.
    credentials: CacheCredentialFingerprint,
}

#[derive(PartialEq)]
enum CacheCredentialFingerprint {
    /// The client has sent no request yet, so its credentials are not known.
    Unknown,
    Absent,
    /// A digest of the credentials, so that the cache holds no secrets.
    Digest([u8; 32]),
}

impl CacheCredentialTracker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(CacheCredentialTrackerState {
            id: next_id(),
            credentials: CacheCredentialFingerprint::Unknown,
        }))
    }

    pub(crate) fn id(&self) -> u64 {
        self.lock().id
    }

    /// Called when the client sends a request with these credentials. If the credentials differ from those of the
    /// request before, the id changes, and the old id is returned.
    pub(crate) fn update<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
        let mut parts = credentials.peekable();
        let credentials = if parts.peek().is_none() {
            // Most requests have no credentials, and need no digest.
            CacheCredentialFingerprint::Absent
        } else {
            let mut digest = Sha256::new();
            for part in parts {
                digest.update(part.len().to_le_bytes());
                digest.update(part);
            }
            CacheCredentialFingerprint::Digest(digest.finalize().into())
        };
        let mut state = self.lock();
        let changed = state.credentials != CacheCredentialFingerprint::Unknown && state.credentials != credentials;
        state.credentials = credentials;
        changed.then(|| std::mem::replace(&mut state.id, next_id()))
    }

    fn lock(&self) -> MutexGuard<'_, CacheCredentialTrackerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(scope: &CacheCredentialTracker, credentials: &[&str]) -> Option<u64> {
        scope.update(credentials.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn other_credentials_are_another_reader() {
        let scope = CacheCredentialTracker::new();
        let first = scope.id();
        assert_eq!(update(&scope, &["Bearer a"]), None);
        assert_eq!(update(&scope, &["Bearer a"]), None);
        assert_eq!(scope.id(), first);
        assert_eq!(update(&scope, &["Bearer b"]), Some(first));
        assert_ne!(scope.id(), first);
        assert!(update(&scope, &[]).is_some() && update(&scope, &["Bearer b"]).is_some());
    }

    #[test]
    fn no_two_clients_have_the_same_scope_id() {
        assert_ne!(CacheCredentialTracker::new().id(), CacheCredentialTracker::new().id());
    }
}
