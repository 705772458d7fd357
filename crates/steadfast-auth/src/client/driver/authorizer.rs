//! What everybody who sends requests to one server shares: the tokens at hand, and what it takes to get others.
//!
//! Who gets them when is in `turn`, how in `refresh` and `renew`, by `drive`; `kept` is about the store, and `sign_out` the end.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::Method;
use url::Url;

use super::kept::Unsaved;
use super::refusals::Refusals;
use super::{AssertionSource, Attempt, UserAgent};
use crate::HttpClient;
use crate::client::Error;
use crate::client::profile::Profile;
use crate::client::random::Randomness;
use crate::client::reach::shown;
use crate::client::store::TokenStore;
use crate::client::token::Tokens;

/// Tokens for one server, shared by everybody who sends requests to it. Clones are the same authorizer.
#[derive(Clone)]
pub struct Authorizer(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) profile: Arc<Profile>,
    pub(super) server: Url,
    pub(super) server_text: String,
    pub(super) http: Arc<dyn HttpClient>,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) user: Option<Arc<dyn UserAgent>>,
    pub(super) assertions: Option<Arc<dyn AssertionSource>>,
    pub(super) random: Arc<dyn Randomness>,
    pub(super) held: Mutex<Held>,
    /// Whoever has it gets or refreshes tokens; the others wait and take what came of it.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

/// What is known here, without asking anybody.
#[derive(Default)]
pub(super) struct Held {
    pub(super) tokens: Option<Arc<Tokens>>,
    /// The issuer that the server named the last time.
    pub(super) issuer: Option<String>,
    pub(super) loaded: bool,
    /// The tokens are new and no server has taken them yet.
    pub(super) unproven: bool,
    /// What the store did not take.
    pub(super) unsaved: Option<Box<Unsaved>>,
    nonce: Option<String>,
    /// How many flows have ended, and how the last one failed: those who waited for it fail likewise.
    pub(super) ended: u64,
    pub(super) failure: Option<Error>,
    /// Which questions for more scopes came to nothing.
    pub(super) refusals: Refusals,
}

impl Authorizer {
    /// A request to be made. It must go to the server that the tokens are for.
    pub fn attempt(&self, method: Method, url: &str) -> Result<Attempt, Error> {
        let url = Url::parse(url).map_err(|_| Error::ForeignRequest)?;
        if url.origin() != self.0.server.origin() {
            return Err(Error::ForeignRequest);
        }
        Ok(Attempt::new(self.clone(), method, url))
    }

    pub(super) fn randomness(&self) -> &dyn Randomness {
        &*self.0.random
    }

    pub(super) fn nonce(&self) -> Option<String> {
        self.held().nonce.clone()
    }

    pub(super) fn remember_nonce(&self, nonce: Option<String>) {
        self.held().nonce = nonce;
    }

    /// A server has taken these tokens.
    pub(super) fn accepted(&self, used: &Arc<Tokens>) {
        let mut held = self.held();
        if held.tokens.as_ref().is_some_and(|tokens| Arc::ptr_eq(tokens, used)) {
            held.unproven = false;
        }
    }

    /// From now on these are the tokens.
    pub(super) fn adopt(&self, tokens: Arc<Tokens>, unproven: bool) -> Arc<Tokens> {
        let mut held = self.held();
        held.issuer = Some(tokens.issuer.clone());
        held.unproven = unproven;
        held.tokens = Some(Arc::clone(&tokens));
        tokens
    }

    /// Tokens that can be sent as they are.
    pub(super) fn fresh(&self) -> Option<Arc<Tokens>> {
        let tokens = self.held().tokens.clone();
        tokens.filter(|tokens| !tokens.is_over(SystemTime::now()))
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Authorizer({})", shown(&self.0.server_text))
    }
}
