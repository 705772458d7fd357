//! The tokio driver of the OAuth flow: sends the requests of the flow, asks the user, stores tokens, and adds tokens to the
//! requests to the MCP server.

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

/// Asks the user to log in at the authorization server. [`LoopbackUserAgent`] opens a browser on this machine for that.
pub trait UserAgent: Send + Sync + 'static {
    /// Prepares to receive the redirect of the user's browser, if possible at `preferred`, the redirect URI that is registered
    /// already.
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>>;
}

/// A login of the user that is ready to receive the OAuth redirect. Dropping a [`UserLogin`] cancels the login.
pub trait UserLogin: Send {
    /// The redirect URI for the authorization request.
    fn redirect_uri(&self) -> &str;

    /// Shows the authorization URL to the user, waits for the OAuth redirect, and returns its query.
    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>>;
}

/// Provides assertions: the ID token of a single sign-on, or the JWT of the platform that the program runs on.
pub trait AssertionSource: Send + Sync + 'static {
    /// Returns a currently valid assertion for this authorization server and this resource.
    fn assertion<'a>(&'a self, issuer: &'a str, resource: &'a str) -> BoxFuture<'a, Result<Secret, Error>>;
}

/// A [`Secret`] provides itself as the assertion each time, for assertions with a long lifetime.
impl AssertionSource for Secret {
    fn assertion<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Secret, Error>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}
