//! What a flow says and what it is told.

use std::fmt;

use http::{Request, Response};
use url::Url;

use super::super::challenge::Challenge;
use super::super::reach::shown;
use super::super::registration::Registration;
use super::super::token::Tokens;
use super::super::{Error, Secret};
use crate::{HttpError, Payload};

/// What to do next.
#[non_exhaustive]
pub enum Command {
    /// Send this, follow no redirect, and come back with [`Event::Response`] or [`Event::Unreachable`].
    Send(Request<Payload>),
    /// Look up what the client is called at this authorization server, and come back with [`Event::Recalled`].
    Recall {
        /// The authorization server.
        issuer: String,
    },
    /// Get ready for the user's answer, best at the address that is registered already, and come back with
    /// [`Event::RedirectReady`].
    PrepareRedirect {
        /// Where answers went before.
        preferred: Option<String>,
    },
    /// Show this to the user, and come back with [`Event::Redirected`].
    Visit(Url),
    /// Get the assertion that stands for the user or the workload, and come back with [`Event::Assertion`].
    Assert {
        /// The authorization server that it will be shown to.
        issuer: String,
        /// What a token is wanted for.
        resource: String,
    },
    /// There is a token.
    Authorized(Box<Outcome>),
    /// There is none.
    Failed(Error),
}

/// What came of a flow.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tokens.
    pub tokens: Tokens,
    /// What the client is called at their issuer from now on, if it registered.
    pub registration: Option<Registration>,
    /// Whether they came by refreshing others. If not, they are the best that there is.
    pub refreshed: bool,
}

/// What an authorization server does not know any more.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Forgotten {
    /// The tokens whose refresh token was refused.
    pub refresh_token_of: Option<Box<Tokens>>,
    /// An issuer, and what the client was called there.
    pub client: Option<(String, String)>,
}

/// What came of a command.
#[non_exhaustive]
pub enum Event {
    /// An answer, whatever its status.
    Response(Response<Payload>),
    /// No answer.
    Unreachable(HttpError),
    /// What the client is called.
    Recalled(Option<Registration>),
    /// Where answers go.
    RedirectReady(String),
    /// The query that the user came back with.
    Redirected(String),
    /// An assertion.
    Assertion(Secret),
}

/// What is known when a flow begins.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    /// What the server asks for.
    pub challenge: Option<Challenge>,
    /// The tokens until now.
    pub tokens: Option<Tokens>,
    /// Whether refreshing them would help. It does not when the server wants more scopes.
    pub may_refresh: bool,
    /// The issuer that this server named the last time.
    pub issuer: Option<String>,
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(request) => {
                write!(formatter, "Send({} {})", request.method(), shown(&request.uri().to_string()))
            }
            Self::Recall { issuer } => write!(formatter, "Recall({issuer:?})"),
            Self::PrepareRedirect { preferred } => write!(formatter, "PrepareRedirect({preferred:?})"),
            Self::Visit(url) => write!(formatter, "Visit({})", shown(url.as_str())),
            Self::Assert { issuer, resource } => write!(formatter, "Assert({issuer:?}, {:?})", shown(resource)),
            Self::Authorized(outcome) => write!(formatter, "Authorized({outcome:?})"),
            Self::Failed(error) => write!(formatter, "Failed({error:?})"),
        }
    }
}

/// Without what came in, which may be secret.
impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Response(_) => "Response",
            Self::Unreachable(_) => "Unreachable",
            Self::Recalled(_) => "Recalled",
            Self::RedirectReady(_) => "RedirectReady",
            Self::Redirected(_) => "Redirected",
            Self::Assertion(_) => "Assertion",
        })
    }
}
