//! What an authorizer is made of.

use std::fmt;
use std::sync::{Arc, Mutex};

use url::Url;

use super::authorizer::Inner;
use super::{AssertionSource, Authorizer, UserAgent};
use crate::HttpClient;
use crate::client::Error;
use crate::client::profile::Profile;
use crate::client::random::{Randomness, SystemRandomness};
use crate::client::reach::{Reach, shown};
use crate::client::store::{MemoryStore, TokenStore};

/// What an [`Authorizer`] is made of.
pub struct AuthorizerBuilder(Inner);

impl AuthorizerBuilder {
    /// Keeps tokens here. Without this they are kept in memory.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// Asks the user in this way. Without this nobody is asked.
    pub fn user_agent(mut self, user: impl UserAgent) -> Self {
        self.0.user = Some(Arc::new(user));
        self
    }

    /// Gets assertions from here, for the grants that need them.
    pub fn assertions(mut self, assertions: impl AssertionSource) -> Self {
        self.0.assertions = Some(Arc::new(assertions));
        self
    }

    /// Draws randomness from here instead of from the operating system.
    pub fn randomness(mut self, random: impl Randomness) -> Self {
        self.0.random = Arc::new(random);
        self
    }

    /// The authorizer.
    pub fn build(self) -> Authorizer {
        Authorizer(Arc::new(self.0))
    }
}

impl Authorizer {
    /// An authorizer for the server at this URL, which is written as the server names itself.
    pub fn builder(server: &str, profile: Profile, http: impl HttpClient) -> Result<AuthorizerBuilder, Error> {
        let url = Url::parse(server).map_err(|_| Error::UnsafeUrl(shown(server)))?;
        Reach::of(&url)?;
        Ok(AuthorizerBuilder(Inner {
            profile: Arc::new(profile),
            server: url,
            server_text: server.to_owned(),
            http: Arc::new(http),
            store: Arc::new(MemoryStore::new()),
            user: None,
            assertions: None,
            random: Arc::new(SystemRandomness),
            held: Mutex::default(),
            turn: Arc::default(),
        }))
    }
}

impl fmt::Debug for AuthorizerBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthorizerBuilder({})", shown(&self.0.server_text))
    }
}
