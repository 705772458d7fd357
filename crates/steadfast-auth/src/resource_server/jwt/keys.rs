//! The public keys of an authorization server, which verify the signatures of its access tokens.

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

/// Limit of the keys in a JWK Set, beyond which further keys are ignored.
const MOST_KEYS: usize = 100;
/// The maximum number of keys that are tried for one token.
const MOST_TRIED: usize = 8;
/// The allowed sizes of an RSA key, in bytes. RFC 7518 (section 3.3) requires RSA keys of at least 2048 bits. With RSA keys of
/// more than 8192 bits, verification is slow enough for a denial of service.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// The future of a key set, returned by [`KeySource::keys`].
pub type KeysFuture<'a> = Pin<Box<dyn Future<Output = Result<Arc<KeySet>, KeysUnavailable>> + Send + 'a>>;

/// Provides the public keys of an authorization server.
pub trait KeySource: Send + Sync + 'static {
    /// The keys to verify a token with this key id. A key source that does not have the key may fetch newer keys first, and
    /// then returns the keys that it has.
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> KeysFuture<'a>;
}

impl<K: KeySource + ?Sized> KeySource for Arc<K> {
    fn keys<'a>(&'a self, wanted: Option<&'a str>) -> KeysFuture<'a> {
        (**self).keys(wanted)
    }
}

/// A [`KeySet`] is a key source whose keys do not change.
impl KeySource for KeySet {
    fn keys<'a>(&'a self, _: Option<&'a str>) -> KeysFuture<'a> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()))))
    }
}

/// The public keys of the authorization server are not available at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeysUnavailable;

impl fmt::Display for KeysUnavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the keys of the authorization server are not available")
    }
}

impl std::error::Error for KeysUnavailable {}

/// A set of public keys (a JWK Set, RFC 7517).
#[derive(Clone, Debug, Default)]
pub struct KeySet(Arc<[VerificationKey]>);

#[derive(Clone, Debug)]
struct VerificationKey {
    id: Option<String>,
    /// The signature algorithm, if the key is restricted to one.
    algorithm: Option<String>,
    kind: String,
    curve: Option<String>,
    decoding: DecodingKey,
}

/// A JWK. Unknown members of a JWK are ignored, as RFC 7517 requires.
#[derive(Deserialize)]
struct Jwk {
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
    /// Parses a JWK Set. Keys of the JWK Set that are not for verifying signatures, or of an unknown type, are skipped.
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidKeySet> {
        #[derive(Deserialize)]
        struct JwksDocument {
            keys: Vec<Value>,
        }

        let document: JwksDocument = serde_json::from_slice(json).map_err(|_| InvalidKeySet)?;
        let written = document.keys.into_iter().take(MOST_KEYS).filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self(written.filter_map(Jwk::into_key).collect()))
    }

    /// The number of keys in the key set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the key set has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key set has the key with this id, or any key at all if there is no id.
    pub(super) fn has(&self, wanted: Option<&str>) -> bool {
        match wanted {
            Some(id) => self.0.iter().any(|key| key.id.as_deref() == Some(id)),
            None => !self.is_empty(),
        }
    }

    /// Whether one of the keys verifies the signature of a token. Returns `None` if no key has the key id and fits the
    /// algorithm.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let fits = |key: &&VerificationKey| key.allows(algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id));
        let mut candidates = self.0.iter().filter(fits).take(MOST_TRIED).peekable();
        candidates.peek()?;
        Some(candidates.any(|key| key.verify(algorithm, message, signature)))
    }
}

impl VerificationKey {
    /// Whether the public key may be used with the algorithm in the token's header.
    fn allows(&self, algorithm: Algorithm) -> bool {
        let (kind, curve) = algorithm.key_kind();
        let only = self.algorithm.as_deref();
        self.kind == kind && self.curve.as_deref() == curve && only.is_none_or(|only| only == algorithm.name())
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        // An explicit crypto provider: the process default may be another one, or none.
        (DEFAULT_PROVIDER.verifier_factory)(&algorithm.library(), &self.decoding)
            .is_ok_and(|verifier| verifier.verify(message, &signature.to_vec()).is_ok())
    }
}

impl Jwk {
    fn into_key(self) -> Option<VerificationKey> {
        let is_for_signatures = self.r#use.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|one| one == "verify"));
        if !is_for_signatures {
            return None;
        }
        let decoding = match self.kty.as_str() {
            "EC" => DecodingKey::from_ec_components(self.x.as_deref()?, self.y.as_deref()?).ok()?,
            "OKP" => DecodingKey::from_ed_components(self.x.as_deref()?).ok()?,
            "RSA" => self.rsa()?,
            // A symmetric key must never be used to verify tokens.
            _ => return None,
        };
        let curve = if self.kty == "RSA" { None } else { self.crv };
        Some(VerificationKey { id: self.kid, algorithm: self.alg, kind: self.kty, curve, decoding })
    }

    fn rsa(&self) -> Option<DecodingKey> {
        let modulus = URL_SAFE_NO_PAD.decode(self.n.as_deref()?).ok()?;
        let exponent = URL_SAFE_NO_PAD.decode(self.e.as_deref()?).ok()?;
        let significant = modulus.iter().skip_while(|byte| **byte == 0).count();
        RSA_BYTES.contains(&significant).then(|| DecodingKey::from_rsa_raw_components(&modulus, &exponent))
    }
}

/// The document is not a JWK Set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKeySet;

impl fmt::Display for InvalidKeySet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not a JWK Set")
    }
}

impl std::error::Error for InvalidKeySet {}
