//! A minimal HTTP client: one connection per request, no redirects followed.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};
use tokio::net::TcpStream;

#[derive(Clone, Copy)]
pub(crate) struct MinimalHttpClient;

impl HttpClient for MinimalHttpClient {
    fn send(&self, request: Request<HttpClientBody>, limit: usize) -> HttpClientFuture<'_> {
        Box::pin(async move { send(request, limit).await.map_err(|error| HttpClientError::new(error.to_string())) })
    }
}

async fn send(
    request: Request<HttpClientBody>,
    limit: usize,
) -> Result<Response<HttpClientBody>, Box<dyn std::error::Error + Send + Sync>> {
    let authority = request.uri().authority().ok_or("no authority")?.clone();
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let mut request = request.map(|body| Full::new(body.into_bytes()));
    request.headers_mut().insert("host", authority.as_str().parse()?);
    *request.uri_mut() = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str).parse()?;
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let body: Bytes = Limited::new(body, limit).collect().await?.to_bytes();
    driver.abort();
    Ok(Response::from_parts(parts, HttpClientBody::from(body)))
}
