//! Sends HTTP requests over the network with reqwest.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::Body as _;
use reqwest::Url;

use super::{
    TransportFetch, TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest,
    TransportFetchResponse,
};

/// A [`TransportFetch`] that sends HTTP requests with a reqwest client.
pub(crate) struct ReqwestTransportFetch {
    client: reqwest::Client,
    /// The parsed URL of the last request, to parse it only once.
    last_url: Mutex<Option<Url>>,
}

impl ReqwestTransportFetch {
    pub(crate) fn new(client: reqwest::Client) -> Self {
        Self { client, last_url: Mutex::default() }
    }

    /// Parses a URL, unless it is the URL of the last request, which is stored. Returns `None` if the text is not a
    /// URL.
    fn parse(&self, url: &str) -> Option<Url> {
        let mut last = self.last_url.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|last| last.as_str() != url) {
            *last = Some(Url::parse(url).ok()?);
        }
        last.clone()
    }
}

impl TransportFetch for ReqwestTransportFetch {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        let TransportFetchRequest { method, url, headers, body, timeout } = request;
        let request = match self.parse(&url) {
            Some(url) => self.client.request(method, url),
            // Fails, with the error of reqwest.
            None => self.client.request(method, url),
        };
        let mut request = request.headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        Box::pin(async move { request.send().await.map(opened).map_err(failed) })
    }
}

fn opened(response: reqwest::Response) -> TransportFetchResponse {
    let (parts, body) = Response::from(response).into_parts();
    Response::from_parts(parts, Box::new(ReqwestBody(body)))
}

/// The body of an HTTP response that reqwest receives.
struct ReqwestBody(reqwest::Body);

impl TransportFetchBody for ReqwestBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        loop {
            return Poll::Ready(match std::task::ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => Some(Ok(piece)),
                    // Trailers are ignored.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(failed(error))),
                None => None,
            });
        }
    }
}

fn failed(error: reqwest::Error) -> TransportFetchError {
    let why = describe(&error);
    let failed = if error.is_builder() {
        TransportFetchError::invalid_request(why)
    } else if error.is_connect() {
        // Without a connection the server has not seen the request.
        TransportFetchError::not_sent(why)
    } else {
        TransportFetchError::interrupted(why)
    };
    failed.with_source(error.without_url())
}

/// The causes of a reqwest error as text, without the URL, which may hold secrets.
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

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::transport::http::client::fetch::network::ClientNetworkSettings;

    #[test]
    fn a_url_is_parsed_again_when_it_changes() {
        let fetch = ReqwestTransportFetch::new(
            ClientNetworkSettings::default().client(&Url::parse("http://a.example").unwrap()).unwrap(),
        );
        for url in ["http://a.example/x", "http://a.example/x", "http://b.example/x", "no URL", "http://a.example/x"] {
            assert_eq!(fetch.parse(url), Url::parse(url).ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn the_source_of_an_error_is_kept_without_its_url() {
        let url = Url::parse("http://127.0.0.1:1/?key=s3cret").unwrap();
        let client = ClientNetworkSettings::default().client(&url).unwrap();
        let error = failed(client.get(url).send().await.unwrap_err());
        assert!(!error.may_be_sent() && !error.is_invalid_request());
        assert!(error.source().is_some_and(<dyn std::error::Error>::is::<reqwest::Error>));
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}
