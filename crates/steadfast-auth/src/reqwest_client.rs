//! An [`HttpClient`] that is reqwest, with rustls.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{Request, Response};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::{HttpClient, HttpError, Payload, Reply};

/// Requests with reqwest: certificates are checked with what the operating system trusts, and redirects are not followed.
#[derive(Clone, Debug)]
pub struct ReqwestClient(reqwest::Client);

impl ReqwestClient {
    /// A client of its own, with timeouts that fit an authorization server.
    pub fn new() -> Result<Self, HttpError> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(10))
            .build();
        client.map(Self).map_err(describe)
    }
}

/// Named here and not taken from the process, where another crate may have installed something else, or nothing.
fn tls() -> Result<rustls::ClientConfig, HttpError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| HttpError::new(error.to_string()))?;
    Ok(config.with_no_client_auth())
}

impl HttpClient for ReqwestClient {
    fn send(&self, request: Request<Payload>, limit: usize) -> Reply<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request.map(Payload::into_bytes)).map_err(describe)?;
            let mut response = self.0.execute(request).await.map_err(describe)?;
            let mut body = BytesMut::new();
            while let Some(chunk) = response.chunk().await.map_err(describe)? {
                if body.len().saturating_add(chunk.len()) > limit {
                    return Err(HttpError::new("the answer is too long"));
                }
                body.extend_from_slice(&chunk);
            }
            let mut answer = Response::new(Payload::from(body));
            *answer.status_mut() = response.status();
            std::mem::swap(answer.headers_mut(), response.headers_mut());
            Ok(answer)
        })
    }
}

/// The causes of an error, without its URL.
fn describe(error: reqwest::Error) -> HttpError {
    use std::error::Error;

    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    HttpError::new(text)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Serves one request on loopback with this answer, and gives back what it read.
    async fn exchanged(answer: String, limit: usize) -> (Result<Response<Payload>, HttpError>, String) {
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
        let request = Request::post(uri).header("x-test", "1").body(Payload::from("token=x")).unwrap();
        let found = ReqwestClient::new().unwrap().send(request, limit).await;
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
        assert_eq!(exchanged(answer, 100).await.0.unwrap_err(), HttpError::new("the answer is too long"));
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer() {
        let answer =
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".to_owned();
        assert_eq!(exchanged(answer, 100).await.0.unwrap().status(), 307);
    }
}
