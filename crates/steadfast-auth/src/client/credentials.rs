//! Client authentication at a token endpoint: none, by a secret, or by a signature.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::{Deserialize, Serialize};

use super::dpop::seconds;
use super::random::{RandomSource, random_secret};
use super::{Error, Secret};

/// The `client_assertion_type` of a JWT that authenticates a client (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Lifetime of the signed assertion that authenticates a client, in seconds: as long as a token request may take.
const ASSERTION_LIFETIME: u64 = 60;

/// The credential of a client at a token endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientCredential {
    /// No credential, for a public client.
    None,
    /// A client secret.
    Secret(Secret),
    /// A private key whose public key the authorization server knows.
    Key(ClientKey),
}

/// The private key of a client, and the algorithm that it signs with. The debug output of a client key shows only the
/// algorithm.
#[derive(Clone)]
pub struct ClientKey {
    key: Arc<EncodingKey>,
    algorithm: Algorithm,
    identifier: Option<String>,
}

impl ClientKey {
    /// Reads a key in PEM (PKCS#8, or PKCS#1 for RSA) for an algorithm such as `ES256`, `RS256`, `PS256` or `EdDSA`.
    pub fn from_pem(pem: &Secret, algorithm: &str) -> Result<Self, Error> {
        let algorithm: Algorithm = algorithm.parse().map_err(|_| Error::UnusableKey("unknown signature algorithm"))?;
        let pem = pem.expose().as_bytes();
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_pem(pem),
            Algorithm::EdDSA => EncodingKey::from_ed_pem(pem),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
                return Err(Error::UnusableKey("the signature algorithm is symmetric"));
            }
            _ => EncodingKey::from_rsa_pem(pem),
        };
        let key = key.map_err(|_| Error::UnusableKey("the text is not a PEM key for the given signature algorithm"))?;
        Ok(Self { key: Arc::new(key), algorithm, identifier: None })
    }

    /// Sets the key id (`kid`), for an authorization server that knows several keys of the client.
    pub fn identifier(mut self, identifier: impl Into<String>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    fn assertion(
        &self,
        client: &str,
        audience: &str,
        now: SystemTime,
        random: &dyn RandomSource,
    ) -> Result<Secret, Error> {
        #[derive(Serialize)]
        struct AssertionClaims<'a> {
            iss: &'a str,
            sub: &'a str,
            aud: &'a str,
            jti: &'a str,
            iat: u64,
            exp: u64,
        }
        let iat = seconds(now);
        let identifier = random_secret(random)?;
        let jti = identifier.expose();
        let claims = AssertionClaims {
            iss: client,
            sub: client,
            aud: audience,
            jti,
            iat,
            exp: iat.saturating_add(ASSERTION_LIFETIME),
        };
        let header = Header { kid: self.identifier.clone(), ..Header::new(self.algorithm) };
        let signed = encode(&header, &claims, &self.key).map_err(|_| Error::UnusableKey("signing failed"))?;
        Ok(Secret::new(signed))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientKey({:?}, redacted)", self.algorithm)
    }
}

/// The methods of client authentication at a token endpoint that this crate supports, serialized as their registered names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl ClientAuthMethod {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let all = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];
        all.into_iter().find(|method| method.as_str() == text)
    }

    /// Chooses the authentication method for a credential among those that the authorization server supports. If the server
    /// lists no methods, a client secret is sent with `client_secret_basic`, the default of RFC 8414.
    pub(super) fn choose(credential: &ClientCredential, supported: Option<&[String]>) -> Self {
        let takes = |method: Self| supported.is_some_and(|list| list.iter().any(|item| item == method.as_str()));
        match credential {
            ClientCredential::None => Self::None,
            ClientCredential::Key(_) => Self::PrivateKeyJwt,
            ClientCredential::Secret(_) if takes(Self::ClientSecretPost) && !takes(Self::ClientSecretBasic) => {
                Self::ClientSecretPost
            }
            ClientCredential::Secret(_) => Self::ClientSecretBasic,
        }
    }
}

/// The id, credential and authentication method of the client at one authorization server.
#[derive(Clone, Debug)]
pub(super) struct OAuthClientIdentity {
    pub(super) id: String,
    pub(super) credential: ClientCredential,
    pub(super) method: ClientAuthMethod,
}

/// The parameters and the header that authenticate a token request.
pub(super) struct ClientAuthenticationParams {
    pub(super) header: Option<HeaderValue>,
    pub(super) parameters: Vec<(&'static str, Secret)>,
}

impl OAuthClientIdentity {
    /// Creates the header and the parameters that authenticate the client in a request to an authorization server.
    pub(super) fn authenticate(
        &self,
        issuer: &str,
        now: SystemTime,
        random: &dyn RandomSource,
    ) -> Result<ClientAuthenticationParams, Error> {
        let id = ("client_id", Secret::new(self.id.as_str()));
        let bare = |parameters| Ok(ClientAuthenticationParams { header: None, parameters });
        match (self.method, &self.credential) {
            (ClientAuthMethod::ClientSecretBasic, ClientCredential::Secret(secret)) => {
                Ok(ClientAuthenticationParams { header: Some(basic(&self.id, secret)?), parameters: Vec::new() })
            }
            (ClientAuthMethod::ClientSecretPost, ClientCredential::Secret(secret)) => {
                bare(vec![id, ("client_secret", secret.clone())])
            }
            // The client id is in the assertion.
            (ClientAuthMethod::PrivateKeyJwt, ClientCredential::Key(key)) => bare(vec![
                ("client_assertion_type", Secret::new(JWT_BEARER)),
                ("client_assertion", key.assertion(&self.id, issuer, now, random)?),
            ]),
            (ClientAuthMethod::None, _) => bare(vec![id]),
            _ => Err(Error::UnusableKey(
                "the client has no credential for the authentication method of the authorization server",
            )),
        }
    }

    /// The client secret, if there is one, which error messages must not repeat.
    pub(super) fn secret(&self) -> Option<&str> {
        match &self.credential {
            ClientCredential::Secret(secret) => Some(secret.expose()),
            _ => None,
        }
    }
}

/// The `Authorization` header of a client with a secret. The client id and the client secret are form-encoded before they are
/// joined (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, Error> {
    let part = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let joined = zeroize::Zeroizing::new(format!("{}:{}", part(id), part(secret.expose())));
    let value = zeroize::Zeroizing::new(format!("Basic {}", STANDARD.encode(joined.as_bytes())));
    let mut value = HeaderValue::from_str(&value)
        .map_err(|_| Error::UnusableKey("the client secret has characters that are not allowed in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jsonwebtoken::{DecodingKey, Validation, decode};
    use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
    use serde_json::Value;

    use super::*;
    use crate::client::random::CountingRandomness;

    fn client(credential: ClientCredential, method: ClientAuthMethod) -> OAuthClientIdentity {
        OAuthClientIdentity { id: String::from("my client"), credential, method }
    }

    fn authenticate(client: &OAuthClientIdentity, now: SystemTime) -> ClientAuthenticationParams {
        client.authenticate("https://auth.example.com", now, &CountingRandomness::default()).unwrap()
    }

    #[test]
    fn the_parts_of_a_basic_header_are_encoded() {
        let client = client(ClientCredential::Secret(Secret::new("a:b/c%")), ClientAuthMethod::ClientSecretBasic);
        let shown = authenticate(&client, SystemTime::UNIX_EPOCH);
        let header = shown.header.unwrap();
        let decoded = STANDARD.decode(header.to_str().unwrap().strip_prefix("Basic ").unwrap()).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), "my+client:a%3Ab%2Fc%25");
        assert!(header.is_sensitive() && shown.parameters.is_empty());
    }

    #[test]
    fn a_secret_is_posted_only_where_a_header_is_not_taken() {
        let secret = ClientCredential::Secret(Secret::new("s"));
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(ClientAuthMethod::choose(&secret, None), ClientAuthMethod::ClientSecretBasic);
        assert_eq!(
            ClientAuthMethod::choose(&secret, Some(&list(&["client_secret_post"]))),
            ClientAuthMethod::ClientSecretPost
        );
        let both = list(&["client_secret_post", "client_secret_basic"]);
        assert_eq!(ClientAuthMethod::choose(&secret, Some(&both)), ClientAuthMethod::ClientSecretBasic);
        assert_eq!(ClientAuthMethod::choose(&ClientCredential::None, Some(&both)), ClientAuthMethod::None);
    }

    #[test]
    fn an_assertion_is_for_the_issuer_and_soon_over() {
        let key = p256::SecretKey::from_slice(&[7; 32]).unwrap();
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap();
        let public = key.public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let key = ClientKey::from_pem(&Secret::new(pem.as_str()), "ES256").unwrap();
        let now = SystemTime::now();
        let shown = authenticate(&client(ClientCredential::Key(key), ClientAuthMethod::PrivateKeyJwt), now);
        let assertion = shown.parameters.iter().find(|(name, _)| *name == "client_assertion").unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_audience(&["https://auth.example.com"]);
        let key = DecodingKey::from_ec_pem(public.as_bytes()).unwrap();
        let claims = decode::<Value>(assertion.1.expose(), &key, &validation).unwrap().claims;
        assert_eq!((claims["iss"].as_str(), claims["sub"].as_str()), (Some("my client"), Some("my client")));
        assert_eq!(claims["exp"], seconds(now + Duration::from_secs(60)));
        assert!(shown.parameters.iter().all(|(name, _)| *name != "client_id"));
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        for (pem, algorithm) in [("s3cr3t", "ES256"), ("s3cr3t", "RS256"), ("s3cr3t", "HS256"), ("s3cr3t", "none")] {
            let error = ClientKey::from_pem(&Secret::new(pem), algorithm).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{algorithm}");
        }
    }
}
