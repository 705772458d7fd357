//! For whom a client keeps what is private: for those whose requests are authorized as its own are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// Who reads. Its number changes when requests are authorized differently, and no two clients have the same.
pub(crate) struct CredentialScope(Mutex<CurrentCredentials>);

struct CurrentCredentials {
    number: u64,
    /// Those of the last request.
    credentials: Credentials,
}

#[derive(PartialEq)]
enum Credentials {
    /// None was made yet.
    Unknown,
    Absent,
    /// What stands for them. Not the credentials: they are nobody's business.
    Digest([u8; 32]),
}

impl CredentialScope {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(CurrentCredentials { number: next(), credentials: Credentials::Unknown }))
    }

    pub(crate) fn number(&self) -> u64 {
        self.lock().number
    }

    /// A request goes out with these credentials. Returns the number of the reader before, if this is another one.
    pub(crate) fn identify<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
        let mut parts = credentials.peekable();
        let credentials = if parts.peek().is_none() {
            // Most requests have none, and need no digest of that.
            Credentials::Absent
        } else {
            let mut digest = Sha256::new();
            for part in parts {
                digest.update(part.len().to_le_bytes());
                digest.update(part);
            }
            Credentials::Digest(digest.finalize().into())
        };
        let mut now = self.lock();
        let other = now.credentials != Credentials::Unknown && now.credentials != credentials;
        now.credentials = credentials;
        other.then(|| std::mem::replace(&mut now.number, next()))
    }

    fn lock(&self) -> MutexGuard<'_, CurrentCredentials> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(reader: &CredentialScope, credentials: &[&str]) -> Option<u64> {
        reader.identify(credentials.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn other_credentials_are_another_reader() {
        let reader = CredentialScope::new();
        let first = reader.number();
        assert_eq!(identify(&reader, &["Bearer a"]), None);
        assert_eq!(identify(&reader, &["Bearer a"]), None);
        assert_eq!(reader.number(), first);
        assert_eq!(identify(&reader, &["Bearer b"]), Some(first));
        assert_ne!(reader.number(), first);
        assert!(identify(&reader, &[]).is_some() && identify(&reader, &["Bearer b"]).is_some());
    }

    #[test]
    fn no_two_clients_are_the_same_reader() {
        assert_ne!(CredentialScope::new().number(), CredentialScope::new().number());
    }
}
