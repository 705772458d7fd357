//! No token appears in `Debug` output, logs, responses or forwarded requests.

use std::convert::Infallible;
use std::fmt::{Debug, Write as _};
use std::io;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use steadfast_auth::resource_server::{
    AccessToken, BearerLayer, HttpClient, HttpClientBody, HttpClientError, HttpClientFuture, IntrospectionVerifier,
    JwtVerifier, KeySet, Principal, RemoteKeySet, ResourceMetadata, TokenRejection, TokenVerifier, verify_with,
};
use tower::{Layer, ServiceExt, service_fn};
use tracing_subscriber::fmt::MakeWriter;

/// Part of every token, so that a leak of any token is found.
const SECRET: &str = "XsecretX";
/// The same in base64, at its three possible offsets in a group of three bytes.
const ENCODED: [&str; 4] = [SECRET, "WHNlY3JldF", "hzZWNyZXR", "c2VjcmV0"];

/// All log output.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl LogBuffer {
    fn debug(&self, value: &impl Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}\n{value:#?}\n");
        self.0.lock().unwrap().extend_from_slice(text.as_bytes());
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A faulty authorization server that repeats the request in its response.
struct Echo(LogBuffer);

impl HttpClient for Echo {
    fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        self.0.debug(&request);
        Box::pin(async move {
            let response =
                Response::builder().status(500).body(request.into_body()).map_err(|_| HttpClientError::new("no"));
            self.0.debug(&response);
            response
        })
    }
}

fn verifiers(heard: &LogBuffer) -> Vec<Arc<dyn TokenVerifier>> {
    let keys = KeySet::from_json(br#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"AA","y":"AA"}]}"#).unwrap();
    let jwt = JwtVerifier::new("https://auth.example.com", "https://mcp.example.com", keys);
    let fetched = RemoteKeySet::new(Echo(heard.clone()), "https://auth.example.com/jwks").unwrap();
    heard.debug(&fetched);
    let fetching = JwtVerifier::new("https://auth.example.com", "https://mcp.example.com", fetched);
    let introspection = IntrospectionVerifier::new(
        Echo(heard.clone()),
        "https://auth.example.com/introspect",
        "https://mcp.example.com",
    )
    .unwrap()
    .credentials("mcp", SECRET)
    .bearer(&AccessToken::parse(SECRET).unwrap());
    heard.debug(&jwt);
    heard.debug(&fetching);
    heard.debug(&introspection);
    let listener = heard.clone();
    let open = verify_with(move |token: AccessToken| {
        listener.debug(&token);
        std::future::ready(Ok(Principal::new("alice")))
    });
    let closed = verify_with(async |_: AccessToken| Err(TokenRejection::Invalid("unknown token")));
    vec![Arc::new(jwt), Arc::new(fetching), Arc::new(introspection), Arc::new(open), Arc::new(closed)]
}

fn requests() -> Vec<http::request::Builder> {
    use base64::Engine as _;

    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let header = encode(r#"{"alg":"ES256","kid":"k"}"#);
    let strange = encode(&format!(r#"{{"alg":"{SECRET}","kid":"{SECRET}"}}"#));
    let claims = encode(&format!(r#"{{"sub":"{SECRET}","jti":"{SECRET}"}}"#));
    let tokens = [
        SECRET.to_owned(),
        format!("{header}.{claims}.{SECRET}"),
        format!("{strange}.{claims}.{SECRET}"),
        format!("{SECRET}.{SECRET}.{SECRET}"),
        format!("{SECRET} {SECRET}"),
        format!("\"{SECRET}"),
    ];
    let request = |token: &str| Request::post("/mcp").header("authorization", format!("Bearer {token}"));
    let mut requests: Vec<_> = tokens.iter().map(|token| request(token)).collect();
    requests.push(request(SECRET).header("authorization", format!("Bearer {SECRET}")));
    requests.push(Request::post("/mcp").header("authorization", format!("Basic {SECRET}")));
    requests
}

#[tokio::test(flavor = "current_thread")]
async fn no_token_is_printed_logged_answered_or_passed_on() {
    let heard = LogBuffer::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(heard.clone()).finish();
    let listening = tracing::Dispatch::new(subscriber);
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::dispatcher::set_default(&listening);

    let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"]).unwrap();
    for verifier in verifiers(&heard) {
        let layer = BearerLayer::new(verifier, &metadata).scopes("read".parse().unwrap()).implied_by(|_, _| true);
        let open = BearerLayer::new(verify_with(async |_: AccessToken| Ok(Principal::new("alice"))), &metadata);
        for layer in [layer, open] {
            heard.debug(&layer);
            for request in requests() {
                let listener = heard.clone();
                let server = layer.layer(service_fn(move |request: Request<String>| {
                    listener.debug(&request);
                    std::future::ready(Ok::<_, Infallible>(Response::new(String::from("reached"))))
                }));
                let response = server.oneshot(request.body(String::new()).unwrap()).await.unwrap();
                heard.debug(&response);
            }
        }
    }

    let heard = heard.text();
    for expected in ["token rejected", "token introspection failed", "failed to fetch keys", "reached", "redacted"] {
        assert!(heard.contains(expected), "nothing was heard of {expected:?}");
    }
    for secret in ENCODED {
        assert!(!heard.contains(secret), "{secret} in {heard}");
    }
}

/// An HTTP client whose requests all fail.
struct FailingHttpClient;

impl HttpClient for FailingHttpClient {
    fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        Box::pin(async { Err(HttpClientError::new("connection refused")) })
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_people_hide_in_the_url_of_an_endpoint_is_not_printed_or_logged() {
    let heard = LogBuffer::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(heard.clone()).finish();
    // With a single scoped subscriber, tracing could cache a call site as disabled if another test's thread reaches it first.
    let listening = tracing::Dispatch::new(subscriber);
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::dispatcher::set_default(&listening);

    let url = format!("https://me:{SECRET}@auth.example.com/keys?key={SECRET}");
    let keys = RemoteKeySet::new(FailingHttpClient, &url).unwrap();
    heard.debug(&keys);
    let introspection = IntrospectionVerifier::new(FailingHttpClient, &url, "https://mcp.example.com").unwrap();
    heard.debug(&introspection);
    let jwt = JwtVerifier::new("https://auth.example.com", "https://mcp.example.com", keys);
    let token = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.e30.AA";
    for verifier in [Arc::new(jwt) as Arc<dyn TokenVerifier>, Arc::new(introspection)] {
        assert!(verifier.verify(&AccessToken::parse(token).unwrap()).await.is_err());
    }

    let heard = heard.text();
    for expected in ["token introspection failed", "failed to fetch keys", "auth.example.com/keys"] {
        assert!(heard.contains(expected), "nothing was heard of {expected:?} in {heard}");
    }
    assert!(!heard.contains(SECRET), "{heard}");
}
