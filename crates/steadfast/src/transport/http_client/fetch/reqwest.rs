//! Requests over the network, by reqwest.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Body as _;
use reqwest::redirect::{Attempt, Policy};
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::{Fetch, FetchBody, FetchError, FetchRequest, FetchResponse, Fetching};

/// More redirects than this are a loop.
const REDIRECTS: usize = 5;

/// How long it may take to reach the server.
const CONNECTING: Duration = Duration::from_secs(10);

/// Makes requests with a client of reqwest's.
pub(in super::super) struct ReqwestFetch(reqwest::Client);

impl ReqwestFetch {
    /// With somebody's own client, or with ours.
    pub(in super::super) fn new(client: Option<reqwest::Client>) -> io::Result<Self> {
        client.map_or_else(default_client, Ok).map(Self)
    }
}

impl Fetch for ReqwestFetch {
    fn fetch(&self, request: FetchRequest) -> Fetching {
        let FetchRequest { method, url, headers, body, timeout } = request;
        let mut request = self.0.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        Box::pin(async move { request.send().await.map(opened).map_err(|error| failed(&error)) })
    }
}

fn opened(response: reqwest::Response) -> FetchResponse {
    let (parts, body) = Response::from(response).into_parts();
    Response::from_parts(parts, Box::new(Pieces(body)))
}

/// What has arrived of a body.
struct Pieces(reqwest::Body);

impl FetchBody for Pieces {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FetchError>>> {
        loop {
            return Poll::Ready(match std::task::ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => Some(Ok(piece)),
                    // Trailers say nothing to us.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(failed(&error))),
                None => None,
            });
        }
    }
}

fn failed(error: &reqwest::Error) -> FetchError {
    let why = describe(error);
    if error.is_builder() {
        return FetchError::unwritable(why);
    }
    // What never reached the server's door was not seen by it.
    if error.is_connect() { FetchError::unsent(why) } else { FetchError::broken(why) }
}

/// An error with its causes, without its URL, which may hold secrets.
fn describe(error: &reqwest::Error) -> String {
    use std::error::Error as _;
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}

fn default_client() -> io::Result<reqwest::Client> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(io::Error::other)?
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::custom(follow))
        .connect_timeout(CONNECTING)
        .tcp_nodelay(true)
        .build()
        .map_err(io::Error::other)
}

/// Only where the method and the body stay what they are, and only to the origin that was asked.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same_origin = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    let same_request = matches!(attempt.status().as_u16(), 307 | 308);
    if same_origin && same_request && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}
