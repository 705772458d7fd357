//! The public keys of an authorization server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::rust_crypto::DEFAULT_PROVIDER;
use serde::Deserialize;
use serde_json::Value;

use super::Algorithm;

/// Keys beyond this many are not looked at.
const MOST_KEYS: usize = 100;
/// How many keys are tried for a token that does not name its key.
const MOST_TRIED: usize = 8;
/// RFC 7518 (section 3.3) wants 2048 bits. Beyond 8192 a check is slow enough to be an attack.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// The keys that a [`KeySource`] has, later.
pub type Keys<'a> = Pin<Box<dyn Future<Output = Result<Arc<KeySet>, KeysUnavailable>> + Send + 'a>>;

/// Where the public keys of an authorization server come from.
pub trait KeySource: Send + Sync + 'static {
    /// The keys, for a token that names this key. A source that does not have it may look for newer keys first; it answers
    /// with what it has then.
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> Keys<'a>;
}

impl<K: KeySource + ?Sized> KeySource for Arc<K> {
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> Keys<'a> {
        (**self).keys(wanted)
    }
}

/// Keys that do not change.
impl KeySource for KeySet {
    fn keys<'a>(&'a self, _: Option<&'a str>) -> Keys<'a> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()))))
    }
}

/// There are no keys at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeysUnavailable;

impl fmt::Display for KeysUnavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the keys of the authorization server are not known")
    }
}

impl std::error::Error for KeysUnavailable {}

/// A set of public keys (a JWK Set, RFC 7517).
#[derive(Clone, Debug, Default)]
pub struct KeySet(Arc<[Key]>);

#[derive(Clone, Debug)]
struct Key {
    id: Option<String>,
    /// The algorithm, if the key is for one alone.
    algorithm: Option<String>,
    kind: String,
    curve: Option<String>,
    decoding: DecodingKey,
}

/// A key as it is written. What this crate does not know of is ignored, as the RFC says.
#[derive(Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a JWK Set. Keys that are not for checking signatures, or of a kind that is not known, are left out.
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidKeySet> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }

        let document: Document = serde_json::from_slice(json).map_err(|_| InvalidKeySet)?;
        let written = document.keys.into_iter().take(MOST_KEYS).filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self(written.filter_map(Written::read).collect()))
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has what a token that names this key needs.
    pub(super) fn has(&self, wanted: Option<&str>) -> bool {
        match wanted {
            Some(id) => self.0.iter().any(|key| key.id.as_deref() == Some(id)),
            None => !self.is_empty(),
        }
    }

    /// Whether one of the keys made this signature. `None` if there is no key to check it with.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let fits = |key: &&Key| key.fits(algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id));
        let mut candidates = self.0.iter().filter(fits).take(MOST_TRIED).peekable();
        candidates.peek()?;
        Some(candidates.any(|key| key.verify(algorithm, message, signature)))
    }
}

impl Key {
    /// The token's header says which algorithm it wants; the key has the last word.
    fn fits(&self, algorithm: Algorithm) -> bool {
        let (kind, curve) = algorithm.key_kind();
        let only = self.algorithm.as_deref();
        self.kind == kind && self.curve.as_deref() == curve && only.is_none_or(|only| only == algorithm.name())
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        // Named here and not taken from the process, where another crate may have installed something else, or nothing.
        (DEFAULT_PROVIDER.verifier_factory)(&algorithm.library(), &self.decoding)
            .is_ok_and(|verifier| verifier.verify(message, &signature.to_vec()).is_ok())
    }
}

impl Written {
    fn read(self) -> Option<Key> {
        let is_for_signatures = self.r#use.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|one| one == "verify"));
        if !is_for_signatures {
            return None;
        }
        let decoding = match self.kty.as_str() {
            "EC" => DecodingKey::from_ec_components(self.x.as_deref()?, self.y.as_deref()?).ok()?,
            "OKP" => DecodingKey::from_ed_components(self.x.as_deref()?).ok()?,
            "RSA" => self.rsa()?,
            // A shared secret among public keys is a mistake that must not become a way in.
            _ => return None,
        };
        let curve = if self.kty == "RSA" { None } else { self.crv };
        Some(Key { id: self.kid, algorithm: self.alg, kind: self.kty, curve, decoding })
    }

    fn rsa(&self) -> Option<DecodingKey> {
        let modulus = URL_SAFE_NO_PAD.decode(self.n.as_deref()?).ok()?;
        let exponent = URL_SAFE_NO_PAD.decode(self.e.as_deref()?).ok()?;
        let significant = modulus.iter().skip_while(|byte| **byte == 0).count();
        RSA_BYTES.contains(&significant).then(|| DecodingKey::from_rsa_raw_components(&modulus, &exponent))
    }
}

/// A document that is no JWK Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKeySet;

impl fmt::Display for InvalidKeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a JWK Set")
    }
}

impl std::error::Error for InvalidKeySet {}
