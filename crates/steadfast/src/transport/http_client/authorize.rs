//! Who may be asked to let a request in.

use std::error::Error as StdError;
use std::pin::Pin;

use http::{HeaderMap, Method, StatusCode};

/// What an [`Authorize`] comes to.
pub type Authorizing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Brings the headers that let requests in, and deals with servers that refuse them: OAuth, or whatever a server wants.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Method, header::AUTHORIZATION};
/// use steadfast::transport::http_client::{Authorize, Authorizing};
///
/// /// A token that was agreed on beforehand.
/// struct Token(HeaderValue);
///
/// impl Authorize for Token {
///     fn headers<'a>(&'a self, _: &'a Method, _: &'a str) -> Authorizing<'a, HeaderMap> {
///         Box::pin(async { Ok(HeaderMap::from_iter([(AUTHORIZATION, self.0.clone())])) })
///     }
/// }
/// ```
pub trait Authorize: Send + Sync + 'static {
    /// The headers of a request to that URL. Values that must not be shown should be marked as sensitive.
    fn headers<'a>(&'a self, method: &'a Method, url: &'a str) -> Authorizing<'a, HeaderMap>;

    /// The server has answered with 401 or 403. True if the request should be made again: it has not been carried out, so
    /// there is no harm in it. Asked a few times for one request at most.
    fn refused<'a>(&'a self, _refusal: Refusal<'a>) -> Authorizing<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}

/// A request that was not let in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// 401 or 403.
    pub status: StatusCode,
    /// The headers of the response: the challenge among them.
    pub headers: &'a HeaderMap,
    /// The server's URL.
    pub url: &'a str,
}

impl<'a> Refusal<'a> {
    pub(super) fn new(status: StatusCode, headers: &'a HeaderMap, url: &'a str) -> Self {
        Self { status, headers, url }
    }
}
