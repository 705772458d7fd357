//! TLS: certificates, and which HTTP version is negotiated.

use std::sync::atomic::AtomicUsize;

use ::http::Version;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::transport::http::HttpTarget;
use steadfast::transport::http::{HttpServerOptions, HttpService};
use steadfast::{ErrorKind, Outcome};
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tower_service::Service as _;

use crate::http::client::*;

/// A certificate authority.
pub(in crate::http::client) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(in crate::http::client) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(in crate::http::client) fn pem(&self) -> String {
        self.0.pem()
    }

    /// The server of that name, and which protocols it offers.
    fn vouch(&self, name: &str, protocols: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server with TLS.
pub(in crate::http::client) struct Secure {
    pub(in crate::http::client) address: SocketAddr,
    /// Each request: the number of its connection, and what was spoken on it.
    seen: Arc<Mutex<Vec<(usize, Version)>>>,
    pub(in crate::http::client) connections: Arc<AtomicUsize>,
}

impl Secure {
    pub(in crate::http::client) async fn new(
        authority: &Authority,
        name: &str,
        protocols: &[&str],
        tools: impl IntoIterator<Item = ServerTool>,
    ) -> Self {
        let tls = authority.vouch(name, protocols);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (all, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let service = HttpService::new(server(tools), HttpServerOptions::new());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (tls, all, service) = (tls.clone(), Arc::clone(&all), service.clone());
                tokio::spawn(async move {
                    // A client that does not trust us hangs up.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request: ::http::Request<hyper::body::Incoming>| {
                        all.lock().unwrap().push((number, request.version()));
                        service.clone().call(request)
                    });
                    drop(Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Self { address, seen, connections }
    }

    fn url(&self) -> String {
        format!("https://{}/mcp", self.address)
    }

    pub(in crate::http::client) fn versions(&self) -> Vec<Version> {
        self.seen.lock().unwrap().iter().map(|(_, version)| *version).collect()
    }
}

const BOTH: &[&str] = &["h2", "http/1.1"];

#[tokio::test]
async fn a_server_with_a_trusted_certificate_is_accepted() {
    let authority = Authority::new();
    let secure = Secure::new(&authority, "127.0.0.1", BOTH, [echo()]).await;
    for certificate in [authority.pem().into_bytes(), authority.0.der().to_vec()] {
        let target = HttpTarget::new(secure.url()).trust_certificate(certificate);
        let client = soon(Client::connect(target).into_future()).await.unwrap();
        let said = soon(client.call_tool("echo", json!({"text": "ü"})).into_future()).await.unwrap();
        assert_eq!(text(&said), "ü");
    }
}

#[tokio::test]
async fn an_untrusted_server_receives_no_request() {
    let (authority, other) = (Authority::new(), Authority::new());
    let secure = Secure::new(&authority, "127.0.0.1", BOTH, [echo()]).await;
    for target in [HttpTarget::new(secure.url()), HttpTarget::new(secure.url()).trust_certificate(other.pem())] {
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{error:?}");
        assert!(why(&error).contains("certificate"), "{}", why(&error));
    }
    assert!(secure.versions().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_rejected() {
    let authority = Authority::new();
    let secure = Secure::new(&authority, "elsewhere.example", BOTH, [echo()]).await;
    let target = HttpTarget::new(secure.url()).trust_certificate(authority.pem());
    let error = soon(Client::connect(target).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{error:?}");
    assert!(why(&error).contains("certificate"), "{}", why(&error));
    assert!(secure.versions().is_empty());
}

#[tokio::test]
async fn an_invalid_certificate_is_an_immediate_error() {
    let target = HttpTarget::new("https://127.0.0.1:1/mcp").trust_certificate("not one");
    let error = soon(Client::connect(target).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotSent);
    assert!(why(&error).contains("not a certificate"), "{}", why(&error));
}

/// Answers when so many of its kind have begun.
pub(in crate::http::client) fn together(count: usize) -> ServerTool {
    let barrier = Arc::new(Barrier::new(count));
    ServerTool::new("together").handler(move || {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            "all here"
        }
    })
}

/// So many calls at once.
pub(in crate::http::client) async fn all_at_once(client: &Client, count: usize) {
    let calls: Vec<_> = (0..count).map(|_| client.call_tool("together", json!({})).start()).collect();
    for call in calls {
        assert_eq!(text(&soon(call).await.unwrap()), "all here");
    }
}

#[tokio::test]
async fn http_2_is_negotiated_and_all_calls_share_a_connection() {
    let authority = Authority::new();
    let secure = Secure::new(&authority, "127.0.0.1", BOTH, [together(64)]).await;
    let target = HttpTarget::new(secure.url()).trust_certificate(authority.pem());
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    all_at_once(&client, 64).await;
    let versions = secure.versions();
    assert!(versions.len() >= 65 && versions.iter().all(|version| *version == Version::HTTP_2), "{versions:?}");
    assert_eq!(secure.connections.load(Ordering::SeqCst), 1);
}

/// The stream on which the server speaks first is one of many on its connection.
#[tokio::test]
async fn a_session_and_its_stream_share_an_http_2_connection() {
    let authority = Authority::new();
    let secure = Secure::new(&authority, "127.0.0.1", BOTH, [together(8)]).await;
    let target = HttpTarget::new(secure.url()).trust_certificate(authority.pem());
    let client = soon(Client::connect(target).negotiation(OLDER).into_future()).await.unwrap();
    all_at_once(&client, 8).await;
    soon(client.close()).await;
    assert!(secure.versions().iter().all(|version| *version == Version::HTTP_2));
    assert_eq!(secure.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn http_1_is_used_where_only_it_is_offered() {
    let authority = Authority::new();
    for protocols in [&["http/1.1"][..], &[]] {
        let secure = Secure::new(&authority, "127.0.0.1", protocols, [together(8)]).await;
        let target = HttpTarget::new(secure.url()).trust_certificate(authority.pem());
        let client = soon(Client::connect(target).into_future()).await.unwrap();
        all_at_once(&client, 8).await;
        assert!(secure.versions().iter().all(|version| *version == Version::HTTP_11));
    }
}
