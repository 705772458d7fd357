//! Errors of the OAuth client, none of which contains a secret.

use std::fmt;

use super::random::RandomUnavailable;
use super::store::TokenStoreError;
use crate::{HttpClientError, Scopes};

/// Why the OAuth client could not obtain or use an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An HTTP request of the OAuth client got no response.
    Unreachable {
        /// What was requested.
        what: &'static str,
        /// The error of the HTTP client.
        cause: HttpClientError,
    },
    /// A server responded to the OAuth client with a status that is neither a success nor a refusal, such as 503.
    Unavailable {
        /// What was requested.
        what: &'static str,
        /// The HTTP status of the response, such as 503.
        status: u16,
    },
    /// A URL that the OAuth client must not use: it is malformed, not encrypted, or refers from the internet to a private
    /// network.
    UnsafeUrl(String),
    /// The MCP server has no protected resource metadata, so its authorization server is unknown.
    NoResourceMetadata,
    /// The protected resource metadata describes another resource than the MCP server.
    ResourceMismatch {
        /// The resource that the metadata describes.
        found: String,
    },
    /// The authorization server has no metadata.
    NoServerMetadata {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server metadata names another issuer than the one that it was requested for.
    IssuerMismatch {
        /// The issuer that the authorization server metadata was requested for.
        expected: String,
        /// The issuer that the authorization server metadata names.
        found: String,
    },
    /// A metadata document or an OAuth response of a server is incomplete or malformed.
    Invalid {
        /// Which document.
        what: &'static str,
        /// What is wrong with the metadata document or OAuth response.
        problem: &'static str,
    },
    /// The authorization server does not support PKCE with S256.
    NoPkce,
    /// The client has no client id at this authorization server, and cannot register.
    NoClient {
        /// The authorization server.
        issuer: String,
    },
    /// The client is registered at another authorization server than the one that the MCP server's metadata names now.
    IssuerChanged {
        /// The issuer that the client is registered at.
        registered: String,
        /// The issuer that the MCP server's metadata names now.
        found: String,
    },
    /// The authorization server refused to register the client.
    RegistrationRefused(OAuthErrorResponse),
    /// The OAuth redirect does not match the authorization request, so the client discards it.
    InvalidRedirect(&'static str),
    /// The user or the authorization server denied access.
    Denied(OAuthErrorResponse),
    /// The user could not be asked to log in, or did not log in in time.
    UserUnavailable(String),
    /// The authorization server refused to issue a token.
    TokenRefused(OAuthErrorResponse),
    /// The MCP server requires scopes that the client has already requested and that were not granted.
    InsufficientScope(Option<Scopes>),
    /// The MCP server rejects access tokens that were just issued for it.
    TokenRejected,
    /// The URL of the request has another origin than the MCP server that the tokens were issued for.
    WrongOrigin,
    /// A key or secret of the client cannot be used.
    UnusableKey(&'static str),
    /// The assertion for the user or the workload is not available.
    NoAssertion(String),
    /// The store failed.
    Store(TokenStoreError),
    /// The OAuth client's source of randomness failed.
    RandomSource(RandomUnavailable),
    /// The API was used wrongly, for example an [`OAuthFlow`](super::OAuthFlow) got the result of a command that it did not
    /// issue.
    Misuse(&'static str),
}

/// A text that contains this many consecutive characters of a secret is taken to leak the secret.
const MIN_LEAK_LENGTH: usize = 16;

/// The error response of an authorization server (RFC 6749, section 5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthErrorResponse {
    /// The OAuth error code, such as `invalid_grant`. A text that does not look like an OAuth error code is replaced by
    /// `unknown`.
    pub code: String,
    /// The error description, if the server sent one and it contains no secret of the request.
    pub description: Option<String>,
}

impl OAuthErrorResponse {
    /// Keeps the error code only if it looks like one, and the error description only if it repeats none of the secrets in
    /// `sent`.
    pub(super) fn new(code: &str, description: Option<&str>, sent: &[&str]) -> Self {
        let is_code =
            !code.is_empty() && code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let repeats = |text: &str| sent.iter().any(|secret| repeats(text, secret));
        let code = if is_code && !repeats(code) { code.to_owned() } else { String::from("unknown") };
        let printable = |text: &str| text.chars().filter(|character| !character.is_control()).take(300).collect();
        let description: Option<String> = description.map(printable);
        Self { code, description: description.filter(|text| !text.is_empty() && !repeats(text)) }
    }
}

/// Whether a text contains a large part of a secret.
fn repeats(text: &str, secret: &str) -> bool {
    let length = secret.len().min(MIN_LEAK_LENGTH);
    let has = |part: &[u8]| text.as_bytes().windows(length).any(|window| window == part);
    length >= 4 && secret.as_bytes().windows(length).any(has)
}

impl fmt::Display for OAuthErrorResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(description) => write!(formatter, "{} ({description})", self.code),
            None => formatter.write_str(&self.code),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { what, cause } => write!(formatter, "request for {what} failed: {cause}"),
            Self::Unavailable { what, status } => write!(formatter, "request for {what} failed with status {status}"),
            Self::UnsafeUrl(url) => {
                write!(formatter, "unsafe URL {url:?}: malformed, not encrypted, or referring to a private network")
            }
            Self::NoResourceMetadata => formatter.write_str("the server has no protected resource metadata"),
            Self::ResourceMismatch { found } => {
                write!(formatter, "the protected resource metadata is that of another resource: {found:?}")
            }
            Self::NoServerMetadata { issuer } => {
                write!(formatter, "the authorization server {issuer:?} has no metadata")
            }
            Self::IssuerMismatch { expected, found } => {
                write!(formatter, "issuer mismatch: the metadata of {expected:?} names the issuer {found:?}")
            }
            Self::Invalid { what, problem } => write!(formatter, "the {what} {problem}"),
            Self::NoPkce => formatter.write_str("the authorization server does not support PKCE with S256"),
            Self::NoClient { issuer } => {
                write!(
                    formatter,
                    "the client is not registered at {issuer:?}, which does not support dynamic registration"
                )
            }
            Self::IssuerChanged { registered, found } => {
                write!(
                    formatter,
                    "issuer changed: the client is registered at {registered:?}, the server now uses {found:?}"
                )
            }
            Self::RegistrationRefused(refusal) => write!(formatter, "client registration failed: {refusal}"),
            Self::InvalidRedirect(problem) => write!(formatter, "invalid authorization response: {problem}"),
            Self::Denied(refusal) => write!(formatter, "the authorization was denied: {refusal}"),
            Self::UserUnavailable(problem) => write!(formatter, "the user is not available: {problem}"),
            Self::TokenRefused(refusal) => write!(formatter, "token request refused: {refusal}"),
            Self::InsufficientScope(Some(scopes)) => write!(formatter, "insufficient scope: \"{scopes}\" is required"),
            Self::InsufficientScope(None) => formatter.write_str("insufficient scope"),
            Self::TokenRejected => formatter.write_str("the server rejects tokens that were just issued for it"),
            Self::WrongOrigin => {
                formatter.write_str("the request has another origin than the server that the tokens were issued for")
            }
            Self::UnusableKey(problem) => write!(formatter, "unusable key: {problem}"),
            Self::NoAssertion(problem) => write!(formatter, "no assertion available: {problem}"),
            Self::Store(error) => write!(formatter, "token store failed: {error}"),
            Self::RandomSource(error) => error.fmt(formatter),
            Self::Misuse(problem) => formatter.write_str(problem),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { cause, .. } => Some(cause),
            Self::Store(error) => Some(error),
            Self::RandomSource(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RandomUnavailable> for Error {
    fn from(error: RandomUnavailable) -> Self {
        Self::RandomSource(error)
    }
}

impl From<TokenStoreError> for Error {
    fn from(error: TokenStoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_not_repeated() {
        let refusal = OAuthErrorResponse::new("invalid_grant", Some("no such token: s3cr3t!"), &["s3cr3t"]);
        assert_eq!((refusal.code.as_str(), refusal.description), ("invalid_grant", None));
        let refusal = OAuthErrorResponse::new("s3cr3t", Some("a\r\nb"), &["s3cr3t"]);
        assert_eq!(refusal.to_string(), "unknown (ab)");
    }
}
