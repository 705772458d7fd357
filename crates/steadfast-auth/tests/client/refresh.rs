//! Refresh tokens are used once, whoever needs them and whatever becomes of them.

use std::path::PathBuf;

use steadfast_auth::client::{Authorizer, Error, FileStore, MemoryStore, Profile};

use crate::site::{Habits, Site, call};

/// A site whose first token is over at once, and an authorizer for it.
async fn stale(store: MemoryStore) -> (Site, Authorizer) {
    let site = Site::start(Habits { lifetimes: vec![0], ..Habits::default() }).await;
    let authorizer = site.authorizer(Profile::new("Test")).store(store).build();
    (site, authorizer)
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn many_who_need_a_refresh_get_it_from_one_request() {
    let (site, authorizer) = stale(MemoryStore::new()).await;
    let url = site.url();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (authorizer, url) = (authorizer.clone(), url.clone());
            tokio::spawn(async move { call(&authorizer, &url).await.map(|answer| answer.0) })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(200));
    }
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

#[tokio::test]
async fn those_who_share_a_directory_refresh_once() {
    let scratch = Scratch::new("shared");
    let site = Site::start(Habits { lifetimes: vec![0], ..Habits::default() }).await;
    let authorizer = |site: &Site| {
        let store = FileStore::open(&scratch.0).unwrap();
        site.authorizer(Profile::new("Test")).store(store).build()
    };
    // Gets a token that is over, and is about to refresh it.
    site.refreshes.forget_permits(1000);
    let first = authorizer(&site);
    let url = site.url();
    let waiting = tokio::spawn(async move { call(&first, &url).await });
    while site.refreshed() == 0 {
        tokio::task::yield_now().await;
    }
    // Meanwhile others, as in other processes, find the same.
    let others: Vec<_> = (0..4)
        .map(|_| {
            let (authorizer, url) = (authorizer(&site), site.url());
            tokio::spawn(async move { call(&authorizer, &url).await.map(|answer| answer.0) })
        })
        .collect();
    site.refreshes.add_permits(1000);
    let _ = waiting.await.unwrap();
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(200));
    }
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

#[tokio::test]
async fn a_refresh_goes_on_when_its_caller_is_gone() {
    let (site, authorizer) = stale(MemoryStore::new()).await;
    site.refreshes.forget_permits(1000);
    let caller = tokio::spawn({
        let (authorizer, url) = (authorizer.clone(), site.url());
        async move { call(&authorizer, &url).await }
    });
    while site.refreshed() == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    site.refreshes.add_permits(1000);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
}

#[tokio::test]
async fn tokens_are_found_again_after_a_restart() {
    let scratch = Scratch::new("restart");
    let site = Site::start(Habits::default()).await;
    for _ in 0..2 {
        let store = FileStore::open(&scratch.0).unwrap();
        let authorizer = site.authorizer(Profile::new("Test")).store(store).build();
        assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    }
    assert_eq!((site.count("/authorize"), site.count("/token")), (1, 1));
}

#[tokio::test]
async fn signing_out_forgets_the_tokens_and_keeps_the_registration() {
    let store = MemoryStore::new();
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).store(store).build();
    call(&authorizer, &site.url()).await.unwrap();
    authorizer.sign_out().await.unwrap();
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!((site.count("/authorize"), site.count("/register")), (2, 1));
}

#[tokio::test]
async fn nobody_to_ask_is_an_error() {
    let site = Site::start(Habits::default()).await;
    let authorizer = Authorizer::builder(&site.url(), Profile::new("Test"), crate::wire::Plain).unwrap().build();
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::NoUser(_))));
}
