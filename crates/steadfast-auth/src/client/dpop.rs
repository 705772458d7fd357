//! DPoP (RFC 9449): keys that access tokens are bound to, and the proof that each request carries.

use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde::Serialize;
use url::Url;

use super::pkce::digest;
use super::random::{RandomSource, random_secret};
use super::{Error, Secret};

/// The HTTP header that carries a DPoP proof.
pub(super) const PROOF: &str = "dpop";
/// The HTTP header in which a server sends the nonce for the next DPoP proofs.
pub(super) const NONCE: &str = "dpop-nonce";
/// The error code of a server that requires its nonce in the DPoP proof.
pub(super) const USE_NONCE: &str = "use_dpop_nonce";

/// When a client requests tokens that are bound to a key (DPoP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientDpopPolicy {
    /// Never.
    Never,
    /// Tokens are bound to a key (DPoP) only when the MCP server accepts no others.
    #[default]
    WhenRequired,
    /// Tokens are bound to a key whenever the authorization server supports DPoP, even if the MCP server does not require it.
    WhenOffered,
    /// Tokens are always bound to a key (DPoP): a token that is not bound is an error.
    Always,
}

/// The private key of a client that its tokens are bound to (DPoP): a P-256 key, for ES256. The debug output of a
/// DPoP key is redacted.
#[derive(Clone)]
pub(super) struct DpopProofKey(SigningKey);

impl fmt::Debug for DpopProofKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DpopProofKey(redacted)")
    }
}

/// The public DPoP key as a JWK, with its members in the order that RFC 7638 requires for a thumbprint.
#[derive(Serialize)]
struct DpopPublicKey {
    crv: &'static str,
    kty: &'static str,
    x: String,
    y: String,
}

#[derive(Serialize)]
struct DpopProofHeader {
    typ: &'static str,
    alg: &'static str,
    jwk: DpopPublicKey,
}

#[derive(Serialize)]
struct DpopProofClaims<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

/// The HTTP request that a DPoP proof is for.
pub(super) struct DpopProofParameters<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a Url,
    /// The access token that is sent with the DPoP proof; `None` in a token request.
    pub(super) token: Option<&'a Secret>,
    pub(super) nonce: Option<&'a str>,
}

impl DpopProofKey {
    pub(super) fn draw(random: &dyn RandomSource) -> Result<Self, Error> {
        // Almost every number is a valid key: about one in 2^32 is not.
        for _ in 0..8 {
            if let Ok(key) = SigningKey::from_slice(&random.draw()?) {
                return Ok(Self(key));
            }
        }
        Err(Error::UnusableKey("no valid DPoP key could be generated"))
    }

    /// Restores a private DPoP key from the text that [`DpopProofKey::export`] returned.
    pub(super) fn import(text: &Secret) -> Result<Self, Error> {
        let bytes = URL_SAFE_NO_PAD.decode(text.expose()).ok();
        let key = bytes.and_then(|bytes| SigningKey::from_slice(&zeroize::Zeroizing::new(bytes)).ok());
        key.map(Self).ok_or(Error::UnusableKey("the stored DPoP key is damaged"))
    }

    /// Exports the private DPoP key for the token store: a refresh token that is bound to the key cannot be used without the
    /// key.
    pub(super) fn export(&self) -> Secret {
        Secret::new(URL_SAFE_NO_PAD.encode(self.0.to_bytes()))
    }

    /// The thumbprint of the public DPoP key (RFC 7638).
    pub(super) fn thumbprint(&self) -> String {
        digest(&serde_json::to_string(&self.public()).unwrap_or_default())
    }

    /// Creates the DPoP proof for one HTTP request.
    pub(super) fn prove(
        &self,
        proof: &DpopProofParameters<'_>,
        now: SystemTime,
        random: &dyn RandomSource,
    ) -> Result<String, Error> {
        let mut url = proof.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let identifier = random_secret(random)?;
        let claims = DpopProofClaims {
            jti: identifier.expose(),
            htm: proof.method,
            htu: url.as_str(),
            iat: seconds(now),
            ath: proof.token.map(|token| digest(token.expose())),
            nonce: proof.nonce,
        };
        let header = DpopProofHeader { typ: "dpop+jwt", alg: "ES256", jwk: self.public() };
        let message = format!("{}.{}", encode(&header)?, encode(&claims)?);
        let signature: Signature = self.0.sign(message.as_bytes());
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes())))
    }

    fn public(&self) -> DpopPublicKey {
        let point = self.0.verifying_key().to_encoded_point(false);
        let coordinate =
            |part: Option<&p256::FieldBytes>| part.map(|part| URL_SAFE_NO_PAD.encode(part)).unwrap_or_default();
        DpopPublicKey { crv: "P-256", kty: "EC", x: coordinate(point.x()), y: coordinate(point.y()) }
    }
}

fn encode(part: &impl Serialize) -> Result<String, Error> {
    let json = serde_json::to_vec(part).map_err(|_| Error::UnusableKey("a DPoP proof could not be serialized"))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

/// Seconds since 1970.
pub(super) fn seconds(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
    use serde_json::Value;

    use super::*;
    use crate::client::random::CountingRandomness;

    fn proven(nonce: Option<&str>, token: Option<&Secret>) -> (jsonwebtoken::Header, Value) {
        let random = CountingRandomness::default();
        let key = DpopProofKey::draw(&random).unwrap();
        let url = Url::parse("https://mcp.example.com/mcp?x=1").unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let proof = key.prove(&DpopProofParameters { method: "POST", url: &url, token, nonce }, now, &random).unwrap();
        let header = decode_header(&proof).unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        let jwk = header.jwk.clone().unwrap();
        let claims = decode::<Value>(&proof, &DecodingKey::from_jwk(&jwk).unwrap(), &validation).unwrap().claims;
        (header, claims)
    }

    #[test]
    fn a_proof_is_signed_by_the_key_in_its_header() {
        let (header, claims) = proven(None, None);
        assert_eq!((header.typ.as_deref(), header.alg), (Some("dpop+jwt"), Algorithm::ES256));
        assert_eq!((claims["htm"].as_str(), claims["iat"].as_u64()), (Some("POST"), Some(1000)));
        assert_eq!(claims["htu"], "https://mcp.example.com/mcp", "without the query");
        assert!(claims.get("ath").is_none() && claims.get("nonce").is_none());
    }

    #[test]
    fn a_proof_names_the_token_and_the_nonce() {
        let (_, claims) = proven(Some("n1"), Some(&Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")));
        // The example of RFC 9449, section 7.1.
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims["nonce"], "n1");
    }

    #[test]
    fn a_key_survives_the_store() {
        let key = DpopProofKey::draw(&CountingRandomness::default()).unwrap();
        assert_eq!(DpopProofKey::import(&key.export()).unwrap().thumbprint(), key.thumbprint());
        assert!(DpopProofKey::import(&Secret::new("x")).is_err());
        assert_eq!(format!("{key:?}"), "DpopProofKey(redacted)");
    }
}
