//! The sealed `requestState` of multi-round requests: the client carries it, and can neither read nor change it.
//!
//! The seal is an AEAD (XChaCha20-Poly1305). The binding of a request state, that is the method, the parameters and the
//! principal of its request, is authenticated with the state, so a state cannot be opened with another request. The
//! expiry time is part of the sealed content. The seal does not make a request state single-use: the same request may
//! send the state twice before it expires.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};

/// The first byte of a sealed request state: the version of the format.
const VERSION: u8 = 1;

const NONCE_BYTES: usize = 24;

/// The length, in bytes, of the expiry time (in seconds since 1970) that precedes the sealed request state.
const EXPIRY_BYTES: usize = 8;

/// The default lifetime of a sealed request state, in which a person may have to answer.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// The default of the maximum length of a sealed request state, in bytes of text.
const MAX_BYTES: usize = 256 * 1024;

/// The keys that seal the `requestState` of multi-round requests (2026-07-28), and the lifetime of a state.
///
/// By default a server generates a random key when it is built. If several processes serve one address, or request
/// states should survive a restart, give all processes the same keys. To rotate a key, seal with the new key and still
/// open with the old key for the lifetime of a request state:
///
/// ```
/// use std::time::Duration;
/// use steadfast::Server;
/// use steadfast::server::StateKeys;
///
/// # let (new_key, old_key) = ([1; 32], [2; 32]);
/// let keys = StateKeys::new(new_key).previous_key(old_key).lifetime(Duration::from_secs(600));
/// let server = Server::builder("twin", "1.0.0").state_keys(keys).build();
/// ```
#[derive(Clone)]
pub struct StateKeys {
    /// The first key seals request states, all keys open them. `keys` is empty if the system's random number
    /// generator failed.
    keys: Arc<[XChaCha20Poly1305]>,
    lifetime: Duration,
    max_bytes: usize,
}

impl StateKeys {
    /// Seals and opens request states with this key: 32 random bytes, to be kept secret.
    pub fn new(key: [u8; 32]) -> Self {
        Self { keys: Arc::new([XChaCha20Poly1305::new(&key.into())]), lifetime: LIFETIME, max_bytes: MAX_BYTES }
    }

    /// Creates a random key that exists only in this process.
    pub fn random() -> Self {
        let mut key = [0; 32];
        if let Err(error) = getrandom::fill(&mut key) {
            tracing::error!(%error, "random number generator failed: tools cannot request input from 2026-07-28 clients");
            return Self { keys: Arc::new([]), lifetime: LIFETIME, max_bytes: MAX_BYTES };
        }
        Self::new(key)
    }

    /// Also opens request states that were sealed with this key: the previous key.
    pub fn previous_key(mut self, key: [u8; 32]) -> Self {
        let more = XChaCha20Poly1305::new(&key.into());
        self.keys = self.keys.iter().cloned().chain([more]).collect();
        self
    }

    /// The lifetime of a request state after the response that contains it, 30 minutes by default. Each round of a
    /// request starts a new lifetime.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// The maximum length of a sealed request state, in bytes of text, 256 KiB by default. All answers of the client so
    /// far have to fit into the request state.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The maximum length of a sealed request state, in bytes. The state that an MCP task keeps in its record has the
    /// same limit.
    pub(crate) fn byte_limit(&self) -> usize {
        self.max_bytes
    }

    /// Seals a request state, which can be opened only with the same binding.
    pub(crate) fn seal(&self, binding: &[u8], state: &[u8]) -> Result<String, SealError> {
        self.seal_at(SystemTime::now(), binding, state)
    }

    /// Decrypts a sealed request state; fails if the state has expired or was sealed with another binding.
    pub(crate) fn open(&self, binding: &[u8], sealed: &str) -> Result<Vec<u8>, UnsealError> {
        self.open_at(SystemTime::now(), binding, sealed)
    }

    fn seal_at(&self, now: SystemTime, binding: &[u8], state: &[u8]) -> Result<String, SealError> {
        let key = self.keys.first().ok_or(SealError::NoRandomNumbers)?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomNumbers)?;
        let expiry = seconds(now).saturating_add(self.lifetime.as_secs()).to_be_bytes();
        let plaintext = [&expiry, state].concat();
        let payload = Payload { msg: &plaintext, aad: binding };
        let ciphertext = key.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::TooLong)?;
        let text = URL_SAFE_NO_PAD.encode([&[VERSION], nonce.as_slice(), &ciphertext].concat());
        if text.len() > self.max_bytes { Err(SealError::TooLong) } else { Ok(text) }
    }

    fn open_at(&self, now: SystemTime, binding: &[u8], sealed: &str) -> Result<Vec<u8>, UnsealError> {
        if sealed.len() > self.max_bytes {
            return Err(UnsealError::Foreign);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| UnsealError::Foreign)?;
        let Some((&VERSION, rest)) = bytes.split_first() else { return Err(UnsealError::Foreign) };
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(UnsealError::Foreign)?;
        let nonce = XNonce::from(*nonce);
        let payload = || Payload { msg: ciphertext, aad: binding };
        let mut opened = self.keys.iter().filter_map(|key| key.decrypt(&nonce, payload()).ok());
        let plaintext = opened.next().ok_or(UnsealError::Foreign)?;
        let (expiry, state) = plaintext.split_first_chunk::<EXPIRY_BYTES>().ok_or(UnsealError::Foreign)?;
        if u64::from_be_bytes(*expiry) <= seconds(now) {
            return Err(UnsealError::Expired);
        }
        Ok(state.to_vec())
    }
}

/// Why a request state could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealError {
    NoRandomNumbers,
    TooLong,
}

impl fmt::Display for SealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoRandomNumbers => "request state could not be sealed: random number generator failed",
            Self::TooLong => "request state is too long: the answers so far exceed the limit",
        })
    }
}

/// Why a sealed request state was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsealError {
    /// The request state was changed, it belongs to another request or another user, or another server sealed it. The
    /// client is not told which of these reasons applies.
    Foreign,
    /// The request state was valid, and has expired.
    Expired,
}

impl fmt::Display for UnsealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Foreign => "params.requestState is invalid for this request",
            Self::Expired => "params.requestState has expired: send the request again without it",
        })
    }
}

/// Converts a system time into whole seconds since 1970.
fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The `Debug` output of `StateKeys` never contains a key.
impl fmt::Debug for StateKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StateKeys")
            .field("keys", &self.keys.len())
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> StateKeys {
        StateKeys::new([7; 32])
    }

    #[test]
    fn a_sealed_state_opens_for_the_same_request() {
        let sealed = keys().seal(b"this request", b"state").unwrap();
        assert_eq!(keys().open(b"this request", &sealed).unwrap(), b"state");
    }

    #[test]
    fn another_request_does_not_open_it() {
        let sealed = keys().seal(b"this request", b"state").unwrap();
        assert_eq!(keys().open(b"that request", &sealed), Err(UnsealError::Foreign));
    }

    #[test]
    fn a_change_anywhere_is_seen() {
        let sealed = keys().seal(b"request", b"state").unwrap();
        for position in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(keys().open(b"request", &changed), Err(UnsealError::Foreign), "{position}");
        }
        assert_eq!(keys().open(b"request", &format!("{sealed}-TAMPERED")), Err(UnsealError::Foreign));
        assert_eq!(keys().open(b"request", ""), Err(UnsealError::Foreign));
    }

    #[test]
    fn a_state_ends() {
        let keys = keys().lifetime(Duration::from_secs(60));
        let sealed = keys.seal_at(UNIX_EPOCH, b"", b"state").unwrap();
        assert!(keys.open_at(UNIX_EPOCH + Duration::from_secs(59), b"", &sealed).is_ok());
        assert_eq!(keys.open_at(UNIX_EPOCH + Duration::from_secs(60), b"", &sealed), Err(UnsealError::Expired));
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let before = StateKeys::new([1; 32]);
        let after = StateKeys::new([2; 32]).previous_key([1; 32]);
        let old = before.seal(b"", b"old").unwrap();
        let new = after.seal(b"", b"new").unwrap();
        assert_eq!(after.open(b"", &old).unwrap(), b"old");
        assert_eq!(after.open(b"", &new).unwrap(), b"new");
        assert_eq!(before.open(b"", &new), Err(UnsealError::Foreign));
    }

    #[test]
    fn keys_made_apart_are_different() {
        let sealed = StateKeys::random().seal(b"", b"state").unwrap();
        assert_eq!(StateKeys::random().open(b"", &sealed), Err(UnsealError::Foreign));
    }

    #[test]
    fn the_same_state_is_sealed_differently_each_time() {
        assert_ne!(keys().seal(b"", b"state").unwrap(), keys().seal(b"", b"state").unwrap());
    }

    #[test]
    fn a_state_is_bounded() {
        let small = keys().max_bytes(200);
        assert_eq!(small.seal(b"", &[0; 200]), Err(SealError::TooLong));
        let sealed = keys().seal(b"", &[0; 200]).unwrap();
        assert_eq!(small.open(b"", &sealed), Err(UnsealError::Foreign));
    }

    #[test]
    fn keys_are_never_printed() {
        let shown = format!("{:?}", StateKeys::new([200; 32]));
        assert!(!shown.contains("200"), "{shown}");
    }
}
