//! For whom a client keeps what is private: for those whose requests are authorized as its own are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

/// Who reads. Its number changes when requests are authorized differently, and no two clients have the same.
pub(super) struct Reader(Mutex<Now>);

struct Now {
    number: u64,
    /// What stands for the credentials of the last request; none was made yet if there is none. Not the credentials: they are
    /// nobody's business.
    credentials: Option<[u8; 32]>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Now { number: next(), credentials: None }))
    }

    pub(super) fn number(&self) -> u64 {
        self.lock().number
    }

    /// A request goes out with these credentials. Returns the number of the reader before, if this is another one.
    pub(super) fn identify<'a>(&self, credentials: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
        let mut digest = Sha256::new();
        for part in credentials {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let mut now = self.lock();
        match now.credentials.replace(digest) {
            Some(before) if before != digest => Some(std::mem::replace(&mut now.number, next())),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
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

    fn identify(reader: &Reader, credentials: &[&str]) -> Option<u64> {
        reader.identify(credentials.iter().map(|part| part.as_bytes()))
    }

    #[test]
    fn other_credentials_are_another_reader() {
        let reader = Reader::new();
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
        assert_ne!(Reader::new().number(), Reader::new().number());
    }
}
