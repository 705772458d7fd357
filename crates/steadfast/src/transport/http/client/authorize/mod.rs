//! Who may be asked to let a request in.

pub(crate) mod signing;

use std::error::Error as StdError;
use std::pin::Pin;

use http::{HeaderMap, Method, StatusCode};

/// What a step of an [`Attempt`] comes to.
pub type Authorizing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// Brings the headers that let requests in, and deals with servers that refuse them: OAuth (`steadfast-auth`), or whatever a
/// server wants. All of it runs on the workers of the program's runtime, as handlers do: what it blocks is its own request. If it
/// panics, its request is not sent.
///
/// ```
/// use http::{HeaderMap, HeaderValue, Method, header::AUTHORIZATION};
/// use steadfast::transport::http::{Attempt, Authorize, Authorizing};
///
/// /// A token that was agreed on beforehand.
/// #[derive(Clone)]
/// struct Token(HeaderValue);
///
/// impl Authorize for Token {
///     fn attempt(&self, _: &Method, _: &str) -> Box<dyn Attempt> {
///         Box::new(self.clone())
///     }
/// }
///
/// impl Attempt for Token {
///     fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> Authorizing<'a, ()> {
///         headers.insert(AUTHORIZATION, self.0.clone());
///         Box::pin(async { Ok(()) })
///     }
/// }
/// ```
pub trait Authorize: Send + Sync + 'static {
    /// Begins a request to that URL.
    fn attempt(&self, method: &Method, url: &str) -> Box<dyn Attempt>;
}

/// One request, which may be made more than once before it is let in.
pub trait Attempt: Send {
    /// Adds the headers that let it in. Values that must not be shown should be marked as sensitive.
    fn sign<'a>(&'a mut self, headers: &'a mut HeaderMap) -> Authorizing<'a, ()>;

    /// It was answered with this status and these headers. True if it should be made again, which is done after 401 and 403 only,
    /// where it has not been carried out and there is no harm in it; and a few times at most.
    fn answered<'a>(&'a mut self, _status: StatusCode, _headers: &'a HeaderMap) -> Authorizing<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}
