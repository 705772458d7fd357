mod fetching;
mod signing;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::EncodingKey;
use p256::elliptic_curve::rand_core::OsRng;
use p256::pkcs8::EncodePrivateKey;
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://auth.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";
const NOW: u64 = 1_800_000_000;

/// A signing key with its public JWK.
struct Signer {
    key: EncodingKey,
    algorithm: jsonwebtoken::Algorithm,
    public: Value,
}

impl Signer {
    fn es256(id: &str) -> Self {
        let secret = p256::SecretKey::random(&mut OsRng);
        let key = EncodingKey::from_ec_der(secret.to_pkcs8_der().unwrap().as_bytes());
        let mut public: Value = serde_json::from_str(&secret.public_key().to_jwk_string()).unwrap();
        public["kid"] = json!(id);
        Self { key, algorithm: jsonwebtoken::Algorithm::ES256, public }
    }

    fn rs256(id: &str) -> Self {
        use rsa::pkcs1::EncodeRsaPrivateKey;
        use rsa::traits::PublicKeyParts;

        let secret = rsa::RsaPrivateKey::new(&mut OsRng, 2048).unwrap();
        let key = EncodingKey::from_rsa_der(secret.to_pkcs1_der().unwrap().as_bytes());
        let (n, e) =
            (URL_SAFE_NO_PAD.encode(secret.n().to_bytes_be()), URL_SAFE_NO_PAD.encode(secret.e().to_bytes_be()));
        let public = json!({ "kty": "RSA", "kid": id, "n": n, "e": e, "use": "sig" });
        Self { key, algorithm: jsonwebtoken::Algorithm::RS256, public }
    }

    fn header(&self) -> jsonwebtoken::Header {
        let mut header = jsonwebtoken::Header::new(self.algorithm);
        header.kid = self.public["kid"].as_str().map(ToOwned::to_owned);
        header
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_with(&self.header(), claims)
    }

    fn sign_with(&self, header: &jsonwebtoken::Header, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, &self.key).unwrap()
    }
}

fn document(keys: &[&Value]) -> Vec<u8> {
    serde_json::to_vec(&json!({ "keys": keys })).unwrap()
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": NOW + 600, "scope": "read" })
}

fn verifier(keys: impl KeySource) -> JwtVerifier {
    JwtVerifier::new(ISSUER, RESOURCE, keys).clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
}

async fn verified(verifier: &JwtVerifier, token: &str) -> Result<Principal, TokenRejection> {
    verifier.verify(&AccessToken::parse(token).unwrap()).await
}
