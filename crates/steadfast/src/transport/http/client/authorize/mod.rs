//! Authorization of a client's HTTP requests by code of the program that uses this library.

pub(crate) mod signing;

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

/// The future of one step of a [`RequestAuthorization`]: adding credentials, or handling a response.
pub type RequestAuthorizationFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Adds credentials to the HTTP requests of a client, and reacts when a server refuses a request: OAuth
/// (`steadfast-auth`), or any other scheme. An authorizer runs on the worker threads of the program's runtime, as
/// handlers do, so one that blocks delays only its own request. If an authorizer panics while it adds credentials, its
/// request is not sent.
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
/// use steadfast::transport::http::{Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture};
///
/// /// A fixed token.
/// #[derive(Clone)]
/// struct Token(HeaderValue);
///
/// impl Authorize for Token {
///     fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
///         Box::new(self.clone())
///     }
/// }
///
/// impl RequestAuthorization for Token {
///     fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
///         headers.insert(AUTHORIZATION, self.0.clone());
///         Box::pin(async { Ok(()) })
///     }
/// }
/// ```
pub trait Authorize: Send + Sync + 'static {
    /// Begins the authorization of a request.
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization>;
}

impl<T: Authorize + ?Sized> Authorize for Arc<T> {
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        (**self).attempt(request)
    }
}

/// An HTTP request of a client that is not yet sent, as its authorizer sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OutgoingHttpRequest<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The URL that the request is sent to.
    pub url: &'a str,
}

impl<'a> OutgoingHttpRequest<'a> {
    /// A request with this method to this URL, for authorizers that wrap another one, and for their tests.
    pub fn new(method: &'a Method, url: &'a str) -> Self {
        Self { method, url }
    }
}

/// The authorization of one HTTP request, which may be sent more than once before the server accepts it.
pub trait RequestAuthorization: Send {
    /// Adds the credentials to the headers of the request. Mark secret header values as sensitive, with
    /// `HeaderValue::set_sensitive`.
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()>;

    /// Called when the server has responded to the request with this status and these headers. Return true to send the
    /// request again. The client sends a request again only after 401 and 403, when the server has not acted on it, and
    /// only a few times.
    fn answered<'a>(
        &'a mut self,
        _status: StatusCode,
        _headers: &'a HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}
