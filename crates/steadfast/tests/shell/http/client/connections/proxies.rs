//! Proxies that are configured, and those of the environment.
//!
//! Variables belong to the whole process, so what they do is seen in a child: this very program, with one test to run.

use std::process::Command;

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::transport::http::HttpTarget;
use steadfast::{ErrorKind, Outcome};
use tokio::io::copy_bidirectional;

use super::tls::{Authority, Secure, all_at_once, together};
use crate::http::client::*;

/// A proxy that connects to one server, whatever the request names.
struct Proxy {
    address: SocketAddr,
    /// The head of the first request on each connection.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(relay(stream, server, Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    fn url(&self) -> String {
        format!("http://me:s3cret@{}", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, heads: Arc<Mutex<Vec<String>>>) {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 65536]);
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..end]).into_owned();
        }
        let Ok(count @ 1..) = client.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..count]);
    };
    let tunnel = head.starts_with("CONNECT ");
    heads.lock().unwrap().push(head);
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    if tunnel {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    } else {
        server.write_all(&bytes).await.unwrap();
    }
    // Either side may have had enough.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// A server that does not care by which name it is called.
async fn any_name() -> (SocketAddr, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let (url, requests) = raw(|_, request| modern(request, || json_answer(request, &json!({"content": []})))).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    (address, requests)
}

async fn call(target: HttpTarget) -> Result<(), steadfast::Error> {
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await?;
    soon(client.call_tool("any", json!({})).into_future()).await.map(drop)
}

#[tokio::test]
async fn requests_use_the_configured_proxy() {
    let (server, requests) = any_name().await;
    let proxy = Proxy::to(server).await;
    for url in ["http://steadfast.invalid/mcp".to_owned(), format!("http://{server}/mcp")] {
        call(HttpTarget::new(&url).proxy(proxy.url())).await.unwrap();
        let head = proxy.heads().pop().unwrap();
        assert!(head.starts_with(&format!("POST {url} HTTP/1.1\r\n")), "{head}");
        // me:s3cret
        assert!(head.contains("Basic bWU6czNjcmV0"), "{head}");
    }
    assert_eq!(requests.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn tls_through_a_proxy_is_end_to_end() {
    let authority = Authority::new();
    let secure = Secure::new(&authority, "steadfast.invalid", &["h2", "http/1.1"], [together(8)]).await;
    let proxy = Proxy::to(secure.address).await;
    let target = HttpTarget::new("https://steadfast.invalid/mcp")
        .trust_certificate(authority.pem())
        .proxy(proxy.url())
        .header("x-key", "k3y");
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    all_at_once(&client, 8).await;
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].starts_with("CONNECT steadfast.invalid:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(!heads[0].contains("k3y"), "{heads:?}");
    assert!(secure.versions().iter().all(|version| *version == ::http::Version::HTTP_2));
}

#[tokio::test]
async fn a_missing_or_refusing_proxy_leaves_the_call_not_sent() {
    let authority = Authority::new();
    // The port is bound, so that no other process gets it, and not listened on.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let gone = deaf.local_addr().unwrap();
    let (refusing, _) = raw(|_, _| response("403 Forbidden", &[], "")).await;
    let refusing = refusing.replace("http://", "http://me:s3cret@").replace("/mcp", "");
    for (url, proxy) in [
        ("http://steadfast.invalid/mcp", format!("http://me:s3cret@{gone}")),
        ("https://steadfast.invalid/mcp", format!("http://me:s3cret@{gone}")),
        ("https://steadfast.invalid/mcp", refusing),
    ] {
        let target = HttpTarget::new(url).trust_certificate(authority.pem()).proxy(&proxy);
        assert!(!format!("{target:?}").contains("s3cret"));
        let error = call(target).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{error:?}");
        assert!(!format!("{error:?} {}", why(&error)).contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn an_invalid_proxy_is_an_immediate_error() {
    for proxy in ["nowhere", "socks5://127.0.0.1:1"] {
        let error = call(HttpTarget::new("http://127.0.0.1:1/mcp").proxy(proxy)).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert!(why(&error).contains("prox"), "{}", why(&error));
    }
}

/// The URL that the child connects to, and whether it must connect directly.
const URL: &str = "STEADFAST_TEST_URL";
const DIRECTLY: &str = "STEADFAST_TEST_DIRECTLY";

#[tokio::test]
#[ignore = "the child process of the tests below"]
async fn child_process_that_makes_a_call() {
    let Ok(url) = std::env::var(URL) else { return };
    let mut target = HttpTarget::new(url);
    if std::env::var(DIRECTLY).is_ok() {
        target = target.no_proxy();
    }
    call(target).await.unwrap();
}

/// Whether a child with these variables could make its call.
async fn in_a_child(url: String, variables: &[(&str, String)]) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "http::client::connections::proxies::child_process_that_makes_a_call", "--ignored"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD", DIRECTLY] {
        child.env_remove(name).env_remove(name.to_lowercase());
    }
    child.env(URL, url).envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("running 1 test"), "{said}");
    output.status.success()
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_used() {
    let (server, _) = any_name().await;
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let proxy = Proxy::to(server).await;
        assert!(soon(in_a_child("http://steadfast.invalid/mcp".to_owned(), &[(name, proxy.url())])).await);
        let heads = proxy.heads();
        assert!(heads[0].starts_with("POST http://steadfast.invalid/mcp "), "{name}: {heads:?}");
    }
}

#[tokio::test]
async fn the_https_proxy_of_the_environment_gets_a_connect_request() {
    let (server, _) = any_name().await;
    let proxy = Proxy::to(server).await;
    let plain = Proxy::to(server).await;
    let variables = [("HTTPS_PROXY", proxy.url()), ("HTTP_PROXY", plain.url())];
    // There is no TLS server at the other end, so the call fails; but it got that far.
    assert!(!soon(in_a_child("https://steadfast.invalid/mcp".to_owned(), &variables)).await);
    assert!(proxy.heads()[0].starts_with("CONNECT steadfast.invalid:443 "));
    assert!(plain.heads().is_empty());
}

#[tokio::test]
async fn localhost_is_reached_without_the_proxy_of_the_environment() {
    let (server, _) = any_name().await;
    let proxy = Proxy::to(server).await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/mcp", server.port());
        assert!(soon(in_a_child(url, &[("HTTP_PROXY", proxy.url())])).await, "{host}");
    }
    assert!(proxy.heads().is_empty());
}

/// An address that is not one of this machine's by its look, and leads here all the same.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let (server, _) = any_name().await;
    let url = format!("http://0.0.0.0:{}/mcp", server.port());
    for (exception, direct) in [("0.0.0.0", true), ("10.0.0.0/8,0.0.0.0/8", true), ("*", true), ("10.0.0.0/8", false)] {
        let proxy = Proxy::to(server).await;
        let variables = [("HTTP_PROXY", proxy.url()), ("NO_PROXY", exception.to_owned())];
        assert!(soon(in_a_child(url.clone(), &variables)).await, "{exception}");
        assert_eq!(proxy.heads().is_empty(), direct, "{exception}");
    }
    let proxy = Proxy::to(server).await;
    let variables = [("HTTP_PROXY", proxy.url()), (DIRECTLY, "yes".to_owned())];
    assert!(soon(in_a_child(url, &variables)).await);
    assert!(proxy.heads().is_empty());
}
