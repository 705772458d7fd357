//! The layers around the HTTP service of `steadfast`, over real HTTP and with real tokens: applying them is enough for handlers
//! to get the principal.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use p256::elliptic_curve::rand_core::OsRng;
use p256::pkcs8::EncodePrivateKey;
use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::transport::http::{HttpServerOptions, HttpService};
use steadfast_auth::resource_server::{BearerLayer, JwtVerifier, KeySet, ResourceMetadata};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::Layer;

const ISSUER: &str = "https://auth.example.com";
const RESOURCE: &str = "https://mcp.example.com/mcp";

/// Signs tokens, as an authorization server does.
struct Issuer {
    key: EncodingKey,
    public: Value,
}

impl Issuer {
    fn new() -> Self {
        let secret = p256::SecretKey::random(&mut OsRng);
        let key = EncodingKey::from_ec_der(secret.to_pkcs8_der().unwrap().as_bytes());
        let mut public: Value = serde_json::from_str(&secret.public_key().to_jwk_string()).unwrap();
        public["kid"] = json!("k");
        Self { key, public }
    }

    fn token(&self, subject: &str, scope: &str) -> String {
        let soon = SystemTime::now() + Duration::from_secs(600);
        let expires = soon.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": subject, "exp": expires, "scope": scope, "team": "XclaimX",
        });
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some("k".to_owned());
        jsonwebtoken::encode(&header, &claims, &self.key).unwrap()
    }

    /// Serves a server with the layers at an address.
    async fn serve(&self) -> SocketAddr {
        let keys = KeySet::from_json(json!({"keys": [self.public]}).to_string().as_bytes()).unwrap();
        let metadata = ResourceMetadata::new(RESOURCE, [ISSUER]).unwrap();
        let server = Server::builder("test", "1.0.0").tools([whoami()]).build();
        let service = HttpService::new(server, HttpServerOptions::new());
        let service = BearerLayer::new(JwtVerifier::new(ISSUER, RESOURCE, keys), &metadata).layer(service);
        let service = metadata.layer().layer(service);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // The task ends with the runtime of its test.
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                tokio::spawn(async move {
                    // Errors of a connection that the client closed do not matter.
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        address
    }
}

/// Returns the principal, and logs its `Debug`.
fn whoami() -> ServerTool {
    ServerTool::new("whoami").handler(|ctx: Context| async move {
        let Some(principal) = ctx.principal() else { return "nobody".to_owned() };
        let (name, scopes) = (principal.name(), principal.scopes());
        let team = principal.claim("team").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        format!("{name} with {scopes} of {team}, shown as {principal:?} in {ctx:?}")
    })
}

/// A response.
struct HttpResponse {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl HttpResponse {
    fn text(&self) -> String {
        let message: Value = serde_json::from_str(&self.body).unwrap();
        message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

async fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.extend(["content-length: ", &body.len().to_string(), "\r\n\r\n", body]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("no answer").unwrap();
    heard().lock().unwrap().extend_from_slice(answer.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok()).unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap()));
    HttpResponse { status, headers: headers.collect(), body: body.to_owned() }
}

async fn post(address: SocketAddr, token: &str, more: &[(&str, &str)], message: &Value) -> HttpResponse {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", &bearer),
    ];
    headers.extend_from_slice(more);
    send(address, "POST", "/mcp", &headers, &message.to_string()).await
}

/// A call of 2026-07-28.
async fn ask(address: SocketAddr, token: &str) -> HttpResponse {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "whoami")];
    post(address, token, &headers, &message).await
}

/// Opens a session of 2025-11-25.
async fn open(address: SocketAddr, token: &str) -> String {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let answer = post(address, token, &[], &message).await;
    assert_eq!(answer.status, 200);
    answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn ask_in(address: SocketAddr, session: &str, token: &str) -> HttpResponse {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "whoami"}});
    post(address, token, &[("mcp-session-id", session)], &message).await
}

#[tokio::test]
async fn a_handler_knows_whose_token_it_was() {
    let issuer = Issuer::new();
    let address = issuer.serve().await;
    let answer = ask(address, &issuer.token("alice", "read write")).await;
    assert!(answer.text().starts_with("alice with read write of xclaimx,"), "{}", answer.body);
}

#[tokio::test]
async fn a_session_is_nothing_to_another_principals_token() {
    let issuer = Issuer::new();
    let address = issuer.serve().await;
    let session = open(address, &issuer.token("alice", "read")).await;
    let mallory = issuer.token("mallory", "read");
    assert_eq!(ask_in(address, &session, &mallory).await.status, 404);
    let bearer = format!("Bearer {mallory}");
    let headers = [("authorization", &*bearer), ("mcp-session-id", &*session)];
    assert_eq!(send(address, "DELETE", "/mcp", &headers, "").await.status, 404);
    let answer = ask_in(address, &session, &issuer.token("alice", "read")).await;
    assert!(answer.text().starts_with("alice with read of"), "{}", answer.body);
}

#[tokio::test]
async fn in_a_session_each_request_has_the_scopes_of_its_own_token() {
    let issuer = Issuer::new();
    let address = issuer.serve().await;
    let session = open(address, &issuer.token("alice", "read")).await;
    for scope in ["read write", "read"] {
        let answer = ask_in(address, &session, &issuer.token("alice", scope)).await;
        assert!(answer.text().starts_with(&format!("alice with {scope} of")), "{}", answer.body);
    }
}

#[tokio::test]
async fn who_has_no_token_is_told_where_to_get_one() {
    let issuer = Issuer::new();
    let address = issuer.serve().await;
    let refused = ask(address, "unknown").await;
    assert_eq!(refused.status, 401);
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("https://mcp.example.com/.well-known/oauth-protected-resource/mcp"), "{challenge}");
    let document = send(address, "GET", "/.well-known/oauth-protected-resource/mcp", &[], "").await;
    let document: Value = serde_json::from_str(&document.body).unwrap();
    assert_eq!((&document["resource"], &document["authorization_servers"][0]), (&json!(RESOURCE), &json!(ISSUER)));
}

#[tokio::test]
async fn nothing_of_a_token_is_printed_logged_or_answered() {
    let heard = heard();
    let issuer = Issuer::new();
    let address = issuer.serve().await;
    let tokens = [issuer.token("alice", "read"), issuer.token("mallory", "read")];
    let [alice, mallory] = &tokens;
    ask(address, alice).await;
    let session = open(address, alice).await;
    ask_in(address, &session, alice).await;
    ask_in(address, &session, mallory).await;
    ask(address, &format!("{alice}x")).await;
    let heard = String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
    assert!(heard.contains("token rejected") && heard.contains("shown as Principal"), "nothing was heard");
    assert!(!heard.contains("XclaimX"), "the value of a claim was shown");
    // The headers of two tokens are equal and not secret; claims and signature are.
    for part in tokens.iter().flat_map(|token| token.split('.').skip(1)) {
        assert!(!heard.contains(part), "{part} in {heard}");
    }
}

/// Everything that any thread logged, and all responses.
fn heard() -> Arc<Mutex<Vec<u8>>> {
    static HEARD: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    let heard = HEARD.get_or_init(|| {
        let heard = Arc::<Mutex<Vec<u8>>>::default();
        let writer = LogBuffer(heard.clone());
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).init();
        heard
    });
    heard.clone()
}

#[derive(Clone)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
