//! Verifies access tokens that are JSON Web Tokens with the public keys of their issuer.

mod algorithm;
mod fetched_keys;
mod keys;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::claims::{ClaimRequirements, TokenVerifierClock};
use super::{AccessToken, Principal, TokenRejection, TokenVerifier, TokenVerifierFuture};
pub use algorithm::Algorithm;
pub use fetched_keys::RemoteKeySet;
pub use keys::{InvalidKeySet, KeySet, KeySource, KeysFuture, KeysUnavailable};

/// Verifies tokens that are JWTs.
///
/// A token is valid if it is signed with one of the issuer's keys and an allowed algorithm, if its issuer (`iss`) and audience
/// (`aud`) match, if it has an expiry (`exp`) in the future, and if its start (`nbf`) is not in the future.
///
/// ```
/// use steadfast_auth::resource_server::{Algorithm, RemoteKeySet, HttpClient, InsecureEndpoint, JwtVerifier};
///
/// // The client is an `OAuthReqwestClient`, or one of your own.
/// fn verifier(client: impl HttpClient) -> Result<JwtVerifier, InsecureEndpoint> {
///     let keys = RemoteKeySet::new(client, "https://auth.example.com/jwks.json")?;
///     let verifier = JwtVerifier::new("https://auth.example.com", "https://mcp.example.com/mcp", keys);
///     Ok(verifier.algorithms([Algorithm::Es256, Algorithm::Rs256]))
/// }
/// ```
pub struct JwtVerifier {
    keys: Box<dyn KeySource>,
    algorithms: Vec<Algorithm>,
    expectations: ClaimRequirements,
}

impl JwtVerifier {
    /// Creates a verifier for access tokens of this issuer, for this resource, signed with these keys.
    ///
    /// The resource is what clients request tokens for: the same string as in
    /// [`ResourceMetadata::new`](super::ResourceMetadata::new).
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>, keys: impl KeySource) -> Self {
        let expectations = ClaimRequirements {
            audiences: vec![resource.into()],
            audience_may_be_absent: false,
            issuer: Some(issuer.into()),
            expiry_may_be_absent: false,
            leeway: Duration::from_secs(30),
            clock: TokenVerifierClock::default(),
        };
        Self { keys: Box::new(keys), algorithms: Algorithm::ALL.to_vec(), expectations }
    }

    /// Allows only these algorithms. By default all signature algorithms that this crate supports are allowed.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Adds another identifier of this resource that tokens may be issued for.
    pub fn allow_audience(mut self, audience: impl Into<String>) -> Self {
        self.expectations.audiences.push(audience.into());
        self
    }

    /// Sets how far the clocks of the issuer and of this server may differ. Default: 30 seconds.
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.expectations.leeway = leeway;
        self
    }

    /// Sets the clock that the expiry of tokens is checked with, for tests and for machines without a clock of their own.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.expectations.clock = TokenVerifierClock::new(now);
        self
    }

    async fn check(&self, token: &AccessToken) -> Result<Principal, TokenRejection> {
        let signed = CompactJwt::parse(token.expose()).ok_or(TokenRejection::Invalid("the token is not a JWT"))?;
        let header = signed.header()?;
        let algorithm = Algorithm::named(&header.alg)
            .filter(|algorithm| self.algorithms.contains(algorithm))
            .ok_or(TokenRejection::Invalid("the token is signed with an algorithm that is not allowed"))?;
        let id = header.kid.as_deref();
        let keys = self
            .keys
            .keys(id)
            .await
            .map_err(|_| TokenRejection::Unavailable("the keys of the issuer are not available"))?;
        match keys.verify(id, algorithm, signed.message.as_bytes(), &signed.signature) {
            None => Err(TokenRejection::Invalid("the token is signed with an unknown key")),
            Some(false) => Err(TokenRejection::Invalid("the signature of the token is wrong")),
            Some(true) => self.expectations.check(signed.claims()?),
        }
    }
}

impl TokenVerifier for JwtVerifier {
    fn verify<'a>(&'a self, token: &'a AccessToken) -> TokenVerifierFuture<'a> {
        Box::pin(self.check(token))
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JwtVerifier")
            .field("algorithms", &self.algorithms)
            .field("expectations", &self.expectations)
            .finish_non_exhaustive()
    }
}

/// The parts of a JWT in its compact form.
struct CompactJwt<'a> {
    message: &'a str,
    header: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

/// The members of a JWT header that are read before the signature is verified. Keys in the token itself (`jwk`, `jku`, `x5u`)
/// are ignored.
#[derive(Deserialize)]
struct JwtHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'a> CompactJwt<'a> {
    fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self { message, header, payload, signature })
    }

    fn header(&self) -> Result<JwtHeader, TokenRejection> {
        let header: JwtHeader = part(self.header)?;
        if header.crit.is_some() {
            return Err(TokenRejection::Invalid("the token has critical extensions that are not known"));
        }
        // Another kind of JWT from the same issuer must not be accepted as an access token.
        let typ = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        if !matches!(typ.trim_start_matches("application/"), "jwt" | "at+jwt") {
            return Err(TokenRejection::Invalid("the token is not an access token"));
        }
        Ok(header)
    }

    fn claims(&self) -> Result<Map<String, Value>, TokenRejection> {
        part(self.payload)
    }
}

fn part<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, TokenRejection> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenRejection::Invalid("the token is not a JWT"))?;
    serde_json::from_slice(&bytes).map_err(|_| TokenRejection::Invalid("the token is not a JWT"))
}
