//! Where tokens are kept between runs, and how those who share them take turns.
//!
//! A store knows nothing of OAuth: it keeps secret texts under [`Key`]s, and lends one lock per key. What is in the texts is
//! this crate's business.

mod file;
mod memory;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use file::FileStore;
pub use memory::MemoryStore;

use super::Secret;
use super::reach::shown;

/// What a store brings back, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is kept. Names are compared as text, byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Which issuer and resource a server named the last time.
    Server {
        /// The URL of the server.
        url: String,
    },
    /// What the client is called at an authorization server.
    Client {
        /// The authorization server.
        issuer: String,
    },
    /// Tokens.
    Tokens {
        /// Who issued them.
        issuer: String,
        /// What they are for.
        resource: String,
    },
}

/// Without the queries of URLs: some put keys there.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { url } => write!(formatter, "Server({:?})", shown(url)),
            Self::Client { issuer } => write!(formatter, "Client({:?})", shown(issuer)),
            Self::Tokens { issuer, resource } => {
                write!(formatter, "Tokens({:?}, {:?})", shown(issuer), shown(resource))
            }
        }
    }
}

impl fmt::Display for Key {
    /// One line, different for different keys, with all that is in them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { url } => write!(formatter, "server {url:?}"),
            Self::Client { issuer } => write!(formatter, "client {issuer:?}"),
            Self::Tokens { issuer, resource } => write!(formatter, "tokens {issuer:?} {resource:?}"),
        }
    }
}

/// The right to change what is under a key. Dropping it gives it back.
pub struct Lock(#[allow(dead_code, reason = "it is held, not used")] Box<dyn Any + Send>);

impl Lock {
    /// A lock that is given back when this value is dropped.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lock")
    }
}

/// Keeps secrets, for one process or for several.
///
/// Whoever can read a store can act as its user, so an implementation keeps others out, and logs no value.
pub trait TokenStore: Send + Sync + 'static {
    /// What is under a key.
    fn load<'a>(&'a self, key: &'a Key) -> Later<'a, Result<Option<Secret>, StoreError>>;

    /// Puts something under a key. Whoever reads meanwhile sees the old or the new, never a part.
    fn save<'a>(&'a self, key: &'a Key, value: &'a Secret) -> Later<'a, Result<(), StoreError>>;

    /// Takes away what is under a key, if there is anything.
    fn remove<'a>(&'a self, key: &'a Key) -> Later<'a, Result<(), StoreError>>;

    /// Waits until nobody else who shares the store has the lock of this key, and takes it. It is held for as long as a
    /// request takes, so that a refresh token is used by one only.
    fn lock<'a>(&'a self, key: &'a Key) -> Later<'a, Result<Lock, StoreError>>;
}

/// Why a store failed. It holds nothing of what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(String);

impl StoreError {
    /// An error that says this.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}
