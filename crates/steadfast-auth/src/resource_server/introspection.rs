//! Verification of opaque tokens by introspection: the authorization server is asked about each token (RFC 7662).

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use serde_json::{Map, Value};

use super::claims::{ClaimRequirements, TokenVerifierClock};
use super::{
    AccessToken, HttpClient, HttpClientBody, InsecureEndpoint, Principal, TokenRejection, TokenVerifier,
    TokenVerifierFuture,
};
use crate::http_client::endpoint;
use crate::redact::redact_url;

/// Limit of the length of a token introspection response, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Timeout of a token introspection request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Verifies tokens by asking the authorization server.
///
/// A token is valid if the authorization server reports it as active and issued for this resource. Introspection responses are
/// not cached, so a revoked token is rejected at once.
pub struct IntrospectionVerifier {
    client: Box<dyn HttpClient>,
    uri: Uri,
    authorization: Option<HeaderValue>,
    expectations: ClaimRequirements,
}

impl IntrospectionVerifier {
    /// Creates a verifier for the access tokens of this resource, which asks the introspection endpoint at this URL.
    pub fn new(client: impl HttpClient, url: &str, resource: impl Into<String>) -> Result<Self, InsecureEndpoint> {
        let expectations = ClaimRequirements {
            audiences: vec![resource.into()],
            audience_may_be_absent: false,
            issuer: None,
            expiry_may_be_absent: true,
            leeway: Duration::ZERO,
            clock: TokenVerifierClock::default(),
        };
        Ok(Self { client: Box::new(client), uri: endpoint(url)?, authorization: None, expectations })
    }

    /// Authenticates the introspection requests with the client id and secret that this server has at the authorization server.
    pub fn credentials(mut self, id: &str, secret: &str) -> Self {
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
        self.authorization = sensitive(&format!("Basic {pair}"));
        self
    }

    /// Authenticates the introspection requests with a token of this server, not with one that a client sent.
    pub fn bearer(mut self, token: &AccessToken) -> Self {
        self.authorization = sensitive(&format!("Bearer {}", token.expose()));
        self
    }

    /// Requires this issuer in token introspection responses.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.expectations.issuer = Some(issuer.into());
        self
    }

    /// Accepts introspection responses without an audience, for an authorization server that reports a token as active only to
    /// the resource that it was issued for. A token with another audience is still rejected.
    pub fn server_checks_audience(mut self) -> Self {
        self.expectations.audience_may_be_absent = true;
        self
    }

    /// Adds another identifier of this resource that tokens may be issued for.
    pub fn allow_audience(mut self, audience: impl Into<String>) -> Self {
        self.expectations.audiences.push(audience.into());
        self
    }

    /// Sets the clock that the expiry of tokens is checked with, for tests and for machines without a clock of their own.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.expectations.clock = TokenVerifierClock::new(now);
        self
    }

    async fn check(&self, token: &AccessToken) -> Result<Principal, TokenRejection> {
        let asked = tokio::time::timeout(REQUEST_TIMEOUT, self.ask(token)).await;
        let claims = asked.unwrap_or_else(|_| Err("request timed out".to_owned())).map_err(|reason| {
            tracing::warn!(uri = redact_url(&self.uri.to_string()), reason, "token introspection failed");
            TokenRejection::Unavailable(
                "the token could not be checked: the introspection endpoint of the authorization server failed",
            )
        })?;
        match claims.get("active") {
            Some(Value::Bool(true)) => self.expectations.check(claims),
            _ => Err(TokenRejection::Invalid("the token is not active")),
        }
    }

    async fn ask(&self, token: &AccessToken) -> Result<Map<String, Value>, String> {
        let response = self.client.send(self.request(token), MAX_BYTES).await.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("the response status was {}", response.status()));
        }
        let body = response.body().as_bytes();
        if body.len() > MAX_BYTES {
            return Err("the introspection response is too long".to_owned());
        }
        serde_json::from_slice(body).map_err(|_| "the introspection response is not a JSON object".to_owned())
    }

    fn request(&self, token: &AccessToken) -> Request<HttpClientBody> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", "access_token");
        let mut request = Request::new(HttpClientBody::from(form.finish()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        request
    }
}

impl TokenVerifier for IntrospectionVerifier {
    fn verify<'a>(&'a self, token: &'a AccessToken) -> TokenVerifierFuture<'a> {
        Box::pin(self.check(token))
    }
}

impl fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IntrospectionVerifier")
            .field("uri", &redact_url(&self.uri.to_string()))
            .field("authorization", &self.authorization)
            .field("expectations", &self.expectations)
            .finish_non_exhaustive()
    }
}

/// A header value with a redacted `Debug`, which HTTP/2 does not add to its compression table.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;
    use serde_json::json;

    use super::*;
    use crate::resource_server::{HttpClientError, HttpClientFuture};

    const NOW: u64 = 1_800_000_000;

    /// An authorization server that gives one answer to everything, and what it was asked.
    struct Server {
        answer: Result<(u16, String), HttpClientError>,
        asked: Mutex<Vec<Request<HttpClientBody>>>,
    }

    impl HttpClient for Server {
        fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
            self.asked.lock().unwrap().push(request);
            let answer = self.answer.clone();
            Box::pin(async {
                answer.map(|(status, body)| Response::builder().status(status).body(body.into()).unwrap())
            })
        }
    }

    fn answering(status: u16, body: impl ToString) -> Arc<Server> {
        Arc::new(Server { answer: Ok((status, body.to_string())), asked: Mutex::default() })
    }

    fn introspection(server: &Arc<Server>) -> IntrospectionVerifier {
        let introspection = IntrospectionVerifier::new(
            server.clone(),
            "https://auth.example.com/introspect",
            "https://mcp.example.com",
        );
        introspection.unwrap().clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
    }

    async fn verified(introspection: &IntrospectionVerifier) -> Result<Principal, TokenRejection> {
        introspection.verify(&AccessToken::parse("a+b/c==").unwrap()).await
    }

    fn active(name: &str, value: Value) -> Value {
        let mut answer = json!({ "active": true, "aud": "https://mcp.example.com", "sub": "alice", "scope": "read" });
        answer[name] = value;
        answer
    }

    #[tokio::test]
    async fn an_active_token_for_this_resource_is_good() {
        let principal = verified(&introspection(&answering(200, active("exp", json!(NOW + 1))))).await.unwrap();
        assert_eq!(principal.subject(), Some("alice"));
        assert_eq!(principal.scopes().to_string(), "read");
    }

    #[tokio::test]
    async fn the_question_is_a_form_with_the_credentials_of_the_server() {
        let server = answering(200, active("exp", json!(NOW + 1)));
        verified(&introspection(&server).credentials("mcp server", "p:w")).await.unwrap();
        let asked = server.asked.lock().unwrap();
        assert_eq!(asked[0].method(), Method::POST);
        assert_eq!(asked[0].body().as_bytes(), b"token=a%2Bb%2Fc%3D%3D&token_type_hint=access_token");
        assert_eq!(asked[0].headers()[CONTENT_TYPE], "application/x-www-form-urlencoded");
        assert_eq!(asked[0].headers()[AUTHORIZATION], format!("Basic {}", STANDARD.encode("mcp+server:p%3Aw")));
    }

    #[tokio::test]
    async fn a_token_that_is_not_active_is_invalid() {
        for answer in
            [json!({ "active": false }), json!({}), active("active", json!("true")), active("active", json!(1))]
        {
            let found = verified(&introspection(&answering(200, &answer))).await;
            assert_eq!(found, Err(TokenRejection::Invalid("the token is not active")), "{answer}");
        }
    }

    #[tokio::test]
    async fn the_audience_is_checked_though_the_token_is_active() {
        let elsewhere = active("aud", json!("https://other.example"));
        let nowhere = active("aud", Value::Null);
        assert_eq!(verified(&introspection(&answering(200, &elsewhere))).await, Err(TokenRejection::WrongAudience));
        assert_eq!(verified(&introspection(&answering(200, &nowhere))).await, Err(TokenRejection::WrongAudience));
        let trusting = |answer| introspection(&answering(200, answer)).server_checks_audience();
        assert_eq!(verified(&trusting(&elsewhere)).await, Err(TokenRejection::WrongAudience));
        assert!(verified(&trusting(&nowhere)).await.is_ok());
    }

    #[tokio::test]
    async fn times_and_issuer_are_checked_when_they_are_there() {
        assert_eq!(
            verified(&introspection(&answering(200, active("exp", json!(NOW))))).await,
            Err(TokenRejection::Expired)
        );
        assert!(verified(&introspection(&answering(200, active("nbf", json!(NOW + 1))))).await.is_err());
        let strict = |answer| introspection(&answering(200, answer)).issuer("https://auth.example.com");
        assert!(verified(&strict(active("iss", json!("https://auth.example.com")))).await.is_ok());
        assert!(verified(&strict(active("iss", json!("https://other.example")))).await.is_err());
    }

    #[tokio::test]
    async fn tokens_are_rejected_while_introspection_is_unavailable() {
        let unavailable = Err(TokenRejection::Unavailable(
            "the token could not be checked: the introspection endpoint of the authorization server failed",
        ));
        for (status, body) in
            [(401, "{\"active\":true}"), (500, ""), (302, ""), (200, "<html>"), (200, "[]"), (200, "")]
        {
            assert_eq!(verified(&introspection(&answering(status, body))).await, unavailable, "{status} {body}");
        }
        let down = Arc::new(Server { answer: Err(HttpClientError::new("refused")), asked: Mutex::default() });
        assert_eq!(verified(&introspection(&down)).await, unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_given_up() {
        struct Silent;

        impl HttpClient for Silent {
            fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
                Box::pin(std::future::pending())
            }
        }

        let introspection = IntrospectionVerifier::new(Silent, "https://auth.example.com/introspect", "x").unwrap();
        assert!(matches!(verified(&introspection).await, Err(TokenRejection::Unavailable(_))));
    }
}
