//! Signing out: deletes tokens in memory and in the store, and then revokes them if the authorization server supports it.

use std::time::{Duration, SystemTime};

use http::Request;

use super::Authorizer;
use super::drive::MAX_BYTES;
use super::persistence::key;
use crate::HttpClientBody;
use crate::client::Error;
use crate::client::flow::OAuthFlowStart;
use crate::client::store::TokenStoreKey;
use crate::client::token::Tokens;

/// Timeout of the revocation of tokens after a sign-out. When the revocation starts, the tokens are already deleted
/// in memory and in the store.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(5);

impl Authorizer {
    /// Deletes the tokens of this server, in memory and in the store, and then revokes them if the authorization server
    /// supports it. A failed revocation is ignored; the revocation takes at most five seconds. The client registration is kept
    /// for the next login, and for other servers with the same authorization server.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let permit = self.acquire_renewal_permit().await;
        let revocations = self.delete_tokens().await?;
        drop(permit);
        self.revoke(revocations).await;
        Ok(())
    }

    /// Signs out, and also deletes the stored issuer of this MCP server and the client registration at that issuer.
    /// Returns whether a client registration was in the token store. The next login registers a new client.
    ///
    /// Other MCP servers with the same authorization server share the deleted client registration: their tokens work
    /// until they expire, and then the user has to log in again. The client is not unregistered at the authorization
    /// server, since few authorization servers support that.
    pub async fn forget(&self) -> Result<bool, Error> {
        let permit = self.acquire_renewal_permit().await;
        let revocations = self.delete_tokens().await?;
        let (_, stored) = self.stored().await?;
        let state = self.state().issuer.take();
        let mut was_registered = false;
        for issuer in [stored.filter(|stored| state.as_ref() != Some(stored)), state].into_iter().flatten() {
            let key = TokenStoreKey::Client { issuer };
            was_registered |= self.0.store.load(&key).await?.is_some();
            self.0.store.remove(&key).await?;
        }
        self.0.store.remove(&self.server_key()).await?;
        drop(permit);
        self.revoke(revocations).await;
        Ok(was_registered)
    }

    /// Deletes the tokens, and returns the requests that revoke them.
    async fn delete_tokens(&self) -> Result<Vec<Request<HttpClientBody>>, Error> {
        self.load().await?;
        let (tokens, pending_save) = {
            let mut state = self.state();
            state.unproven = false;
            state.denied_scopes.clear();
            (state.tokens.take(), state.pending_save.take())
        };
        // Another process may have stored newer ones.
        let (stored, _) = self.stored().await?;
        let (state, stored) = (tokens.as_deref().map(key), stored.as_ref().map(key));
        let mut revocations = Vec::new();
        for key in [stored.filter(|stored| state.as_ref() != Some(stored)), state].into_iter().flatten() {
            // Under the lock: a concurrent refresh would store them again.
            let locked = self.lock(key).await?;
            let last: Option<Tokens> = self.load_value(&locked.key).await?;
            self.0.store.remove(&locked.key).await?;
            let ours = tokens.as_deref().filter(|tokens| self::key(tokens) == locked.key).cloned();
            // Tokens whose write failed are newer than the stored ones.
            let last = if pending_save.is_some() { ours.or(last) } else { last.or(ours) };
            if let Some(last) = last {
                // A failure to build the revocation does not prevent the sign-out.
                revocations.extend(self.revocation(last).await.unwrap_or_default());
            }
        }
        Ok(revocations)
    }

    async fn revocation(&self, tokens: Tokens) -> Result<Vec<Request<HttpClientBody>>, Error> {
        let registration = self.load_value(&TokenStoreKey::Client { issuer: tokens.issuer.clone() }).await?;
        let flow = self.flow(OAuthFlowStart { tokens: Some(tokens), ..OAuthFlowStart::default() })?;
        Ok(flow.revocation(registration.as_ref(), SystemTime::now()))
    }

    /// Sends the revocations. A failed revocation of tokens is only logged.
    async fn revoke(&self, revocations: Vec<Request<HttpClientBody>>) {
        let each = async {
            for mut request in revocations {
                self.add_referrer(&mut request);
                match self.0.http.send(request, MAX_BYTES).await {
                    Ok(answer) => tracing::debug!(status = answer.status().as_u16(), "revocation request sent"),
                    Err(error) => tracing::debug!(%error, "revocation request failed"),
                }
            }
        };
        if tokio::time::timeout(REVOCATION_TIMEOUT, each).await.is_err() {
            tracing::debug!("revocation timed out");
        }
    }
}
