//! Authorization of requests by code of the program.

pub(crate) mod signing;

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};

/// The future of one step of a [`RequestAuthorization`].
pub type RequestAuthorizationFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Adds credentials to requests, and reacts when a server refuses them: OAuth (`steadfast-auth`), or any other scheme. It runs on the
/// workers of the program's runtime, as handlers do, so if it blocks it delays only its own request. If it panics, its request is
/// not sent.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Method, header::AUTHORIZATION};
/// use steadfast::transport::http::{RequestAuthorization, Authorize, RequestAuthorizationFuture};
///
/// /// A fixed token.
/// #[derive(Clone)]
/// struct Token(HeaderValue);
///
/// impl Authorize for Token {
///     fn attempt(&self, _: &Method, _: &str) -> Box<dyn RequestAuthorization> {
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
    /// Begins a request to this URL.
    fn attempt(&self, method: &Method, url: &str) -> Box<dyn RequestAuthorization>;
}

impl<T: Authorize + ?Sized> Authorize for Arc<T> {
    fn attempt(&self, method: &Method, url: &str) -> Box<dyn RequestAuthorization> {
        (**self).attempt(method, url)
    }
}

/// One request, which may be sent more than once before the server accepts it.
pub trait RequestAuthorization: Send {
    /// Adds the credentials to the headers. Mark secret values as sensitive.
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> RequestAuthorizationFuture<'a, ()>;

    /// The server responded with this status and these headers. Return true to send the request again; that is done after 401
    /// and 403 only, where the server has not acted on it, and a few times at most.
    fn answered<'a>(
        &'a mut self,
        _status: StatusCode,
        _headers: &'a HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}
