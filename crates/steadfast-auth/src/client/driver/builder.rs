//! Building an authorizer.

use std::fmt;
use std::sync::{Arc, Mutex};

use url::Url;

use super::authorizer::AuthorizerInner;
use super::{AssertionSource, Authorizer, UserAgent};
use crate::HttpClient;
use crate::client::Error;
use crate::client::profile::OAuthClientSettings;
use crate::client::random::{RandomSource, SystemRandomness};
use crate::client::store::{MemoryTokenStore, TokenStore};
use crate::client::url_policy::{UrlPolicy, redact_url};

/// Builds an [`Authorizer`].
pub struct AuthorizerBuilder(AuthorizerInner);

impl AuthorizerBuilder {
    /// Stores tokens here. Default: in memory.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// Sets the user agent through which the user is asked to authorize. By default the client has no user agent, and a login
    /// that needs the user fails.
    pub fn user_agent(mut self, user: impl UserAgent) -> Self {
        self.0.user = Some(Arc::new(user));
        self
    }

    /// Sets the source of OAuth assertions, for the grants that need an assertion.
    pub fn assertions(mut self, assertions: impl AssertionSource) -> Self {
        self.0.assertions = Some(Arc::new(assertions));
        self
    }

    /// Sets the source of randomness of the OAuth client, which is the operating system's by default.
    pub fn randomness(mut self, random: impl RandomSource) -> Self {
        self.0.random = Arc::new(random);
        self
    }

    /// Builds the authorizer.
    pub fn build(self) -> Authorizer {
        Authorizer(Arc::new(self.0))
    }
}

impl Authorizer {
    /// Begins to build an authorizer for the MCP server at this URL, which should be spelled as in the server's metadata.
    pub fn builder(
        server: &str,
        profile: OAuthClientSettings,
        http: impl HttpClient,
    ) -> Result<AuthorizerBuilder, Error> {
        let url = Url::parse(server).map_err(|_| Error::UnsafeUrl(redact_url(server)))?;
        UrlPolicy::for_server(&url)?;
        Ok(AuthorizerBuilder(AuthorizerInner {
            profile: Arc::new(profile),
            server: url,
            server_text: server.to_owned(),
            http: Arc::new(http),
            store: Arc::new(MemoryTokenStore::new()),
            user: None,
            assertions: None,
            random: Arc::new(SystemRandomness),
            state: Mutex::default(),
            renewal_lock: Arc::default(),
        }))
    }
}

impl fmt::Debug for AuthorizerBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthorizerBuilder({})", redact_url(&self.0.server_text))
    }
}
