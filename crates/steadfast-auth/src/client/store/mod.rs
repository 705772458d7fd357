//! Stores for the tokens of an OAuth client, and the locks of these stores.
//!
//! A token store knows nothing of OAuth: it maps [`TokenStoreKey`]s to secret texts, and has a lock per key. The contents of
//! the stored texts are private to this crate.

mod file;
mod memory;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use file::FileTokenStore;
pub use memory::MemoryTokenStore;

use super::Secret;
use super::url_policy::redact_url;

/// The boxed future that the methods of `TokenStore`, `UserAgent`, `UserLogin` and `AssertionSource` return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The key of an entry in a token store. Keys of a token store are compared byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenStoreKey {
    /// The issuer and resource that the metadata of an MCP server had when it was last read.
    Server {
        /// The URL of the MCP server.
        url: String,
    },
    /// The client registration at an authorization server.
    Client {
        /// The authorization server.
        issuer: String,
    },
    /// Tokens.
    Tokens {
        /// Their issuer.
        issuer: String,
        /// The resource that the tokens are for.
        resource: String,
    },
}

/// The debug output omits the queries of URLs, which may contain keys.
impl fmt::Debug for TokenStoreKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { url } => write!(formatter, "Server({:?})", redact_url(url)),
            Self::Client { issuer } => write!(formatter, "Client({:?})", redact_url(issuer)),
            Self::Tokens { issuer, resource } => {
                write!(formatter, "Tokens({:?}, {:?})", redact_url(issuer), redact_url(resource))
            }
        }
    }
}

impl fmt::Display for TokenStoreKey {
    /// Writes one line of text that is unique for each key of a token store.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { url } => write!(formatter, "server {url:?}"),
            Self::Client { issuer } => write!(formatter, "client {issuer:?}"),
            Self::Tokens { issuer, resource } => write!(formatter, "tokens {issuer:?} {resource:?}"),
        }
    }
}

/// The lock of a key in a token store. Dropping a [`TokenStoreLockGuard`] releases the lock.
pub struct TokenStoreLockGuard(#[allow(dead_code, reason = "the guard is held to keep the lock")] Box<dyn Any + Send>);

impl TokenStoreLockGuard {
    /// Creates the lock of a token store key, which is released when `guard` is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for TokenStoreLockGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenStoreLockGuard")
    }
}

/// Stores the tokens and client registrations of an OAuth client, for one process or shared by several.
///
/// A reader of the store can act as the user, so an implementation must restrict access to it and log no value.
pub trait TokenStore: Send + Sync + 'static {
    /// Loads the stored value of a key.
    fn load<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>>;

    /// Saves the value of a key atomically: a concurrent reader sees the old value or the new one.
    fn save<'a>(&'a self, key: &'a TokenStoreKey, value: &'a Secret) -> BoxFuture<'a, Result<(), TokenStoreError>>;

    /// Removes the value of a key, if there is one.
    fn remove<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<(), TokenStoreError>>;

    /// Waits for the lock of this key, which is exclusive among all processes that share the store. The client holds the lock
    /// for the duration of a token request, so that a refresh token is used only once.
    fn lock<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<TokenStoreLockGuard, TokenStoreError>>;
}

/// Why a token store failed. The message of a [`TokenStoreError`] must contain no stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStoreError(String);

impl TokenStoreError {
    /// Creates a token store error with this message.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for TokenStoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TokenStoreError {}
