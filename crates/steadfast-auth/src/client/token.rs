//! Tokens, and the requests to a token endpoint.

use std::fmt;
use std::time::SystemTime;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::challenge::AuthScheme;
use super::credentials::{ClientAuthMethod, OAuthClientIdentity};
use super::dpop::{DpopProofKey, DpopProofParameters, NONCE, PROOF, USE_NONCE, seconds};
use super::error::OAuthErrorResponse;
use super::random::RandomSource;
use super::secret::{reveal, reveal_option};
use super::url_policy::redact_url;
use super::{Error, Secret};
use crate::{HttpClientBody, Scopes};

pub(super) const WHAT: &str = "a token";

/// An access token that expires within this many seconds, or within a tenth of its lifetime if that is shorter, counts as
/// expired.
const LEEWAY: u64 = 30;

/// The tokens for one resource from one issuer, with what is needed to refresh them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    pub(super) method: ClientAuthMethod,
    #[serde(serialize_with = "reveal")]
    pub(super) access_token: Secret,
    pub(super) scheme: AuthScheme,
    #[serde(default, serialize_with = "reveal_option", skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<Secret>,
    pub(super) issued_at: u64,
    #[serde(default)]
    pub(super) expires_at: Option<u64>,
    #[serde(default, with = "scopes_text")]
    pub(super) requested: Option<Scopes>,
    #[serde(default, with = "scopes_text")]
    pub(super) granted: Option<Scopes>,
    #[serde(default, serialize_with = "reveal_option", skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Secret>,
}

impl Tokens {
    /// The issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The resource that the tokens are for, exactly as in the protected resource metadata.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The granted scopes, or the requested scopes if the authorization server did not say which scopes it granted.
    pub fn scopes(&self) -> Option<&Scopes> {
        self.granted.as_ref().or(self.requested.as_ref())
    }

    /// Whether the access token has expired, or will expire before a request with it could arrive.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|end| {
            let leeway = LEEWAY.min(end.saturating_sub(self.issued_at) / 10);
            seconds(now).saturating_add(leeway) >= end
        })
    }

    /// Whether the tokens were requested with all scopes that `other` was requested with, and with more.
    pub(super) fn requests_more_than(&self, other: &Self) -> bool {
        let all = |these: &Self, those: &Self| {
            let those = those.requested.iter().flat_map(Scopes::iter);
            those.into_iter().all(|scope| these.requested.as_ref().is_some_and(|these| these.contains(scope)))
        };
        all(self, other) && !all(other, self)
    }

    /// Whether the tokens can be refreshed, because they include a refresh token.
    pub fn is_refreshable(&self) -> bool {
        self.refresh_token.is_some()
    }
}

/// The debug output contains no secrets, and shows URLs without their queries, which may contain API keys.
impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tokens")
            .field("issuer", &redact_url(&self.issuer))
            .field("resource", &redact_url(&self.resource))
            .field("client_id", &self.client_id)
            .field("scheme", &self.scheme)
            .field("scopes", &self.scopes())
            .field("expires_at", &self.expires_at)
            .field("is_refreshable", &self.is_refreshable())
            .finish_non_exhaustive()
    }
}

/// Serializes scopes as text, so that the entries of a token store are readable.
pub(super) mod scopes_text {
    use super::{Deserialize, Deserializer, Scopes, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde requires this signature")]
    pub(in crate::client) fn serialize<S: Serializer>(
        scopes: &Option<Scopes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        scopes.as_ref().map(ToString::to_string).serialize(serializer)
    }

    pub(in crate::client) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Scopes>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map(|text| Scopes::lenient(text.split(' '))))
    }
}

/// A request to a token endpoint. A token request can be sent more than once, each time with a new DPoP proof and a new client
/// assertion.
pub(super) struct TokenRequest {
    pub(super) endpoint: Url,
    pub(super) issuer: String,
    pub(super) client: OAuthClientIdentity,
    pub(super) parameters: Vec<(&'static str, Secret)>,
    pub(super) key: Option<DpopProofKey>,
    pub(super) nonce: Option<String>,
    /// The secrets in the last token request, which error messages must not repeat.
    pub(super) sent: Vec<Secret>,
}

/// The response of a token endpoint.
pub(super) enum TokenResponse {
    Granted(GrantedTokens),
    /// The token request has to be repeated with the DPoP nonce of the authorization server.
    RetryWithNonce,
    Refused(OAuthErrorResponse),
}

/// The tokens in a successful response of a token endpoint.
#[derive(Deserialize)]
pub(super) struct GrantedTokens {
    pub(super) access_token: Secret,
    pub(super) token_type: String,
    #[serde(default, deserialize_with = "lifetime")]
    pub(super) expires_in: Option<u64>,
    pub(super) refresh_token: Option<Secret>,
    pub(super) scope: Option<String>,
    pub(super) issued_token_type: Option<String>,
}

impl TokenRequest {
    pub(super) fn request(
        &mut self,
        now: SystemTime,
        random: &dyn RandomSource,
    ) -> Result<Request<HttpClientBody>, Error> {
        let shown = self.client.authenticate(&self.issuer, now, random)?;
        let parameters = self.parameters.iter().chain(&shown.parameters);
        let mut sent: Vec<_> = parameters.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone()).collect();
        sent.extend(self.client.secret().map(Secret::new));
        let mut form = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.parameters.iter().chain(&shown.parameters) {
            form.append_pair(name, value.expose());
        }
        let mut request = Request::post(self.endpoint.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(HttpClientBody::from(form.finish()))
            .map_err(|_| Error::UnsafeUrl(super::url_policy::redact_url(self.endpoint.as_str())))?;
        if let Some(header) = shown.header {
            sent.extend(header.to_str().ok().and_then(|header| header.split(' ').next_back()).map(Secret::new));
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        if let Some(key) = &self.key {
            let proof =
                DpopProofParameters { method: "POST", url: &self.endpoint, token: None, nonce: self.nonce.as_deref() };
            let proof = key.prove(&proof, now, random)?;
            let mut value = HeaderValue::from_str(&proof)
                .map_err(|_| Error::UnusableKey("a DPoP proof has characters that are not allowed in a header"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(PROOF, value);
            sent.push(Secret::new(proof));
        }
        self.sent = sent;
        Ok(request)
    }

    pub(super) fn read(&mut self, response: &Response<HttpClientBody>) -> Result<TokenResponse, Error> {
        #[derive(Deserialize)]
        struct ErrorBody {
            error: String,
            error_description: Option<String>,
        }
        let (status, body) = (response.status(), response.body().as_bytes());
        let refused = serde_json::from_slice::<ErrorBody>(body).ok().filter(|refused| !refused.error.is_empty());
        // Some servers send errors with status 200.
        if status == StatusCode::OK && refused.is_none() {
            let granted = serde_json::from_slice::<GrantedTokens>(body);
            let granted = granted.map_err(|_| invalid("is malformed"))?;
            let token = granted.access_token.expose();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(invalid("has a token with characters that are not allowed in a header"));
            }
            return Ok(TokenResponse::Granted(granted));
        }
        // A busy server has not refused: codes and refresh tokens are still valid.
        let is_answer = status.is_client_error() || status == StatusCode::OK;
        let Some(refused) = refused.filter(|refused| is_answer && !is_busy(status, &refused.error)) else {
            return Err(Error::Unavailable { what: WHAT, status: status.as_u16() });
        };
        if refused.error == USE_NONCE && self.nonce.is_none() && self.key.is_some() {
            self.nonce = nonce(response.headers());
            if self.nonce.is_some() {
                return Ok(TokenResponse::RetryWithNonce);
            }
        }
        let sent: Vec<&str> = self.sent.iter().map(Secret::expose).collect();
        Ok(TokenResponse::Refused(OAuthErrorResponse::new(&refused.error, refused.error_description.as_deref(), &sent)))
    }
}

impl GrantedTokens {
    /// The HTTP authorization scheme that the granted access token is sent with.
    pub(super) fn scheme(&self, key: Option<&DpopProofKey>, must_be_bound: bool) -> Result<AuthScheme, Error> {
        match (AuthScheme::parse(&self.token_type), key) {
            (Some(AuthScheme::Bearer), _) if must_be_bound => {
                Err(invalid("has a Bearer token, but a token bound to the DPoP key of the client is required"))
            }
            (Some(AuthScheme::Dpop), None) => Err(invalid("has a DPoP token, but no DPoP key was sent")),
            (Some(scheme), _) => Ok(scheme),
            (None, _) => Err(invalid("has a token of an unknown type")),
        }
    }
}

/// Whether the response of a token endpoint means that the authorization server is busy.
fn is_busy(status: StatusCode, code: &str) -> bool {
    let waits = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    waits || matches!(code, "temporarily_unavailable" | "server_error" | "slow_down")
}

/// Whether the parameter of a token request with this name is secret. Parameters that are not secret may appear in error
/// messages.
fn is_secret(name: &str) -> bool {
    let given = matches!(name, "code" | "code_verifier" | "refresh_token" | "token" | "assertion" | "subject_token");
    given || matches!(name, "client_assertion" | "client_secret")
}

/// The nonce that the server requires in the next DPoP proofs.
pub(super) fn nonce(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(NONCE)?.to_str().ok()?;
    (!value.is_empty() && value.len() <= 1024).then(|| value.to_owned())
}

fn invalid(problem: &'static str) -> Error {
    Error::Invalid { what: "token response", problem }
}

/// Deserializes the lifetime of a token in seconds, as a number, or as a string, which some servers send.
fn lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Number(u64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Seconds::deserialize(deserializer)? {
        Seconds::Number(seconds) => Some(seconds),
        Seconds::Text(text) => text.parse().ok(),
        Seconds::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::credentials::ClientCredential;
    use crate::client::random::CountingRandomness;

    fn call(key: Option<DpopProofKey>) -> TokenRequest {
        TokenRequest {
            endpoint: Url::parse("https://auth.example.com/token").unwrap(),
            issuer: String::from("https://auth.example.com"),
            client: OAuthClientIdentity {
                id: String::from("me"),
                credential: ClientCredential::None,
                method: ClientAuthMethod::None,
            },
            parameters: vec![("grant_type", Secret::new("refresh_token")), ("refresh_token", Secret::new("s3cr3t"))],
            key,
            nonce: None,
            sent: vec![Secret::new("s3cr3t")],
        }
    }

    fn response(status: u16, body: &str) -> Response<HttpClientBody> {
        Response::builder().status(status).header(NONCE, "n1").body(HttpClientBody::from(body.to_owned())).unwrap()
    }

    #[test]
    fn a_public_client_names_itself_in_the_form() {
        let request = call(None).request(SystemTime::UNIX_EPOCH, &CountingRandomness::default()).unwrap();
        assert_eq!(request.body().as_bytes(), b"grant_type=refresh_token&refresh_token=s3cr3t&client_id=me");
        assert!(!request.headers().contains_key(PROOF) && !request.headers().contains_key(AUTHORIZATION));
        assert!(!format!("{request:?}").contains("s3cr3t"));
    }

    #[test]
    fn a_nonce_is_taken_up_once() {
        let random = CountingRandomness::default();
        let mut call = call(Some(DpopProofKey::draw(&random).unwrap()));
        let first = call.request(SystemTime::UNIX_EPOCH, &random).unwrap().headers()[PROOF].clone();
        let refused = response(400, r#"{"error":"use_dpop_nonce"}"#);
        assert!(matches!(call.read(&refused), Ok(TokenResponse::RetryWithNonce)));
        let second = call.request(SystemTime::UNIX_EPOCH, &random).unwrap().headers()[PROOF].clone();
        assert_ne!(first, second);
        assert!(matches!(call.read(&refused), Ok(TokenResponse::Refused(_))), "an endless demand is a refusal");
    }

    #[test]
    fn a_refusal_that_repeats_the_token_is_not_repeated() {
        let read = call(None).read(&response(400, r#"{"error":"invalid_grant","error_description":"bad s3cr3t"}"#));
        let Ok(TokenResponse::Refused(refusal)) = read else { panic!("not refused") };
        assert_eq!(refusal.to_string(), "invalid_grant");
    }

    #[test]
    fn a_refusal_that_repeats_what_the_client_signed_or_a_part_is_not_repeated() {
        use p256::pkcs8::{EncodePrivateKey as _, LineEnding};

        let pem = p256::SecretKey::from_slice(&[7; 32]).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
        let key = super::super::ClientKey::from_pem(&Secret::new(pem.as_str()), "ES256").unwrap();
        let mut call = call(Some(DpopProofKey::draw(&CountingRandomness::default()).unwrap()));
        call.client = OAuthClientIdentity {
            id: String::from("me"),
            credential: ClientCredential::Key(key),
            method: ClientAuthMethod::PrivateKeyJwt,
        };
        let request = call.request(SystemTime::UNIX_EPOCH, &CountingRandomness::default()).unwrap();
        let form: Vec<_> = form_urlencoded::parse(request.body().as_bytes()).into_owned().collect();
        let assertion = &form.iter().find(|(name, _)| name == "client_assertion").unwrap().1;
        let proof = request.headers()[PROOF].to_str().unwrap();
        for repeated in [assertion.as_str(), proof, &assertion[assertion.len() - 30..]] {
            let body = format!(r#"{{"error":"invalid_client","error_description":"bad: {repeated}"}}"#);
            let Ok(TokenResponse::Refused(refusal)) = call.read(&response(400, &body)) else { panic!("not refused") };
            assert_eq!(refusal.to_string(), "invalid_client", "{repeated}");
        }
        assert!(request.headers()[PROOF].is_sensitive());
    }

    #[test]
    fn an_error_is_one_though_the_status_says_otherwise() {
        let read = call(None).read(&response(200, r#"{"error":"bad_refresh_token"}"#));
        assert!(matches!(read, Ok(TokenResponse::Refused(refusal)) if refusal.code == "bad_refresh_token"));
    }

    #[test]
    fn a_token_that_fits_in_no_header_is_refused_when_it_comes() {
        for token in ["a b", "a\\r\\nX-Evil: 1", "\u{e9}", ""] {
            let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer"}}"#);
            assert!(matches!(call(None).read(&response(200, &body)), Err(Error::Invalid { .. })), "{token:?}");
        }
    }

    #[test]
    fn a_server_that_is_not_well_says_neither_yes_nor_no() {
        for (status, body) in [(503, r#"{"error":"x"}"#), (400, "<html>"), (302, "")] {
            assert!(matches!(call(None).read(&response(status, body)), Err(Error::Unavailable { .. })), "{status}");
        }
        assert!(matches!(call(None).read(&response(200, "{}")), Err(Error::Invalid { .. })));
    }

    #[test]
    fn lifetimes_are_numbers_or_their_text() {
        for (written, expected) in [("60", Some(60)), ("\"60\"", Some(60)), ("null", None), ("-1", None), ("[]", None)]
        {
            let body = format!(r#"{{"access_token":"a","token_type":"bearer","expires_in":{written}}}"#);
            let Ok(TokenResponse::Granted(granted)) = call(None).read(&response(200, &body)) else {
                panic!("{written}")
            };
            assert_eq!(granted.expires_in, expected, "{written}");
        }
    }

    #[test]
    fn a_token_of_the_wrong_kind_is_refused() {
        let granted = |token_type: &str| GrantedTokens {
            access_token: Secret::new("a"),
            token_type: token_type.to_owned(),
            expires_in: None,
            refresh_token: None,
            scope: None,
            issued_token_type: None,
        };
        let key = DpopProofKey::draw(&CountingRandomness::default()).unwrap();
        assert_eq!(granted("bearer").scheme(None, false), Ok(AuthScheme::Bearer));
        assert_eq!(granted("dpop").scheme(Some(&key), true), Ok(AuthScheme::Dpop));
        assert_eq!(granted("Bearer").scheme(Some(&key), false), Ok(AuthScheme::Bearer));
        assert!(granted("Bearer").scheme(Some(&key), true).is_err());
        assert!(granted("DPoP").scheme(None, false).is_err());
        assert!(granted("N_A").scheme(None, false).is_err());
    }

    #[test]
    fn tokens_survive_the_store_and_are_over_a_little_early() {
        let tokens = Tokens {
            issuer: String::from("https://auth.example.com"),
            resource: String::from("https://mcp.example.com"),
            token_endpoint: String::from("https://auth.example.com/token"),
            revocation_endpoint: None,
            client_id: String::from("me"),
            method: ClientAuthMethod::None,
            access_token: Secret::new("s3cr3t"),
            scheme: AuthScheme::Dpop,
            refresh_token: Some(Secret::new("s3cr3t2")),
            issued_at: 0,
            expires_at: Some(1000),
            requested: Some("a b".parse().unwrap()),
            granted: None,
            key: Some(Secret::new("s3cr3t3")),
        };
        let written = serde_json::to_string(&tokens).unwrap();
        assert_eq!(serde_json::from_str::<Tokens>(&written).unwrap(), tokens);
        assert!(!format!("{tokens:?}").contains("s3cr3t"));
        let at = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        assert!(!tokens.is_expired(at(969)) && tokens.is_expired(at(970)));
        let brief = Tokens { expires_at: Some(10), ..tokens };
        assert!(!brief.is_expired(at(8)) && brief.is_expired(at(9)));
    }
}
