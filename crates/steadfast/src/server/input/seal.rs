//! The sealed `requestState` of multi round-trips: what a client carries for the server, and cannot read or change.
//!
//! The seal is an AEAD (XChaCha20-Poly1305). What it is bound to, that is the method, the parameters and who asks, is
//! authenticated with it, so a state that is handed back with another request does not open. When it ends is inside. It
//! does not make a state single-use: the same request may hand it back twice until it ends.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};

/// The first byte of a sealed state: how it is written.
const VERSION: u8 = 1;

const NONCE: usize = 24;

/// Eight bytes before what is sealed: when it ends, in seconds since 1970.
const END: usize = 8;

/// A person may have to answer in that time.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// As much text as a client is made to carry.
const LONGEST: usize = 256 * 1024;

/// The keys that seal the `requestState` of multi round-trips (2026-07-28), and how long a state is good.
///
/// A server makes a key for itself when it is built. If several processes serve one address, or states should outlive a
/// restart, give all of them the same keys. To change a key, let the new one seal and the old one still open for as long
/// as states are good:
///
/// ```
/// use std::time::Duration;
/// use steadfast::Server;
/// use steadfast::server::StateKeys;
///
/// # let (new_key, old_key) = ([1; 32], [2; 32]);
/// let keys = StateKeys::new(new_key).or_open_with(old_key).lifetime(Duration::from_secs(600));
/// let server = Server::builder("twin", "1.0.0").state_keys(keys).build();
/// ```
#[derive(Clone)]
pub struct StateKeys {
    /// The first seals, all open. Empty if the system had no random numbers to give.
    keys: Arc<[XChaCha20Poly1305]>,
    lifetime: Duration,
    longest: usize,
}

impl StateKeys {
    /// Seals and opens with this key: 32 random bytes that nobody else knows.
    pub fn new(key: [u8; 32]) -> Self {
        Self { keys: Arc::new([XChaCha20Poly1305::new(&key.into())]), lifetime: LIFETIME, longest: LONGEST }
    }

    /// A key that exists only in this process.
    pub fn random() -> Self {
        let mut key = [0; 32];
        if let Err(error) = getrandom::fill(&mut key) {
            tracing::error!(%error, "there are no random numbers, so tools cannot ask the clients of 2026-07-28");
            return Self { keys: Arc::new([]), lifetime: LIFETIME, longest: LONGEST };
        }
        Self::new(key)
    }

    /// Also opens what was sealed with this key: one that sealed until now.
    pub fn or_open_with(mut self, key: [u8; 32]) -> Self {
        let more = XChaCha20Poly1305::new(&key.into());
        self.keys = self.keys.iter().cloned().chain([more]).collect();
        self
    }

    /// How long a state is good after the question that it came with: half an hour unless told. Each round begins anew.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// The longest state, in bytes of text: 256 KiB unless told. The answers so far have to fit.
    pub fn longest(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// Seals a state for whoever can show the same binding.
    pub(crate) fn seal(&self, binding: &[u8], state: &[u8]) -> Result<String, SealError> {
        self.seal_at(SystemTime::now(), binding, state)
    }

    /// Opens a state.
    pub(crate) fn open(&self, binding: &[u8], sealed: &str) -> Result<Vec<u8>, UnsealError> {
        self.open_at(SystemTime::now(), binding, sealed)
    }

    fn seal_at(&self, now: SystemTime, binding: &[u8], state: &[u8]) -> Result<String, SealError> {
        let key = self.keys.first().ok_or(SealError::NoRandomNumbers)?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomNumbers)?;
        let end = seconds(now).saturating_add(self.lifetime.as_secs()).to_be_bytes();
        let plain = [&end, state].concat();
        let payload = Payload { msg: &plain, aad: binding };
        let cipher = key.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::TooLong)?;
        let text = URL_SAFE_NO_PAD.encode([&[VERSION], nonce.as_slice(), &cipher].concat());
        if text.len() > self.longest { Err(SealError::TooLong) } else { Ok(text) }
    }

    fn open_at(&self, now: SystemTime, binding: &[u8], sealed: &str) -> Result<Vec<u8>, UnsealError> {
        if sealed.len() > self.longest {
            return Err(UnsealError::Foreign);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| UnsealError::Foreign)?;
        let Some((&VERSION, rest)) = bytes.split_first() else { return Err(UnsealError::Foreign) };
        let (nonce, cipher) = rest.split_first_chunk::<NONCE>().ok_or(UnsealError::Foreign)?;
        let nonce = XNonce::from(*nonce);
        let payload = || Payload { msg: cipher, aad: binding };
        let mut opened = self.keys.iter().filter_map(|key| key.decrypt(&nonce, payload()).ok());
        let plain = opened.next().ok_or(UnsealError::Foreign)?;
        let (end, state) = plain.split_first_chunk::<END>().ok_or(UnsealError::Foreign)?;
        if u64::from_be_bytes(*end) <= seconds(now) {
            return Err(UnsealError::Expired);
        }
        Ok(state.to_vec())
    }
}

/// Why a state could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealError {
    NoRandomNumbers,
    TooLong,
}

impl fmt::Display for SealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoRandomNumbers => "the answers so far cannot be sealed",
            Self::TooLong => "the answers so far are too long to be carried by the client",
        })
    }
}

/// Why a state was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsealError {
    /// It was changed, it belongs to another request or another user, or it is not of this server. Nobody is told which.
    Foreign,
    /// It was good once.
    Expired,
}

impl fmt::Display for UnsealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Foreign => "params.requestState is not one that this server gave out for this request",
            Self::Expired => "params.requestState has expired: make the request again without it",
        })
    }
}

/// Whole seconds since 1970.
fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Default for StateKeys {
    fn default() -> Self {
        Self::random()
    }
}

/// Never shows a key.
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
    fn what_was_sealed_opens_for_the_same_request() {
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
        for place in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(keys().open(b"request", &changed), Err(UnsealError::Foreign), "{place}");
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
        let after = StateKeys::new([2; 32]).or_open_with([1; 32]);
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
    fn the_same_state_never_looks_the_same() {
        assert_ne!(keys().seal(b"", b"state").unwrap(), keys().seal(b"", b"state").unwrap());
    }

    #[test]
    fn a_state_is_bounded() {
        let small = keys().longest(200);
        assert_eq!(small.seal(b"", &[0; 200]), Err(SealError::TooLong));
        let sealed = keys().seal(b"", &[0; 200]).unwrap();
        assert_eq!(small.open(b"", &sealed), Err(UnsealError::Foreign));
    }

    #[test]
    fn keys_are_never_shown() {
        let shown = format!("{:?}", StateKeys::new([200; 32]));
        assert!(!shown.contains("200"), "{shown}");
    }
}
