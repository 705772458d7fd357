//! Tokens that are over, and their refresh: before anybody is refused, without discovery and without the user.

use std::sync::Arc;
use std::time::SystemTime;

use super::Authorizer;
use super::kept::key;
use crate::client::Error;
use crate::client::dpop::seconds;
use crate::client::flow::Situation;
use crate::client::store::Key;
use crate::client::token::Tokens;

impl Authorizer {
    /// Tokens that can be sent now, refreshed if they have to be and can be.
    pub(super) async fn usable(&self) -> Result<Option<Arc<Tokens>>, Error> {
        if let Some(tokens) = self.fresh() {
            return Ok(Some(tokens));
        }
        let turn = self.turn().await;
        self.load().await?;
        if let Some(tokens) = self.fresh() {
            return Ok(Some(tokens));
        }
        self.failed_meanwhile(&turn)?;
        let old = self.held().tokens.clone().filter(|tokens| tokens.is_refreshable());
        let Some(old) = old else { return Ok(None) };
        // On a task of its own to the end: those who wait hear of it though this caller is gone.
        let this = self.clone();
        let refreshed = tokio::spawn(async move {
            let result = this.refresh(&old).await;
            this.ended(result.as_ref().err(), turn);
            result
        });
        refreshed.await.unwrap_or(Err(Error::Misuse("the runtime is shutting down")))
    }

    /// New tokens for these, which are over, or those that somebody else got meanwhile.
    async fn refresh(&self, old: &Arc<Tokens>) -> Result<Option<Arc<Tokens>>, Error> {
        let key = key(old);
        self.save(&mut None).await?;
        let mut lock = Some(self.lock(key.clone()).await?);
        let Some(stored) = self.load_value::<Tokens>(&key).await? else {
            // Somebody signed out.
            self.held().tokens = None;
            return Ok(None);
        };
        if stored.access_token != old.access_token && !stored.is_over(SystemTime::now()) {
            return Ok(Some(self.adopt(Arc::new(stored), false)));
        }
        if !stored.is_refreshable() {
            // It was refused to somebody else.
            self.adopt(Arc::new(stored), false);
            return Ok(None);
        }
        let registration = self.load_value(&Key::Client { issuer: stored.issuer.clone() }).await?;
        let mut flow = self.flow(Situation { tokens: Some(stored.clone()), ..Situation::default() })?;
        let first = flow.begin_refresh(registration.as_ref(), SystemTime::now());
        match self.drive(flow, first, &mut lock).await {
            Ok(_) => Ok(self.held().tokens.clone()),
            Err(Error::TokenRefused(_)) => Ok(None),
            Err(Error::Store(error)) => Err(Error::Store(error)),
            // It is over soon, not yet.
            Err(_) if stored.expires_at.is_some_and(|end| seconds(SystemTime::now()) < end) => {
                Ok(Some(self.adopt(Arc::new(stored), false)))
            }
            // They are another client's, or the endpoint is not there any more. They stay where they are, and the refusal of
            // the server will lead to others, or to where it is.
            Err(Error::NoClient { .. } | Error::Unavailable { status: 300..=399 | 404 | 405 | 410, .. }) => {
                self.held().tokens = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
