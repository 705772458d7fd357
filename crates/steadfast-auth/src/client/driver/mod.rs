//! The driver of the flow, with tokio: sends requests, asks the user, stores tokens and adds them to requests.

mod attempt;
#[cfg(feature = "steadfast")]
mod authorize;
mod authorizer;
mod builder;
mod denied_scopes;
mod drive;
mod loopback;
mod page;
mod persistence;
mod refresh;
mod renew;
mod renewal_permit;
mod sign_out;

pub use attempt::{OAuthRequestAttempt, OAuthResponseAction};
pub use authorizer::Authorizer;
pub use builder::AuthorizerBuilder;
pub use loopback::{LoopbackUserAgent, open_browser};

use url::Url;

use super::store::BoxFuture;
use super::{Error, Secret};

/// Asks the user. [`LoopbackUserAgent`] does it with a browser on this machine.
pub trait UserAgent: Send + Sync + 'static {
    /// Prepares for the redirect of the user, if possible at `preferred`, the registered redirect URI.
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>>;
}

/// A prepared login of the user. Dropping it cancels the login.
pub trait UserLogin: Send {
    /// The redirect URI for the authorization request.
    fn redirect_uri(&self) -> &str;

    /// Shows the URL to the user, and waits for the query of the redirect.
    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>>;
}

/// Provides assertions: the ID token of a single sign-on, or the JWT of the platform that the program runs on.
pub trait AssertionSource: Send + Sync + 'static {
    /// A currently valid assertion for this authorization server and this resource.
    fn assertion<'a>(&'a self, issuer: &'a str, resource: &'a str) -> BoxFuture<'a, Result<Secret, Error>>;
}

/// The same assertion each time, for assertions with a long lifetime.
impl AssertionSource for Secret {
    fn assertion<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Secret, Error>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}
