//! The HTTP client that sends requests and reads responses.
//!
//! [`reqwest`] by default; a target may have another one. The simulator has one that cuts, repeats and delays.

pub(crate) mod network;
mod on_workers;
mod reqwest;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

pub(crate) use on_workers::FetchOnWorkers;
pub(crate) use reqwest::ReqwestFetch;

/// A request in flight. Dropping it aborts the request.
pub type FetchFuture = Pin<Box<dyn Future<Output = Result<FetchResponse, FetchError>> + Send>>;

/// The response of a server. Dropping the body aborts the rest of it.
pub type FetchResponse = http::Response<Box<dyn FetchBody>>;

/// Sends HTTP requests. It is called and polled on the workers of the program's runtime, as handlers are, and so are the bodies
/// that it returns, so if it blocks it delays only its own request. If it panics, the server may have seen the request.
///
/// ```
/// use steadfast::transport::http::{Fetch, FetchError, FetchRequest, FetchFuture, HttpTarget};
///
/// /// Fails every request.
/// struct Offline;
///
/// impl Fetch for Offline {
///     fn fetch(&self, _: FetchRequest) -> FetchFuture {
///         Box::pin(async { Err(FetchError::not_sent("there is no network")) })
///     }
/// }
///
/// let target = HttpTarget::new("http://localhost/mcp").fetch(Offline);
/// ```
pub trait Fetch: Send + Sync + 'static {
    /// Sends a request. Ready when the head of the response was received.
    fn fetch(&self, request: FetchRequest) -> FetchFuture;
}

/// The body of a response, in pieces as they come.
pub trait FetchBody: Send {
    /// The next piece; `None` at the end of the body.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FetchError>>>;
}

/// A request to send.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchRequest {
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

/// Shows neither the URL nor the headers, which may hold secrets.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FetchRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Why a request failed, or its response broke off.
#[derive(Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Whether the server may have seen the request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FetchErrorKind {
    Unsent,
    Unwritable,
    Broken,
}

impl FetchError {
    /// The server cannot have seen a byte of the request, so it has not acted on it.
    pub fn not_sent(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Unsent, why.into())
    }

    /// The request is not valid HTTP: a retry would fail too.
    pub fn invalid_request(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Unwritable, why.into())
    }

    /// The server may have seen the request.
    pub fn interrupted(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Broken, why.into())
    }

    fn new(kind: FetchErrorKind, why: String) -> Self {
        Self { kind, why, source: None }
    }

    /// Sets the [`source`](std::error::Error::source) of the error. It must not show secrets, such as those of a URL.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use std::io;
    /// use steadfast::transport::http::FetchError;
    ///
    /// let cut = io::Error::from(io::ErrorKind::ConnectionReset);
    /// let error = FetchError::interrupted("the server hung up").with_source(cut);
    /// assert!(error.may_be_sent() && error.source().is_some_and(|source| source.is::<io::Error>()));
    /// ```
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the server may have seen the request.
    pub fn may_be_sent(&self) -> bool {
        self.kind == FetchErrorKind::Broken
    }

    /// Whether the request is not valid HTTP.
    pub fn is_invalid_request(&self) -> bool {
        self.kind == FetchErrorKind::Unwritable
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.why)
    }
}

impl std::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The next piece of a response's body.
pub(crate) async fn next_piece(response: &mut FetchResponse) -> Option<Result<Bytes, FetchError>> {
    std::future::poll_fn(|cx| response.body_mut().poll_chunk(cx)).await
}

/// Why a body was not read to its end.
pub(crate) enum FetchBodyError {
    TooLong,
    BrokeOff(FetchError),
}

/// Reads the body of a response, of at most `limit` bytes.
pub(crate) async fn read_body(mut response: FetchResponse, limit: usize) -> Result<Vec<u8>, FetchBodyError> {
    let mut body = Vec::new();
    while let Some(piece) = next_piece(&mut response).await {
        let piece = piece.map_err(FetchBodyError::BrokeOff)?;
        if body.len().saturating_add(piece.len()) > limit {
            return Err(FetchBodyError::TooLong);
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
            (FetchError::not_sent("no"), false, false),
            (FetchError::invalid_request("no"), false, true),
            (FetchError::interrupted("no"), true, false),
        ] {
            assert_eq!((error.may_be_sent(), error.is_invalid_request()), (sent, unwritable), "{error:?}");
            assert!(error.source().is_none());
            let error = error.with_source("because");
            assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("because"));
            assert_eq!((error.may_be_sent(), error.is_invalid_request()), (sent, unwritable), "{error:?}");
        }
    }
}
