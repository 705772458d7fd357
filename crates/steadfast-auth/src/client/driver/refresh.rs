//! Refreshes expired tokens before a request is sent, without metadata discovery and without asking the user.

use std::sync::Arc;
use std::time::SystemTime;

use super::Authorizer;
use super::persistence::key;
use crate::client::Error;
use crate::client::dpop::seconds;
use crate::client::flow::OAuthFlowStart;
use crate::client::store::TokenStoreKey;
use crate::client::token::Tokens;

impl Authorizer {
    /// Returns tokens that can be sent now. Expired tokens are refreshed first, if they have a refresh token.
    pub(super) async fn usable(&self) -> Result<Option<Arc<Tokens>>, Error> {
        if let Some(tokens) = self.unexpired() {
            return Ok(Some(tokens));
        }
        let permit = self.acquire_renewal_permit().await;
        self.load().await?;
        if let Some(tokens) = self.unexpired() {
            return Ok(Some(tokens));
        }
        self.check_concurrent_failure(&permit)?;
        let old = self.state().tokens.clone().filter(|tokens| tokens.is_refreshable());
        let Some(old) = old else { return Ok(None) };
        // On a task of its own, so that waiting callers get the result even if this one is dropped.
        let this = self.clone();
        let refreshed = tokio::spawn(async move {
            let result = this.refresh(&old).await;
            this.finish(result.as_ref().err(), permit);
            result
        });
        refreshed
            .await
            .unwrap_or(Err(Error::Misuse("the token refresh was aborted: the tokio runtime is shutting down")))
    }

    /// Refreshes expired tokens, or returns the tokens that another process has stored meanwhile.
    async fn refresh(&self, old: &Arc<Tokens>) -> Result<Option<Arc<Tokens>>, Error> {
        let key = key(old);
        self.save(&mut None).await?;
        let mut lock = Some(self.lock(key.clone()).await?);
        let Some(stored) = self.load_value::<Tokens>(&key).await? else {
            // The user signed out in another process.
            self.state().tokens = None;
            return Ok(None);
        };
        if stored.access_token != old.access_token && !stored.is_expired(SystemTime::now()) {
            return Ok(Some(self.adopt(Arc::new(stored), false)));
        }
        if !stored.is_refreshable() {
            // Another process found the refresh token to be invalid.
            self.adopt(Arc::new(stored), false);
            return Ok(None);
        }
        let registration = self.load_value(&TokenStoreKey::Client { issuer: stored.issuer.clone() }).await?;
        let mut flow = self.flow(OAuthFlowStart { tokens: Some(stored.clone()), ..OAuthFlowStart::default() })?;
        let first = flow.begin_refresh(registration.as_ref(), SystemTime::now());
        match self.drive(flow, first, &mut lock).await {
            Ok(_) => Ok(self.state().tokens.clone()),
            Err(Error::TokenRefused(_)) => Ok(None),
            Err(Error::Store(error)) => Err(Error::Store(error)),
            // Within the leeway, but not expired yet.
            Err(_) if stored.expires_at.is_some_and(|end| seconds(SystemTime::now()) < end) => {
                Ok(Some(self.adopt(Arc::new(stored), false)))
            }
            // They belong to another client, or the endpoint has moved. They stay in the store; the challenge of the server
            // starts a new discovery.
            Err(Error::NoClient { .. } | Error::Unavailable { status: 300..=399 | 404 | 405 | 410, .. }) => {
                self.state().tokens = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
