//! What decides whether a token is good.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::{Principal, Scopes, Token};

/// What a [`Verifier`] finds, later.
pub type Verdict<'a> = Pin<Box<dyn Future<Output = Result<Principal, Rejection>> + Send + 'a>>;

/// Decides whether a token is good, and for whom.
///
/// A verifier must make sure that the token was issued *for this server* (its audience), that it is in force, and that its
/// issuer is one that the server trusts. It may be asked for many tokens at once, and an answer may be dropped before it is
/// there.
pub trait Verifier: Send + Sync + 'static {
    /// Looks at one token.
    fn verify<'a>(&'a self, token: &'a Token) -> Verdict<'a>;
}

impl<V: Verifier + ?Sized> Verifier for std::sync::Arc<V> {
    fn verify<'a>(&'a self, token: &'a Token) -> Verdict<'a> {
        (**self).verify(token)
    }
}

/// Why a token is refused.
///
/// Reasons are texts of the program, not of the request, so nothing of a token can be in them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// It is no token of ours: malformed, unknown, revoked, or its signature is wrong.
    Invalid(&'static str),
    /// It was good once.
    Expired,
    /// It was issued for another server.
    WrongAudience,
    /// It is good, but does not allow this. All the scopes that are needed.
    InsufficientScope(Scopes),
    /// Nobody can say at the moment: the verifier depends on something that does not answer.
    Unavailable(&'static str),
}

impl Rejection {
    /// The reason in words, for the client and the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(reason) | Self::Unavailable(reason) => reason,
            Self::Expired => "the token has expired",
            Self::WrongAudience => "the token was issued for another resource",
            Self::InsufficientScope(_) => "the token does not allow this",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason())
    }
}

impl std::error::Error for Rejection {}

/// A verifier that is an async closure, or a function that gives a future.
///
/// ```
/// use steadfast_auth::resource_server::{Principal, Rejection, Token, verify_with};
///
/// let verifier = verify_with(async |token: Token| {
///     if token.expose() == "the-only-token" { Ok(Principal::new("me")) } else { Err(Rejection::Invalid("unknown token")) }
/// });
/// # let _ = verifier;
/// ```
pub fn verify_with<F, O>(function: F) -> impl Verifier
where
    F: Fn(Token) -> O + Send + Sync + 'static,
    O: Future<Output = Result<Principal, Rejection>> + Send + 'static,
{
    struct Function<F>(F);

    impl<F, O> Verifier for Function<F>
    where
        F: Fn(Token) -> O + Send + Sync + 'static,
        O: Future<Output = Result<Principal, Rejection>> + Send + 'static,
    {
        fn verify<'a>(&'a self, token: &'a Token) -> Verdict<'a> {
            Box::pin((self.0)(token.duplicate()))
        }
    }

    Function(function)
}
