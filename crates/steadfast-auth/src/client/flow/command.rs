//! What an OAuth flow of a client asks its driver to do, and the results that the driver returns.

use std::fmt;

use http::{Request, Response};
use url::Url;

use crate::client::challenge::WwwAuthenticateChallenge;
use crate::client::registration::ClientRegistration;
use crate::client::token::Tokens;
use crate::client::url_policy::redact_url;
use crate::client::{Error, Secret};
use crate::{HttpClientBody, HttpClientError};

/// What the driver of an OAuth flow has to do next. The driver passes the result to
/// [`OAuthFlow::handle`](super::OAuthFlow::handle) as an [`OAuthFlowCommandResult`].
#[non_exhaustive]
pub enum OAuthFlowCommand {
    /// Send this HTTP request without following redirects. Result: [`OAuthFlowCommandResult::Response`] or
    /// [`OAuthFlowCommandResult::Unreachable`].
    Send(Request<HttpClientBody>),
    /// Load the client registration at this authorization server from the token store. Result:
    /// [`OAuthFlowCommandResult::RegistrationLoaded`].
    LoadRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// Prepare to receive the redirect of the user's browser, if possible at the redirect URI that is registered already.
    /// Result: [`OAuthFlowCommandResult::RedirectReady`].
    PrepareRedirect {
        /// The redirect URI in the existing client registration, if there is one.
        preferred: Option<String>,
    },
    /// Show this authorization URL to the user, and wait for the OAuth redirect. Result:
    /// [`OAuthFlowCommandResult::Redirected`].
    Visit(Url),
    /// Get the OAuth assertion for the user or the workload. Result: [`OAuthFlowCommandResult::Assertion`].
    FetchAssertion {
        /// The authorization server that the assertion is sent to.
        issuer: String,
        /// The resource that the token is for.
        resource: String,
    },
    /// The flow succeeded.
    Authorized(Box<OAuthGrant>),
    /// The flow failed.
    Failed(Error),
}

/// The result of a successful OAuth flow.
#[derive(Clone, Debug)]
pub struct OAuthGrant {
    /// The tokens.
    pub tokens: Tokens,
    /// The client registration at the issuer of the tokens, if the client registered itself.
    pub registration: Option<ClientRegistration>,
    /// Whether the tokens were obtained by a refresh; if not, by a new authorization.
    pub refreshed: bool,
}

/// Stored credentials of the client that an authorization server does not accept any more.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CredentialInvalidation {
    /// The tokens whose refresh token was refused.
    pub refresh_token_of: Option<Box<Tokens>>,
    /// An issuer, and the client id that it does not know any more.
    pub client: Option<(String, String)>,
}

/// The result of an [`OAuthFlowCommand`].
#[non_exhaustive]
pub enum OAuthFlowCommandResult {
    /// The HTTP response to the request of [`OAuthFlowCommand::Send`], whatever its status.
    Response(Response<HttpClientBody>),
    /// The HTTP request of [`OAuthFlowCommand::Send`] got no response.
    Unreachable(HttpClientError),
    /// The client registration from the token store, if there is one.
    RegistrationLoaded(Option<ClientRegistration>),
    /// The redirect URI.
    RedirectReady(String),
    /// The query of the OAuth redirect.
    Redirected(String),
    /// The assertion.
    Assertion(Secret),
}

/// What the client knows when an OAuth flow starts.
#[derive(Clone, Debug, Default)]
pub struct OAuthFlowStart {
    /// The challenge in the MCP server's `WWW-Authenticate` header, if there is one.
    pub challenge: Option<WwwAuthenticateChallenge>,
    /// The current tokens.
    pub tokens: Option<Tokens>,
    /// Whether to try a refresh of the tokens first. A refresh does not help when the server requires more scopes.
    pub may_refresh: bool,
    /// The issuer that the MCP server's metadata named when it was last read.
    pub issuer: Option<String>,
}

impl fmt::Debug for OAuthFlowCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(request) => {
                write!(formatter, "Send({} {})", request.method(), redact_url(&request.uri().to_string()))
            }
            Self::LoadRegistration { issuer } => write!(formatter, "LoadRegistration({issuer:?})"),
            Self::PrepareRedirect { preferred } => write!(formatter, "PrepareRedirect({preferred:?})"),
            Self::Visit(url) => write!(formatter, "Visit({})", redact_url(url.as_str())),
            Self::FetchAssertion { issuer, resource } => {
                write!(formatter, "FetchAssertion({issuer:?}, {:?})", redact_url(resource))
            }
            Self::Authorized(outcome) => write!(formatter, "Authorized({outcome:?})"),
            Self::Failed(error) => write!(formatter, "Failed({error:?})"),
        }
    }
}

/// The debug output omits the contents of a command result, which may be secret.
impl fmt::Debug for OAuthFlowCommandResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Response(_) => "Response",
            Self::Unreachable(_) => "Unreachable",
            Self::RegistrationLoaded(_) => "RegistrationLoaded",
            Self::RedirectReady(_) => "RedirectReady",
            Self::Redirected(_) => "Redirected",
            Self::Assertion(_) => "Assertion",
        })
    }
}
