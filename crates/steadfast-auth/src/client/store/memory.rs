//! A token store in memory, whose entries are lost when the process ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{BoxFuture, TokenStore, TokenStoreError, TokenStoreKey, TokenStoreLockGuard};
use crate::client::Secret;

/// Stores the tokens and client registrations of an OAuth client in memory. Clones of a [`MemoryTokenStore`] share
/// their entries.
#[derive(Clone, Default)]
pub struct MemoryTokenStore(Arc<Mutex<MemoryTokenStoreEntries>>);

#[derive(Default)]
struct MemoryTokenStoreEntries {
    values: HashMap<TokenStoreKey, Secret>,
    locks: HashMap<TokenStoreKey, Arc<tokio::sync::Mutex<()>>>,
}

impl MemoryTokenStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, action: impl FnOnce(&mut MemoryTokenStoreEntries) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MemoryTokenStore({} values)", self.with(|entries| entries.values.len()))
    }
}

impl TokenStore for MemoryTokenStore {
    fn load<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        Box::pin(async move { Ok(self.with(|entries| entries.values.get(key).cloned())) })
    }

    fn save<'a>(&'a self, key: &'a TokenStoreKey, value: &'a Secret) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            self.with(|entries| entries.values.insert(key.clone(), value.clone()));
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        Box::pin(async move {
            self.with(|entries| entries.values.remove(key));
            Ok(())
        })
    }

    fn lock<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<TokenStoreLockGuard, TokenStoreError>> {
        Box::pin(async move {
            let lock = self.with(|entries| Arc::clone(entries.locks.entry(key.clone()).or_default()));
            Ok(TokenStoreLockGuard::new(lock.lock_owned().await))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(issuer: &str) -> TokenStoreKey {
        TokenStoreKey::Client { issuer: issuer.to_owned() }
    }

    #[tokio::test]
    async fn what_is_saved_is_found_until_it_is_removed() {
        let store = MemoryTokenStore::new();
        store.save(&key("a"), &Secret::new("s3cr3t")).await.unwrap();
        assert_eq!(store.load(&key("a")).await.unwrap().unwrap().expose(), "s3cr3t");
        assert!(store.load(&key("a/")).await.unwrap().is_none());
        assert!(!format!("{store:?}").contains("s3cr3t"));
        store.remove(&key("a")).await.unwrap();
        assert!(store.load(&key("a")).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_lock_is_had_by_one_at_a_time() {
        let store = MemoryTokenStore::new();
        let (key, other) = (key("a"), key("b"));
        let first = store.lock(&key).await.unwrap();
        let mut second = store.lock(&key);
        assert!(futures_pending(&mut second).await);
        store.lock(&other).await.unwrap();
        drop(first);
        second.await.unwrap();
    }

    async fn futures_pending<T>(future: &mut BoxFuture<'_, T>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }
}
