//! An [`HttpClient`] with reqwest and rustls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{Request, Response};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::resolver::{PinnedHost, PinningResolver};
use crate::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};

/// An [`HttpClient`] with reqwest: certificates are verified with the trust store of the operating system, and redirects are
/// not followed. A host that the metadata of an MCP server refers to is not contacted if its name resolves to a more private
/// network than that of the server.
#[derive(Clone)]
pub struct OAuthReqwestClient {
    /// The reqwest client that connects to any address that a host name resolves to.
    client: reqwest::Client,
    tls: rustls::ClientConfig,
    names: Option<Arc<PinningResolver>>,
}

impl OAuthReqwestClient {
    /// Creates an HTTP client with timeouts for authorization servers.
    pub fn new() -> Result<Self, HttpClientError> {
        let tls = tls()?;
        let client = builder(tls.clone()).build().map_err(describe)?;
        Ok(Self { client, tls, names: Some(PinningResolver::new()) })
    }

    /// Allows MCP servers to refer clients to hosts in more private networks. Allow private targets in networks where
    /// a server on the internet legitimately refers to a private address, such as that of an organisation's internal
    /// authorization server.
    pub fn allow_private_targets(mut self) -> Self {
        self.names = None;
        self
    }

    /// The reqwest client for a request, which connects only to the addresses that the request may connect to.
    async fn client(&self, request: &Request<HttpClientBody>) -> Result<reqwest::Client, HttpClientError> {
        let Some(names) = &self.names else { return Ok(self.client.clone()) };
        let Some(pinned) = names.pin(request).await? else { return Ok(self.client.clone()) };
        self.pinned(&pinned)
    }

    /// Creates a new reqwest client, so that no pooled connection to another address of the host name is reused.
    fn pinned(&self, pinned: &PinnedHost) -> Result<reqwest::Client, HttpClientError> {
        let builder = builder(self.tls.clone()).resolve_to_addrs(&pinned.name, &pinned.addresses);
        builder.build().map_err(describe)
    }
}

impl fmt::Debug for OAuthReqwestClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OAuthReqwestClient")
    }
}

fn builder(tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(10))
}

/// The TLS configuration with an explicit crypto provider: the default provider of the process may be another one, or none.
fn tls() -> Result<rustls::ClientConfig, HttpClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| HttpClientError::new(error.to_string()))?;
    Ok(config.with_no_client_auth())
}

impl HttpClient for OAuthReqwestClient {
    fn send(&self, request: Request<HttpClientBody>, limit: usize) -> HttpClientFuture<'_> {
        Box::pin(async move {
            let client = self.client(&request).await?;
            let request = reqwest::Request::try_from(request.map(HttpClientBody::into_bytes)).map_err(describe)?;
            let mut response = client.execute(request).await.map_err(describe)?;
            let mut body = BytesMut::new();
            while let Some(chunk) = response.chunk().await.map_err(describe)? {
                if body.len().saturating_add(chunk.len()) > limit {
                    return Err(HttpClientError::new("the response is too long"));
                }
                body.extend_from_slice(&chunk);
            }
            let mut answer = Response::new(HttpClientBody::from(body));
            *answer.status_mut() = response.status();
            std::mem::swap(answer.headers_mut(), response.headers_mut());
            Ok(answer)
        })
    }
}

/// Converts an error of reqwest into a text with its sources and without its URL.
fn describe(error: reqwest::Error) -> HttpClientError {
    use std::error::Error;

    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    HttpClientError::new(text)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::MetadataSourceHost;

    /// Serves one request on loopback with this answer, and gives back what it read.
    async fn exchanged(answer: String, limit: usize) -> (Result<Response<HttpClientBody>, HttpClientError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/introspect", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut read, mut buffer) = (String::new(), [0; 1024]);
            while !read.ends_with("token=x") {
                let length = stream.read(&mut buffer).await.unwrap();
                assert_ne!(length, 0, "the request was cut");
                read.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
            }
            // The client may stop reading before the end.
            let _ = stream.write_all(answer.as_bytes()).await;
            read
        });
        let request = Request::post(uri).header("x-test", "1").body(HttpClientBody::from("token=x")).unwrap();
        let found = OAuthReqwestClient::new().unwrap().send(request, limit).await;
        (found, server.await.unwrap())
    }

    #[tokio::test]
    async fn a_request_is_sent_and_its_answer_read() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-answer: 1\r\n\r\n{}".to_owned();
        let (found, read) = exchanged(answer, 100).await;
        let found = found.unwrap();
        assert_eq!((found.status().as_u16(), found.body().as_bytes()), (200, &b"{}"[..]));
        assert_eq!(found.headers()["x-answer"], "1");
        assert!(read.starts_with("POST /introspect HTTP/1.1\r\n") && read.contains("x-test: 1"), "{read}");
    }

    #[tokio::test]
    async fn an_answer_beyond_the_limit_is_not_read_to_its_end() {
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n{}", "x".repeat(101));
        assert_eq!(exchanged(answer, 100).await.0.unwrap_err(), HttpClientError::new("the response is too long"));
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer() {
        let answer =
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".to_owned();
        assert_eq!(exchanged(answer, 100).await.0.unwrap().status(), 307);
    }

    #[tokio::test]
    async fn what_a_server_outside_names_is_not_asked_if_its_name_leads_inside() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = PinningResolver::with_lookup(|name| {
            let address = if name == "outside.example" { [192, 0, 2, 1] } else { [127, 0, 0, 1] };
            Box::pin(async move { Ok(vec![address.into()]) })
        });
        let client = OAuthReqwestClient { names: Some(names), ..OAuthReqwestClient::new().unwrap() };
        let request = |server: &str| {
            let mut request =
                Request::get(format!("http://inside.example:{port}/")).body(HttpClientBody::default()).unwrap();
            request.extensions_mut().insert(MetadataSourceHost::new(server));
            request
        };
        let refused = client.send(request("outside.example"), 100).await.unwrap_err();
        let expected = "inside.example resolves to a more private network than outside.example, which referred to it";
        assert_eq!(refused, HttpClientError::new(expected));
        assert!(pending(listener.accept()).await, "no connection");
    }

    #[tokio::test]
    async fn a_name_is_connected_to_where_it_was_seen_to_lead() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let pinned = PinnedHost { name: String::from("auth.example"), addresses: vec![([127, 0, 0, 1], 0).into()] };
        let client = OAuthReqwestClient::new().unwrap().pinned(&pinned).unwrap();
        let answered = tokio::spawn(client.get(format!("http://auth.example:{port}/")).send());
        listener.accept().await.unwrap();
        answered.abort();
    }

    async fn pending<T>(future: impl Future<Output = T>) -> bool {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
