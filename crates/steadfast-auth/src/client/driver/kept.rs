//! What is kept in the store, and how it gets there: under the lock of the tokens, so that processes that share a store do not write
//! over what another got. What a store did not take is kept here until it does.

use std::sync::Arc;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Authorizer;
use crate::client::flow::{Forgotten, Outcome};
use crate::client::registration::Registration;
use crate::client::store::{Key, Lock};
use crate::client::token::Tokens;
use crate::client::{Error, Secret};

/// What a server named the last time.
#[derive(Serialize, Deserialize)]
struct Binding {
    issuer: String,
    resource: String,
}

/// What a flow brought and no store has yet.
#[derive(Clone)]
pub(super) struct Unsaved {
    outcome: Outcome,
    /// The tokens that these are in place of, if they are kept elsewhere.
    instead_of: Option<Key>,
}

/// The lock of tokens in the store. One at a time is held: who waits for one while having another may wait for ever.
pub(super) struct Locked {
    pub(super) key: Key,
    _lock: Lock,
}

impl Authorizer {
    /// Reads the store, once.
    pub(super) async fn load(&self) -> Result<(), Error> {
        if self.held().loaded {
            return Ok(());
        }
        let (tokens, issuer) = self.stored().await?;
        let mut held = self.held();
        held.loaded = true;
        held.tokens = tokens.map(Arc::new);
        held.issuer = issuer;
        Ok(())
    }

    /// Takes up the tokens in the store, if somebody else has put others there.
    pub(super) async fn catch_up(&self) -> Result<(), Error> {
        self.save(&mut None).await?;
        let (Some(stored), _) = self.stored().await? else { return Ok(()) };
        let is_same = self.held().tokens.as_ref().is_some_and(|held| held.access_token == stored.access_token);
        if !is_same {
            self.adopt(Arc::new(stored), false);
        }
        Ok(())
    }

    /// The tokens of this server in the store, and the issuer that it named the last time.
    pub(super) async fn stored(&self) -> Result<(Option<Tokens>, Option<String>), Error> {
        let Some(Binding { issuer, resource }) = self.load_value(&self.server_key()).await? else {
            return Ok((None, None));
        };
        let tokens = self.load_value(&Key::Tokens { issuer: issuer.clone(), resource }).await?;
        Ok((tokens, Some(issuer)))
    }

    pub(super) async fn load_value<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, Error> {
        let text = self.0.store.load(key).await?;
        // What cannot be read, from another version perhaps, is as good as nothing.
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    async fn save_value<T: Serialize>(&self, key: &Key, value: &T) -> Result<(), Error> {
        let text = serde_json::to_string(value).map_err(|_| Error::Misuse("a value cannot be written"))?;
        Ok(self.0.store.save(key, &Secret::new(text)).await?)
    }

    pub(super) fn server_key(&self) -> Key {
        Key::Server { url: self.0.server_text.clone() }
    }

    /// Keeps what a flow brought. Here first, since a refresh token that was used up is worth nothing if its successor is lost.
    pub(super) async fn remember(&self, outcome: Outcome, lock: &mut Option<Locked>) -> Result<(), Error> {
        let tokens = Arc::new(outcome.tokens.clone());
        let before = self.held().tokens.as_deref().map(key);
        let instead_of = before.filter(|before| *before != key(&tokens));
        self.adopt(tokens, !outcome.refreshed);
        if !outcome.refreshed {
            self.held().refusals.clear();
        }
        self.held().unsaved = Some(Box::new(Unsaved { outcome, instead_of }));
        self.save(lock).await
    }

    /// Puts into the store what it does not have yet, under the lock of the tokens: who refreshes them elsewhere would write over
    /// these, not knowing them.
    pub(super) async fn save(&self, lock: &mut Option<Locked>) -> Result<(), Error> {
        let Some(unsaved) = self.held().unsaved.clone() else { return Ok(()) };
        let tokens = &unsaved.outcome.tokens;
        let key = key(tokens);
        if lock.as_ref().is_none_or(|locked| locked.key != key) {
            *lock = None;
            *lock = Some(self.lock(key.clone()).await?);
        }
        if let Some(better) = self.better_than(tokens, &key).await? {
            self.adopt(Arc::new(better), false);
            self.held().unsaved = None;
            return Ok(());
        }
        self.save_value(&key, tokens).await?;
        if let Some(registration) = &unsaved.outcome.registration {
            self.save_value(&Key::Client { issuer: tokens.issuer.clone() }, registration).await?;
        }
        let binding = Binding { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() };
        self.save_value(&self.server_key(), &binding).await?;
        if let Some(before) = &unsaved.instead_of {
            // The server takes no more of these.
            self.0.store.remove(before).await?;
        }
        self.held().unsaved = None;
        Ok(())
    }

    /// The tokens in the store, if somebody else asked for all the scopes of these and for more, and we can refresh them too.
    async fn better_than(&self, tokens: &Tokens, key: &Key) -> Result<Option<Tokens>, Error> {
        let stored: Option<Tokens> = self.load_value(key).await?;
        let is_better = |stored: &Tokens| stored.asks_more_than(tokens) && !stored.is_over(SystemTime::now());
        let Some(stored) = stored.filter(is_better) else { return Ok(None) };
        let known: Option<Registration> = self.load_value(&Key::Client { issuer: stored.issuer.clone() }).await?;
        let is_known = known.is_some_and(|known| known.client_id == stored.client_id);
        Ok(Some(stored).filter(|stored| is_known || stored.client_id == tokens.client_id))
    }

    pub(super) async fn lock(&self, key: Key) -> Result<Locked, Error> {
        let lock = self.0.store.lock(&key).await?;
        Ok(Locked { key, _lock: lock })
    }

    /// Forgets what an authorization server does not know any more.
    pub(super) async fn discard(&self, forgotten: Forgotten) -> Result<(), Error> {
        if let Some(tokens) = forgotten.refresh_token_of {
            self.spend(*tokens).await?;
        }
        if let Some((issuer, client)) = forgotten.client {
            let key = Key::Client { issuer };
            let known: Option<Registration> = self.load_value(&key).await?;
            if known.is_some_and(|known| known.client_id == client) {
                self.0.store.remove(&key).await?;
            }
        }
        Ok(())
    }

    /// The refresh token of these is worth nothing. What was asked for is: the user is asked for the same again.
    async fn spend(&self, tokens: Tokens) -> Result<(), Error> {
        let spent = Tokens { refresh_token: None, ..tokens };
        self.save_value(&key(&spent), &spent).await?;
        self.adopt(Arc::new(spent), false);
        Ok(())
    }
}

/// Where tokens are kept.
pub(super) fn key(tokens: &Tokens) -> Key {
    Key::Tokens { issuer: tokens.issuer.clone(), resource: tokens.resource.clone() }
}
