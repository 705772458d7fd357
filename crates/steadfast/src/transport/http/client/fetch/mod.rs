//! The HTTP client with which a client's HTTP transport sends its requests.
//!
//! The default is [`reqwest`]; `HttpTarget::fetch` sets another HTTP client. The simulator has an HTTP client that cuts
//! off, repeats and delays what it transfers.

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

/// The future of an HTTP request of the client, which resolves to the response of the server. Dropping the future of
/// an HTTP request aborts the request.
pub type TransportFetchFuture =
    Pin<Box<dyn Future<Output = Result<TransportFetchResponse, TransportFetchError>> + Send>>;

/// The HTTP response that the client received from the server. Dropping the body of the response aborts the rest of it.
pub type TransportFetchResponse = http::Response<Box<dyn TransportFetchBody>>;

/// Sends the HTTP requests of a client. A `TransportFetch` and the bodies that it returns are polled on the worker
/// threads of the program's runtime, as handlers are, so one that blocks delays only its own request. If a
/// `TransportFetch` panics, the client assumes that the server may have seen the request.
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
    /// Sends a request. The future is ready when the head of the HTTP response was received.
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture;
}

impl<T: TransportFetch + ?Sized> TransportFetch for Arc<T> {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        (**self).fetch(request)
    }
}

/// The body of an HTTP response, which is read in pieces as they arrive.
pub trait TransportFetchBody: Send {
    /// The next piece of the body; `None` at its end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>>;
}

/// An HTTP request that a client sends with a [`TransportFetch`].
#[derive(Clone)]
#[non_exhaustive]
pub struct TransportFetchRequest {
    /// The HTTP method: GET, POST or DELETE.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// All headers of the request, except those that an HTTP library adds itself, such as `Host` and `Content-Length`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
    /// How long the request may take, including the body of the response.
    pub timeout: Option<Duration>,
}

impl TransportFetchRequest {
    /// Creates an HTTP request without headers, body and timeout, for tests of a [`TransportFetch`].
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: HeaderMap::new(), body: None, timeout: None }
    }
}

/// The debug output shows neither the URL nor the headers of the request, which may hold secrets.
impl fmt::Debug for TransportFetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TransportFetchRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Why an HTTP request failed, or its response broke off.
#[derive(Debug)]
pub struct TransportFetchError {
    kind: TransportFetchErrorKind,
    why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Whether the server may have seen an HTTP request that failed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TransportFetchErrorKind {
    Unsent,
    Unwritable,
    Broken,
}

impl TransportFetchError {
    /// Creates the error of a request of which the server cannot have seen a byte, so that it has not acted on the
    /// request.
    pub fn not_sent(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Unsent, why.into())
    }

    /// Creates the error of a request that is not valid HTTP: a retry would fail too.
    pub fn invalid_request(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Unwritable, why.into())
    }

    /// Creates the error of a request that was interrupted: the server may have received the request.
    pub fn interrupted(why: impl Into<String>) -> Self {
        Self::new(TransportFetchErrorKind::Broken, why.into())
    }

    fn new(kind: TransportFetchErrorKind, why: String) -> Self {
        Self { kind, why, source: None }
    }

    /// Sets the [`source`](std::error::Error::source) of the error. The source must not show secrets, such as those of
    /// a URL.
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

    /// Whether the server may have seen the request that failed.
    pub fn may_be_sent(&self) -> bool {
        self.kind == TransportFetchErrorKind::Broken
    }

    /// Whether the request failed because it is not valid HTTP.
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

/// The next piece of the body of an HTTP response.
pub(crate) async fn next_piece(response: &mut TransportFetchResponse) -> Option<Result<Bytes, TransportFetchError>> {
    std::future::poll_fn(|cx| response.body_mut().poll_chunk(cx)).await
}

/// Why the body of an HTTP response was not read to its end.
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
