//! Who makes the requests: whatever can send one and read what comes back.
//!
//! [`reqwest`] does in programs, unless a target has one of its own. The simulator has one with a server behind it that cuts,
//! repeats and delays.

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

/// A request that is under way. Dropping it gives the request up.
pub type Fetching = Pin<Box<dyn Future<Output = Result<FetchResponse, FetchError>> + Send>>;

/// What a server says. Dropping the body gives up what has not been read of it.
pub type FetchResponse = http::Response<Box<dyn FetchBody>>;

/// Makes requests of HTTP. It is called and polled on the workers of the program's runtime, as handlers are, and so are the bodies
/// that it gives: what it blocks is its own request. If it panics, its request may have been seen.
///
/// ```
/// use steadfast::transport::http::{Fetch, FetchError, FetchRequest, Fetching, HttpTarget};
///
/// /// There is no network here.
/// struct Offline;
///
/// impl Fetch for Offline {
///     fn fetch(&self, _: FetchRequest) -> Fetching {
///         Box::pin(async { Err(FetchError::unsent("there is no network")) })
///     }
/// }
///
/// let target = HttpTarget::new("http://localhost/mcp").fetch(Offline);
/// ```
pub trait Fetch: Send + Sync + 'static {
    /// Makes a request, and is ready when the head of its response is there.
    fn fetch(&self, request: FetchRequest) -> Fetching;
}

/// The body of a response, in pieces as they come.
pub trait FetchBody: Send {
    /// The next piece; `None` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FetchError>>>;
}

/// A request to be made.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchRequest {
    /// GET, POST or DELETE.
    pub method: Method,
    /// Where to.
    pub url: String,
    /// All headers that are not those of the connection.
    pub headers: HeaderMap,
    /// What it carries.
    pub body: Option<Bytes>,
    /// How long it may take, with the body of its response.
    pub timeout: Option<Duration>,
}

/// Shows neither the URL nor the headers, which may hold secrets.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("FetchRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Why there is no response, or not all of it.
#[derive(Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What is known of the request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FetchErrorKind {
    Unsent,
    Unwritable,
    Broken,
}

impl FetchError {
    /// The server cannot have seen a byte of the request: what it asked for was surely not done.
    pub fn unsent(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Unsent, why.into())
    }

    /// There is no such request in HTTP: making it again changes nothing.
    pub fn unwritable(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Unwritable, why.into())
    }

    /// The server may have seen the request.
    pub fn broken(why: impl Into<String>) -> Self {
        Self::new(FetchErrorKind::Broken, why.into())
    }

    fn new(kind: FetchErrorKind, why: String) -> Self {
        Self { kind, why, source: None }
    }

    /// The error behind it, for [`source`](std::error::Error::source). What it shows must hold no secrets, such as those of a
    /// URL.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use std::io;
    /// use steadfast::transport::http::FetchError;
    ///
    /// let cut = io::Error::from(io::ErrorKind::ConnectionReset);
    /// let error = FetchError::broken("the server hung up").with_source(cut);
    /// assert!(error.is_sent() && error.source().is_some_and(|source| source.is::<io::Error>()));
    /// ```
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether the server may have seen the request.
    pub fn is_sent(&self) -> bool {
        self.kind == FetchErrorKind::Broken
    }

    /// Whether there is no such request in HTTP.
    pub fn is_unwritable(&self) -> bool {
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
pub(crate) async fn piece_of(response: &mut FetchResponse) -> Option<Result<Bytes, FetchError>> {
    std::future::poll_fn(|cx| response.body_mut().poll_piece(cx)).await
}

/// Why a body was not read to its end.
pub(crate) enum NoBody {
    TooLong,
    BrokeOff(FetchError),
}

/// The body of a response, if it is not too long.
pub(crate) async fn body_of(mut response: FetchResponse, longest: usize) -> Result<Vec<u8>, NoBody> {
    let mut body = Vec::new();
    while let Some(piece) = piece_of(&mut response).await {
        let piece = piece.map_err(NoBody::BrokeOff)?;
        if body.len().saturating_add(piece.len()) > longest {
            return Err(NoBody::TooLong);
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
    fn an_error_says_what_is_known_and_what_is_behind_it() {
        for (error, sent, unwritable) in [
            (FetchError::unsent("no"), false, false),
            (FetchError::unwritable("no"), false, true),
            (FetchError::broken("no"), true, false),
        ] {
            assert_eq!((error.is_sent(), error.is_unwritable()), (sent, unwritable), "{error:?}");
            assert!(error.source().is_none());
            let error = error.with_source("because");
            assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("because"));
            assert_eq!((error.is_sent(), error.is_unwritable()), (sent, unwritable), "{error:?}");
        }
    }
}
