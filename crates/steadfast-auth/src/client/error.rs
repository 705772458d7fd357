//! Why there is no token, and whose fault that is. No error holds a secret.

use std::fmt;

use super::random::NoRandomness;
use super::store::StoreError;
use crate::{HttpError, Scopes};

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answered at a URL.
    Unreachable {
        /// What was asked for.
        what: &'static str,
        /// What the HTTP client says.
        cause: HttpError,
    },
    /// An answer that is none: a status that means neither yes nor no.
    Unavailable {
        /// What was asked for.
        what: &'static str,
        /// The status of the answer.
        status: u16,
    },
    /// A URL that must not be asked: not encrypted, or pointing inside from outside.
    UnsafeUrl(String),
    /// The server says nowhere who gives tokens for it.
    NoResourceMetadata,
    /// The metadata is that of another resource.
    ResourceMismatch {
        /// The resource that the metadata is about.
        found: String,
    },
    /// There is no metadata of the authorization server.
    NoServerMetadata {
        /// The authorization server.
        issuer: String,
    },
    /// The metadata is that of another authorization server.
    IssuerMismatch {
        /// The authorization server that was asked.
        expected: String,
        /// The one that the metadata is about.
        found: String,
    },
    /// A document of a server lacks something or is not what it should be.
    Invalid {
        /// Which document.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The authorization server does not offer PKCE with S256.
    NoPkce,
    /// The client has no name that this authorization server would know, and no way to get one.
    NoClient {
        /// The authorization server.
        issuer: String,
    },
    /// The client's credentials are for another authorization server.
    IssuerChanged {
        /// The one that they are for.
        registered: String,
        /// The one that the server names now.
        found: String,
    },
    /// The authorization server did not register the client.
    RegistrationRefused(Refusal),
    /// The answer of the authorization server does not belong to the question: it is thrown away, with whatever it says.
    ForeignRedirect(&'static str),
    /// The user, or the authorization server, said no.
    Denied(Refusal),
    /// The user could not be asked, or did not answer.
    NoUser(String),
    /// The authorization server gave no token.
    TokenRefused(Refusal),
    /// A request needs scopes that asking again would not bring.
    InsufficientScope(Option<Scopes>),
    /// The server refuses tokens that were just issued for it.
    Rejected,
    /// The request is not one to the server that the tokens are for.
    ForeignRequest,
    /// A key that cannot be used.
    UnusableKey(&'static str),
    /// The assertion that stands for the user or the workload is not to be had.
    NoAssertion(String),
    /// The store failed.
    Store(StoreError),
    /// There is no randomness.
    Randomness(NoRandomness),
    /// The flow was told something that it did not wait for.
    Misuse(&'static str),
}

/// So many characters of a secret in a row are not in a text by chance.
const TELLING: usize = 16;

/// What an authorization server says when it says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code, such as `invalid_grant`. Anything that does not look like one is `unknown`.
    pub code: String,
    /// A text for people, if there is one and it repeats nothing secret.
    pub description: Option<String>,
}

impl Refusal {
    /// From what a server wrote: only what looks like a code, and no description that repeats something that was sent.
    pub(super) fn new(code: &str, description: Option<&str>, sent: &[&str]) -> Self {
        let is_code =
            !code.is_empty() && code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let repeats = |text: &str| sent.iter().any(|secret| repeats(text, secret));
        let code = if is_code && !repeats(code) { code.to_owned() } else { String::from("unknown") };
        let shown = |text: &str| text.chars().filter(|character| !character.is_control()).take(300).collect();
        let description: Option<String> = description.map(shown);
        Self { code, description: description.filter(|text| !text.is_empty() && !repeats(text)) }
    }
}

/// Whether so much of a secret is in a text that it helps to guess the rest.
fn repeats(text: &str, secret: &str) -> bool {
    let length = secret.len().min(TELLING);
    let has = |part: &[u8]| text.as_bytes().windows(length).any(|window| window == part);
    length >= 4 && secret.as_bytes().windows(length).any(has)
}

impl fmt::Display for Refusal {
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
            Self::Unreachable { what, cause } => write!(formatter, "no answer when asking for {what}: {cause}"),
            Self::Unavailable { what, status } => write!(formatter, "status {status} when asking for {what}"),
            Self::UnsafeUrl(url) => write!(formatter, "{url:?} must not be asked: not encrypted, or pointing inside"),
            Self::NoResourceMetadata => formatter.write_str("the server does not say who gives tokens for it"),
            Self::ResourceMismatch { found } => write!(formatter, "the resource metadata is about {found:?}"),
            Self::NoServerMetadata { issuer } => write!(formatter, "{issuer:?} publishes no metadata"),
            Self::IssuerMismatch { expected, found } => {
                write!(formatter, "the metadata of {expected:?} says that it is about {found:?}")
            }
            Self::Invalid { what, problem } => write!(formatter, "the {what} {problem}"),
            Self::NoPkce => formatter.write_str("the authorization server does not offer PKCE with S256"),
            Self::NoClient { issuer } => {
                write!(formatter, "the client is not known to {issuer:?}, and there is no way to register it")
            }
            Self::IssuerChanged { registered, found } => {
                write!(formatter, "the client is registered with {registered:?}, the server now names {found:?}")
            }
            Self::RegistrationRefused(refusal) => write!(formatter, "the client was not registered: {refusal}"),
            Self::ForeignRedirect(problem) => write!(formatter, "the authorization response was refused: {problem}"),
            Self::Denied(refusal) => write!(formatter, "access was denied: {refusal}"),
            Self::NoUser(problem) => write!(formatter, "the user was not reached: {problem}"),
            Self::TokenRefused(refusal) => write!(formatter, "no token was issued: {refusal}"),
            Self::InsufficientScope(Some(scopes)) => write!(formatter, "access needs the scopes \"{scopes}\""),
            Self::InsufficientScope(None) => formatter.write_str("access needs other scopes"),
            Self::Rejected => formatter.write_str("the server refuses tokens that were just issued for it"),
            Self::ForeignRequest => {
                formatter.write_str("the request does not go to the server that the tokens are for")
            }
            Self::UnusableKey(problem) => write!(formatter, "the key cannot be used: {problem}"),
            Self::NoAssertion(problem) => write!(formatter, "there is no assertion: {problem}"),
            Self::Store(error) => write!(formatter, "the token store failed: {error}"),
            Self::Randomness(error) => error.fmt(formatter),
            Self::Misuse(problem) => formatter.write_str(problem),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable { cause, .. } => Some(cause),
            Self::Store(error) => Some(error),
            Self::Randomness(error) => Some(error),
            _ => None,
        }
    }
}

impl From<NoRandomness> for Error {
    fn from(error: NoRandomness) -> Self {
        Self::Randomness(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_not_repeated() {
        let refusal = Refusal::new("invalid_grant", Some("no such token: s3cr3t!"), &["s3cr3t"]);
        assert_eq!((refusal.code.as_str(), refusal.description), ("invalid_grant", None));
        let refusal = Refusal::new("s3cr3t", Some("a\r\nb"), &["s3cr3t"]);
        assert_eq!(refusal.to_string(), "unknown (ab)");
    }
}
