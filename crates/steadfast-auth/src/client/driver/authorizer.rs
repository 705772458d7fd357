//! The authorizer, which all requests of a client to one MCP server share: the tokens in memory, and how to obtain new ones.
//!
//! The module `renewal_permit` serializes token renewals, `refresh` and `renew` perform these renewals with `drive`,
//! `persistence` reads and writes the token store, and `sign_out` deletes tokens.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::Method;
use url::Url;

use super::denied_scopes::DeniedScopes;
use super::persistence::PendingSave;
use super::{AssertionSource, OAuthRequestAttempt, UserAgent};
use crate::HttpClient;
use crate::client::Error;
use crate::client::profile::OAuthClientSettings;
use crate::client::random::RandomSource;
use crate::client::store::TokenStore;
use crate::client::token::Tokens;
use crate::client::url_policy::redact_url;

/// Provides the access tokens for one MCP server to all requests of the client to that server. Clones of an
/// [`Authorizer`] share the same tokens.
#[derive(Clone)]
pub struct Authorizer(pub(super) Arc<AuthorizerInner>);

pub(super) struct AuthorizerInner {
    pub(super) profile: Arc<OAuthClientSettings>,
    pub(super) server: Url,
    pub(super) server_text: String,
    pub(super) http: Arc<dyn HttpClient>,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) user: Option<Arc<dyn UserAgent>>,
    pub(super) assertions: Option<Arc<dyn AssertionSource>>,
    pub(super) random: Arc<dyn RandomSource>,
    pub(super) state: Mutex<AuthorizerState>,
    /// The lock that a caller holds while it obtains or refreshes tokens. Other callers wait for the renewal lock,
    /// and then use the new tokens or return the error of the renewal.
    pub(super) renewal_lock: Arc<tokio::sync::Mutex<()>>,
}

/// The state that an authorizer keeps in memory, such as the current tokens.
#[derive(Default)]
pub(super) struct AuthorizerState {
    pub(super) tokens: Option<Arc<Tokens>>,
    /// The authorization server that the metadata of the MCP server named when the metadata was last read.
    pub(super) issuer: Option<String>,
    pub(super) loaded: bool,
    /// Whether the tokens are new and the MCP server has not accepted them yet.
    pub(super) unproven: bool,
    /// The tokens (and registration) that were obtained and are not yet written to the token store.
    pub(super) pending_save: Option<Box<PendingSave>>,
    nonce: Option<String>,
    /// The number of token renewals that have finished so far, and the error of the last one. Callers that waited for a token
    /// renewal return the error of that renewal.
    pub(super) finished_renewals: u64,
    pub(super) last_failure: Option<Error>,
    /// The token requests for additional scopes that failed.
    pub(super) denied_scopes: DeniedScopes,
}

impl Authorizer {
    /// Starts the authorization of one HTTP request. The URL of the request must have the origin of the MCP server.
    pub fn attempt(&self, method: Method, url: &str) -> Result<OAuthRequestAttempt, Error> {
        let url = Url::parse(url).map_err(|_| Error::WrongOrigin)?;
        if url.origin() != self.0.server.origin() {
            return Err(Error::WrongOrigin);
        }
        Ok(OAuthRequestAttempt::new(self.clone(), method, url))
    }

    pub(super) fn randomness(&self) -> &dyn RandomSource {
        &*self.0.random
    }

    pub(super) fn nonce(&self) -> Option<String> {
        self.state().nonce.clone()
    }

    pub(super) fn remember_nonce(&self, nonce: Option<String>) {
        self.state().nonce = nonce;
    }

    /// Records that the MCP server accepted these tokens.
    pub(super) fn accepted(&self, used: &Arc<Tokens>) {
        let mut state = self.state();
        if state.tokens.as_ref().is_some_and(|tokens| Arc::ptr_eq(tokens, used)) {
            state.unproven = false;
        }
    }

    /// Makes the given tokens the current tokens of the authorizer.
    pub(super) fn adopt(&self, tokens: Arc<Tokens>, unproven: bool) -> Arc<Tokens> {
        let mut state = self.state();
        state.issuer = Some(tokens.issuer.clone());
        state.unproven = unproven;
        state.tokens = Some(Arc::clone(&tokens));
        tokens
    }

    /// The current tokens, unless they have expired.
    pub(super) fn unexpired(&self) -> Option<Arc<Tokens>> {
        let tokens = self.state().tokens.clone();
        tokens.filter(|tokens| !tokens.is_expired(SystemTime::now()))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, AuthorizerState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Authorizer({})", redact_url(&self.0.server_text))
    }
}
