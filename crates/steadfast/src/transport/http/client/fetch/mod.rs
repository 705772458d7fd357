//! The HTTP client that sends requests and reads responses.
//!
//! [`reqwest`] by default; a target may have another one. The simulator has one that cuts, repeats and delays.

pub(crate) mod network;
mod on_workers;
mod reqwest;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

pub(crate) use on_workers::TransportFetchOnWorkerThreads;
pub(crate) use reqwest::ReqwestTransportFetch;

/// A request in flight. Dropping it aborts the request.
pub type TransportFetchFuture =
    Pin<Box<dyn Future<Output = Result<TransportFetchResponse, TransportFetchError>> + Send>>;

/// The response of a server. Dropping the body aborts the rest of it.
pub type TransportFetchResponse = http::Response<Box<dyn TransportFetchBody>>;

/// Sends HTTP requests. It is called and polled on the workers of the program's runtime, as handlers are, and so are the bodies
/// that it returns, so if it blocks it delays only its own request. If it panics, the server may have seen the request.
///
/// ```
/// use steadfast::transport::http::{TransportFetch, TransportFetchError, TransportFetchRequest, TransportFetchFuture, HttpTarget};
///
/// /// Fails every request.
/// struct Offline;
///
/// impl TransportFetch for Offline {
///     fn fetch(&self, _: TransportFetchRequest) -> TransportFetchFuture {
///         Box::pin(async { Err(TransportFetchError::not_sent("there is no network")) })
///     }
/// }
///
/// let target = HttpTarget::new("http://localhost/mcp").fetch(Offline);
/// ```
pub trait TransportFetch: Send + Sync + 'static {
    /// Sends a request. Ready when the head of the response was received.
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture;
}

impl<T: TransportFetch + ?Sized> TransportFetch for Arc<T> {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        (**self).fetch(request)
    }
}

/// The body of a response, in pieces as they come.
pub trait TransportFetchBody: Send {
    /// The next piece; `None` at the end of the body.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>>;
}

/// A request to send.
#[derive(Clone)]
#[non_exhaustive]
pub struct TransportFetchRequest {
    /// GET, POST or DELETE.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// All headers, except those of the HTTP connection.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
    /// How long the request may take, including the body of the response.
    pub timeout: Option<Duration>,
}

impl TransportFetchRequest {
    /// A request without headers, body and timeout, for tests of a [`TransportFetch`].
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: HeaderMap::new(), body: None, timeout: None }
    }
}

/// Shows neither the URL nor the headers, which may hold secrets.
impl fmt::Debug for TransportFetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TransportFetchRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Why a request failed, or its response broke off.
#[derive(Debug)]
pub struct TransportFetchError {
    kind: TransportFetchErrorKind,
    why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Whether the server may have seen the request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TransportFetchErrorKind {
    Unsent,
    Unwritable,
    Broken,
}

impl TransportFetchError {
    /// The server cannot have seen a byte of the request, so it has not acted on it.
    pub fn not_sent(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Unsent, why.into())
    }

    /// The request is not valid HTTP: a retry would fail too.
    pub fn invalid_request(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Unwritable, why.into())
    }

    /// The request was interrupted: the server may have received it.
    pub fn interrupted(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Broken, why.into())
    }

    fn new(kind: TransportFetchErrorKind, why: String) -> Self {
        Self { kind, why, source: None }
    }

    /// Sets the [`source`](std::error::Error::source) of the error. It must not show secrets, such as those of a URL.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use std::io;
    /// use steadfast::transport::http::TransportFetchError;
    ///
    /// let cut = io::Error::from(io::ErrorKind::ConnectionReset);
    /// let error = TransportFetchError::interrupted("the server hung up").with_source(cut);
    /// assert!(error.may_be_sent() && error.source().is_some_and(|source| source.is::<io::Error>()));
    /// ```
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the server may have seen the request.
    pub fn may_be_sent(&self) -> bool {
        self.kind == TransportFetchErrorKind::Broken
    }

    /// Whether the request is not valid HTTP.
    pub fn is_invalid_request(&self) -> bool {
        self.kind == TransportFetchErrorKind::Unwritable
    }
}

impl fmt::Display for TransportFetchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.why)
    }
}

impl std::error::Error for TransportFetchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The next piece of a response's body.
pub(crate) async fn next_piece(response: &mut TransportFetchResponse) -> Option<Result<Bytes, TransportFetchError>> {
    std::future::poll_fn(|cx| response.body_mut().poll_chunk(cx)).await
}

/// Why a body was not read to its end.
pub(crate) enum TransportBodyError {
    TooLong,
    BrokeOff(TransportFetchError),
}

/// Reads the body of a response, of at most `limit` bytes.
pub(crate) async fn read_body(
    mut response: TransportFetchResponse,
    limit: usize,
) -> Result<Vec<u8>, TransportBodyError> {
    let mut body = Vec::new();
    while let Some(piece) = next_piece(&mut response).await {
        let piece = piece.map_err(TransportBodyError::BrokeOff)?;
        if body.len().saturating_add(piece.len()) > limit {
            return Err(TransportBodyError::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_has_a_kind_and_a_source() {
        for (error, sent, unwritable) in [
            (TransportFetchError::not_sent("no"), false, false),
            (TransportFetchError::invalid_request("no"), false, true),
            (TransportFetchError::interrupted("no"), true, false),
        ] {
            assert_eq!((error.may_be_sent(), error.is_invalid_request()), (sent, unwritable), "{error:?}");
            assert!(error.source().is_none());
            let error = error.with_source("because");
            assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("because"));
            assert_eq!((error.may_be_sent(), error.is_invalid_request()), (sent, unwritable), "{error:?}");
        }
    }
}
