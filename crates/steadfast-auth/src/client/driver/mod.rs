//! The flow with tokio around it: requests sent, users asked, tokens kept and shown.

mod attempt;
#[cfg(feature = "steadfast")]
mod authorize;
mod authorizer;
mod builder;
mod drive;
mod kept;
mod loopback;
mod page;
mod refresh;
mod refusals;
mod renew;
mod sign_out;
mod turn;

pub use attempt::{Attempt, Verdict};
pub use authorizer::Authorizer;
pub use builder::AuthorizerBuilder;
pub use loopback::{Loopback, open_browser};

use url::Url;

use super::store::Later;
use super::{Error, Secret};

/// Asks the user. [`Loopback`] does it with a browser on this machine.
pub trait UserAgent: Send + Sync + 'static {
    /// Gets ready for the user's answer: best at `preferred`, where the authorization server expects it already.
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> Later<'a, Result<Box<dyn Visit>, Error>>;
}

/// A user agent that is ready. Dropping it gives up.
pub trait Visit: Send {
    /// Where the authorization server is to send the user afterwards.
    fn redirect_uri(&self) -> &str;

    /// Shows the URL to the user, and waits for the query that they come back with.
    fn visit(self: Box<Self>, url: Url) -> Later<'static, Result<String, Error>>;
}

/// Where assertions come from: the ID token of a single sign-on, or the JWT of the platform that a program runs on.
pub trait AssertionSource: Send + Sync + 'static {
    /// An assertion that is good now, for this authorization server and this resource.
    fn assertion<'a>(&'a self, issuer: &'a str, resource: &'a str) -> Later<'a, Result<Secret, Error>>;
}

/// The same assertion each time, for those that live long enough.
impl AssertionSource for Secret {
    fn assertion<'a>(&'a self, _: &'a str, _: &'a str) -> Later<'a, Result<Secret, Error>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}
