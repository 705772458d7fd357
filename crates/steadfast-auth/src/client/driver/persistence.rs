//! Reads and writes the token store. The lock of the tokens is held during a write, so that processes that share a token store
//! do not overwrite each other's tokens. If a write to the token store fails, the tokens stay in memory and the write is
//! retried.

use std::sync::Arc;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Authorizer;
use crate::client::flow::{CredentialInvalidation, OAuthGrant};
use crate::client::registration::ClientRegistration;
use crate::client::store::{TokenStoreKey, TokenStoreLockGuard};
use crate::client::token::Tokens;
use crate::client::{Error, Secret};

/// The issuer and resource that the metadata of an MCP server had when it was last read, as stored.
#[derive(Serialize, Deserialize)]
struct OAuthDiscoveryRecord {
    issuer: String,
    resource: String,
}

/// The result of an OAuth flow that is not written to the token store yet.
#[derive(Clone)]
pub(super) struct PendingSave {
    authorization: OAuthGrant,
    /// The store key of the tokens that the new tokens replace, if it differs from the key of the new ones.
    replaced: Option<TokenStoreKey>,
}

/// The lock of tokens in the token store. An authorizer holds at most one token lock at a time: waiting for one while holding
/// another could deadlock.
pub(super) struct TokenLock {
    pub(super) key: TokenStoreKey,
    _lock: TokenStoreLockGuard,
}

impl Authorizer {
    /// Loads the tokens of the MCP server from the token store, once per authorizer.
    pub(super) async fn load(&self) -> Result<(), Error> {
        if self.state().loaded {
            return Ok(());
        }
        let (tokens, issuer) = self.stored().await?;
        let mut state = self.state();
        state.loaded = true;
        state.tokens = tokens.map(Arc::new);
        state.issuer = issuer;
        Ok(())
    }

    /// Replaces the tokens in memory with those in the token store, if another process has stored other tokens there.
    pub(super) async fn adopt_stored(&self) -> Result<(), Error> {
        self.save(&mut None).await?;
        let (Some(stored), _) = self.stored().await? else { return Ok(()) };
        let is_same = self.state().tokens.as_ref().is_some_and(|state| state.access_token == stored.access_token);
        if !is_same {
            self.adopt(Arc::new(stored), false);
        }
        Ok(())
    }

    /// Loads the tokens for this MCP server from the token store, and the issuer that the server's metadata named when it was
    /// last read.
    pub(super) async fn stored(&self) -> Result<(Option<Tokens>, Option<String>), Error> {
        let Some(OAuthDiscoveryRecord { issuer, resource }) = self.load_value(&self.server_key()).await? else {
            return Ok((None, None));
        };
        let tokens = self.load_value(&TokenStoreKey::Tokens { issuer: issuer.clone(), resource }).await?;
        Ok((tokens, Some(issuer)))
    }

    pub(super) async fn load_value<T: DeserializeOwned>(&self, key: &TokenStoreKey) -> Result<Option<T>, Error> {
        let text = self.0.store.load(key).await?;
        // A value that cannot be parsed, for example of another version, is ignored.
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    async fn save_value<T: Serialize>(&self, key: &TokenStoreKey, value: &T) -> Result<(), Error> {
        let text = serde_json::to_string(value)
            .map_err(|_| Error::Misuse("a value for the token store could not be serialized"))?;
        Ok(self.0.store.save(key, &Secret::new(text)).await?)
    }

    pub(super) fn server_key(&self) -> TokenStoreKey {
        TokenStoreKey::Server { url: self.0.server_text.clone() }
    }

    /// Stores the result of an OAuth flow. The tokens are kept in memory first: a used refresh token is invalid, so its
    /// successor must not be lost.
    pub(super) async fn store_authorization(
        &self,
        authorization: OAuthGrant,
        lock: &mut Option<TokenLock>,
    ) -> Result<(), Error> {
        let tokens = Arc::new(authorization.tokens.clone());
        let before = self.state().tokens.as_deref().map(key);
        let replaced = before.filter(|before| *before != key(&tokens));
        self.adopt(tokens, !authorization.refreshed);
        if !authorization.refreshed {
            self.state().denied_scopes.clear();
        }
        self.state().pending_save = Some(Box::new(PendingSave { authorization, replaced }));
        self.save(lock).await
    }

    /// Writes the pending result of an OAuth flow to the token store. The lock of the tokens is held during the write, so that
    /// a concurrent refresh in another process does not overwrite the tokens.
    pub(super) async fn save(&self, lock: &mut Option<TokenLock>) -> Result<(), Error> {
        let Some(pending_save) = self.state().pending_save.clone() else { return Ok(()) };
        let tokens = &pending_save.authorization.tokens;
        let key = key(tokens);
        if lock.as_ref().is_none_or(|locked| locked.key != key) {
            *lock = None;
            *lock = Some(self.lock(key.clone()).await?);
        }
        if let Some(better) = self.better_than(tokens, &key).await? {
            self.adopt(Arc::new(better), false);
            self.state().pending_save = None;
            return Ok(());
        }
        self.save_value(&key, tokens).await?;
        if let Some(registration) = &pending_save.authorization.registration {
            self.save_value(&TokenStoreKey::Client { issuer: tokens.issuer.clone() }, registration).await?;
        }
        let binding = OAuthDiscoveryRecord { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() };
        self.save_value(&self.server_key(), &binding).await?;
        if let Some(before) = &pending_save.replaced {
            // The server does not accept these any more.
            self.0.store.remove(before).await?;
        }
        self.state().pending_save = None;
        Ok(())
    }

    /// The tokens in the token store, if they have not expired, were requested with more scopes than `tokens`, and were issued
    /// to a client id that this client can use.
    async fn better_than(&self, tokens: &Tokens, key: &TokenStoreKey) -> Result<Option<Tokens>, Error> {
        let stored: Option<Tokens> = self.load_value(key).await?;
        let is_better = |stored: &Tokens| stored.requests_more_than(tokens) && !stored.is_expired(SystemTime::now());
        let Some(stored) = stored.filter(is_better) else { return Ok(None) };
        let known: Option<ClientRegistration> =
            self.load_value(&TokenStoreKey::Client { issuer: stored.issuer.clone() }).await?;
        let is_known = known.is_some_and(|known| known.client_id == stored.client_id);
        Ok(Some(stored).filter(|stored| is_known || stored.client_id == tokens.client_id))
    }

    pub(super) async fn lock(&self, key: TokenStoreKey) -> Result<TokenLock, Error> {
        let lock = self.0.store.lock(&key).await?;
        Ok(TokenLock { key, _lock: lock })
    }

    /// Removes a refresh token or a client registration that an authorization server does not accept any more.
    pub(super) async fn discard(&self, invalidation: CredentialInvalidation) -> Result<(), Error> {
        if let Some(tokens) = invalidation.refresh_token_of {
            self.remove_refresh_token(*tokens).await?;
        }
        if let Some((issuer, client)) = invalidation.client {
            let key = TokenStoreKey::Client { issuer };
            let known: Option<ClientRegistration> = self.load_value(&key).await?;
            if known.is_some_and(|known| known.client_id == client) {
                self.0.store.remove(&key).await?;
            }
        }
        Ok(())
    }

    /// Removes an invalid refresh token from the token store and from memory. The scopes of the tokens are kept, so
    /// that the client requests the same scopes again.
    async fn remove_refresh_token(&self, tokens: Tokens) -> Result<(), Error> {
        let tokens = Tokens { refresh_token: None, ..tokens };
        self.save_value(&key(&tokens), &tokens).await?;
        self.adopt(Arc::new(tokens), false);
        Ok(())
    }
}

/// The key of the given tokens in the token store.
pub(super) fn key(tokens: &Tokens) -> TokenStoreKey {
    TokenStoreKey::Tokens { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() }
}
