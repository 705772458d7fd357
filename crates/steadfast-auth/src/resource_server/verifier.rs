//! Verification of tokens.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::{AccessToken, Principal, Scopes};

/// The future of a verification, returned by [`TokenVerifier::verify`].
pub type TokenVerifierFuture<'a> = Pin<Box<dyn Future<Output = Result<Principal, TokenRejection>> + Send + 'a>>;

/// Verifies an access token, and returns the principal of the token.
///
/// A verifier must check that the token was issued *for this server* (its audience), that it is currently valid, and that its
/// issuer is trusted. A verifier may be called concurrently, and its future may be dropped before it completes.
pub trait TokenVerifier: Send + Sync + 'static {
    /// Verifies one token.
    fn verify<'a>(&'a self, token: &'a AccessToken) -> TokenVerifierFuture<'a>;
}

impl<V: TokenVerifier + ?Sized> TokenVerifier for std::sync::Arc<V> {
    fn verify<'a>(&'a self, token: &'a AccessToken) -> TokenVerifierFuture<'a> {
        (**self).verify(token)
    }
}

/// Why the resource server rejects an access token.
///
/// The reasons of a rejection are static texts, so they cannot contain a part of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRejection {
    /// The token is malformed, unknown, revoked, or has a wrong signature.
    Invalid(&'static str),
    /// The token has expired.
    Expired,
    /// The token was issued for another server.
    WrongAudience,
    /// The token is valid, but lacks some of these required scopes.
    InsufficientScope(Scopes),
    /// The token cannot be verified at the moment: something that the verifier depends on is not available.
    Unavailable(&'static str),
}

impl TokenRejection {
    /// The reason why the token is rejected, for the client and the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(reason) | Self::Unavailable(reason) => reason,
            Self::Expired => "the token has expired",
            Self::WrongAudience => "the token was issued for another resource",
            Self::InsufficientScope(_) => "the token lacks a scope that the request requires",
        }
    }
}

impl fmt::Display for TokenRejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason())
    }
}

impl std::error::Error for TokenRejection {}

/// Creates a token verifier from an async closure, or from a function that returns a future.
///
/// ```
/// use steadfast_auth::resource_server::{Principal, TokenRejection, AccessToken, verify_with};
///
/// let verifier = verify_with(async |token: AccessToken| {
///     if token.expose() == "the-only-token" { Ok(Principal::new("me")) } else { Err(TokenRejection::Invalid("unknown token")) }
/// });
/// # let _ = verifier;
/// ```
pub fn verify_with<F, O>(function: F) -> impl TokenVerifier
where
    F: Fn(AccessToken) -> O + Send + Sync + 'static,
    O: Future<Output = Result<Principal, TokenRejection>> + Send + 'static,
{
    struct FunctionVerifier<F>(F);

    impl<F, O> TokenVerifier for FunctionVerifier<F>
    where
        F: Fn(AccessToken) -> O + Send + Sync + 'static,
        O: Future<Output = Result<Principal, TokenRejection>> + Send + 'static,
    {
        fn verify<'a>(&'a self, token: &'a AccessToken) -> TokenVerifierFuture<'a> {
            Box::pin((self.0)(token.duplicate()))
        }
    }

    FunctionVerifier(function)
}
