//! What becomes of tokens when something goes wrong: a store that fails, a server that is busy or forgets, a caller that leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use steadfast_auth::client::{
    Authorizer, BoxFuture, Credential, Error, Grant, Key, Lock, MemoryStore, PreRegistered, Profile, Secret,
    StoreError, TokenStore, Url, UserAgent, Visit,
};
use steadfast_auth::{HttpClient, Payload, ResponseFuture};

use crate::refresh::{Straight, authorize};
use crate::site::{Habits, Site, call};
use crate::wire::Plain;

/// A store that is watched, and that can be made to fail.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    kept: MemoryStore,
    /// The keys whose locks somebody wanted, in order.
    pub(crate) locked: Arc<Mutex<Vec<Key>>>,
    pub(crate) is_full: Arc<AtomicBool>,
}

impl TokenStore for Watched {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Secret>, StoreError>> {
        self.kept.load(key)
    }

    fn save<'a>(&'a self, key: &'a Key, value: &'a Secret) -> BoxFuture<'a, Result<(), StoreError>> {
        if self.is_full.load(Ordering::Relaxed) {
            return Box::pin(async { Err(StoreError::new("there is no room")) });
        }
        self.kept.save(key, value)
    }

    fn remove<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StoreError>> {
        self.kept.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Lock, StoreError>> {
        self.locked.lock().unwrap().push(key.clone());
        self.kept.lock(key)
    }
}

pub(crate) fn tokens_of(site: &Site) -> Key {
    Key::Tokens { issuer: site.origin.clone(), resource: site.url() }
}

/// A site whose first tokens are over at once, and somebody who has them and a user who is always at the same address.
async fn stale(store: &Watched, lifetimes: Vec<u64>) -> (Site, Authorizer) {
    let site = Site::start(Habits { lifetimes, ..Habits::default() }).await;
    let authorizer = site.authorizer(Profile::new("Test")).store(store.clone()).user_agent(Straight).build();
    authorize(&authorizer, &site).await;
    (site, authorizer)
}

/// Somebody who looked into the store before anything was in it.
async fn early(site: &Site, store: &Watched) -> Authorizer {
    let early = Authorizer::builder(&site.url(), Profile::new("Test"), Plain).unwrap().store(store.clone()).build();
    let mut headers = HeaderMap::new();
    early.attempt(Method::POST, &site.url()).unwrap().sign(&mut headers).await.unwrap();
    assert!(headers.is_empty());
    early
}

#[tokio::test]
async fn what_others_got_meanwhile_is_refreshed_under_its_lock() {
    let store = Watched::default();
    let site = Site::start(Habits { lifetimes: vec![0], ..Habits::default() }).await;
    let early = early(&site, &store).await;
    authorize(&site.authorizer(Profile::new("Test")).store(store.clone()).build(), &site).await;
    store.locked.lock().unwrap().clear();
    assert_eq!(call(&early, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
    assert_eq!(*store.locked.lock().unwrap(), [tokens_of(&site)]);
}

#[tokio::test]
async fn signing_out_forgets_what_others_got_meanwhile() {
    let store = Watched::default();
    let site = Site::start(Habits::default()).await;
    let early = early(&site, &store).await;
    authorize(&site.authorizer(Profile::new("Test")).store(store.clone()).build(), &site).await;
    store.locked.lock().unwrap().clear();
    early.sign_out().await.unwrap();
    assert!(store.load(&tokens_of(&site)).await.unwrap().is_none());
    // And not in the middle of somebody's refresh, who would bring them back.
    assert_eq!(*store.locked.lock().unwrap(), [tokens_of(&site)]);
}

#[tokio::test]
async fn a_client_that_is_not_known_any_more_registers_again() {
    let site = Site::start(Habits { lifetimes: vec![0, 0], ..Habits::default() }).await;
    let authorizer = site.authorizer(Profile::new("Test")).user_agent(Straight).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/register")), (1, 1));
    site.refuse_refreshes(Some((401, "invalid_client")));
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/register")), (2, 2));
}

/// A user who comes back once, and then stays where they are.
#[derive(Default)]
pub(crate) struct Once(AtomicBool);

impl UserAgent for Once {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Box::pin(async { Ok(Box::new(Away) as Box<dyn Visit>) });
        }
        Straight.prepare(preferred)
    }
}

struct Away;

impl Visit for Away {
    fn redirect_uri(&self) -> &'static str {
        "http://localhost:3000/callback"
    }

    fn visit(self: Box<Self>, _: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async { Err(Error::UserUnavailable(String::from("there was no answer in time"))) })
    }
}

#[tokio::test]
async fn a_registration_that_brings_nobody_back_is_not_used_again() {
    let store = MemoryStore::new();
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).store(store.clone()).user_agent(Once::default()).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    let client = Key::Client { issuer: site.origin.clone() };
    assert!(store.load(&client).await.unwrap().is_some());
    authorizer.sign_out().await.unwrap();
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::UserUnavailable(_))));
    assert!(store.load(&client).await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_always_wants_more_scopes_is_followed_a_few_times_only() {
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).build();
    call(&authorizer, &site.url()).await.unwrap();
    let mut attempt = authorizer.attempt(Method::POST, &site.url()).unwrap();
    let mut ended = None;
    for number in 0..10 {
        attempt.sign(&mut HeaderMap::new()).await.unwrap();
        let mut headers = HeaderMap::new();
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"s{number}\"");
        headers.insert("www-authenticate", challenge.parse().unwrap());
        if let Err(error) = attempt.answered(StatusCode::FORBIDDEN, &headers).await {
            ended = Some(error);
            break;
        }
    }
    assert_eq!(ended, Some(Error::InsufficientScope("s2".parse().ok())));
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn a_refresh_token_that_was_refused_is_not_shown_again() {
    let store = Watched::default();
    let (site, _) = stale(&store, Vec::new()).await;
    site.forget_access_tokens();
    site.forget_refresh_tokens();
    let alone = Authorizer::builder(&site.url(), Profile::new("Test"), Plain).unwrap().store(store).build();
    for _ in 0..3 {
        assert!(matches!(call(&alone, &site.url()).await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(site.refreshed(), 1);
}

#[tokio::test]
async fn a_refresh_token_that_was_refused_to_another_is_not_missed() {
    let store = Watched::default();
    let (site, one) = stale(&store, vec![0]).await;
    let other = Authorizer::builder(&site.url(), Profile::new("Test"), Plain).unwrap().store(store.clone()).build();
    // It has the same tokens, and is to find out that they are worth nothing.
    site.forget_refresh_tokens();
    assert!(matches!(call(&other, &site.url()).await, Err(Error::UserUnavailable(_))));
    assert_eq!(call(&one, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (2, 1));
}

#[tokio::test]
async fn a_refresh_token_outlives_an_authorization_server_that_is_busy() {
    let (site, authorizer) = stale(&Watched::default(), vec![0]).await;
    for refusal in [(429, "too_many_requests"), (400, "temporarily_unavailable"), (400, "slow_down")] {
        site.refuse_refreshes(Some(refusal));
        let refused = call(&authorizer, &site.url()).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refusal:?}: {refused:?}");
    }
    site.refuse_refreshes(None);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!(site.count("/authorize"), 1);
}

#[tokio::test]
async fn a_token_endpoint_that_has_moved_is_found_again() {
    let store = Watched::default();
    let site = Site::start(Habits { lifetimes: vec![0, 0], ..Habits::default() }).await;
    let before = site.authorizer(Profile::new("Test")).store(store.clone()).build();
    assert_eq!(call(&before, &site.url()).await.unwrap().0, 200);
    let mut tokens: serde_json::Value =
        serde_json::from_str(store.load(&tokens_of(&site)).await.unwrap().unwrap().expose()).unwrap();
    tokens["token_endpoint"] = format!("{}/token-before", site.origin).into();
    store.save(&tokens_of(&site), &Secret::new(tokens.to_string())).await.unwrap();
    let later = Authorizer::builder(&site.url(), Profile::new("Test"), Plain).unwrap().store(store).build();
    assert_eq!(call(&later, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/token-before"), site.refreshed()), (1, 1, 2));
}

#[tokio::test]
async fn the_tokens_of_another_client_are_left_to_it() {
    let store = Watched::default();
    let site = Site::start(Habits { lifetimes: vec![0, 0], ..Habits::default() }).await;
    let registered = Profile::new("Test").registered(PreRegistered::new("me", Credential::None));
    let its = site.authorizer(registered).store(store.clone()).build();
    assert_eq!(call(&its, &site.url()).await.unwrap().0, 200);
    let other = Authorizer::builder(&site.url(), Profile::new("Other"), Plain).unwrap().store(store.clone()).build();
    for _ in 0..2 {
        assert!(matches!(call(&other, &site.url()).await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(call(&its, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 2));
}

#[tokio::test]
async fn tokens_that_could_not_be_saved_are_not_lost() {
    let store = Watched::default();
    let (site, authorizer) = stale(&store, vec![0, 0]).await;
    store.is_full.store(true, Ordering::Relaxed);
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::Store(_))));
    assert_eq!(site.refreshed(), 1);
    // The old refresh token is used up: only the new one, which is in no store, will do.
    store.is_full.store(false, Ordering::Relaxed);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 2));
    let kept = store.load(&tokens_of(&site)).await.unwrap().unwrap();
    assert!(kept.expose().contains("refresh-2"));
}

#[tokio::test]
async fn a_code_is_redeemed_though_its_caller_is_gone() {
    let site = Site::start(Habits::default()).await;
    site.redemptions.forget_permits(1000);
    let authorizer = site.authorizer(Profile::new("Test")).build();
    let caller = tokio::spawn({
        let (authorizer, url) = (authorizer.clone(), site.url());
        async move { call(&authorizer, &url).await }
    });
    while site.count("/token") == 0 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    site.redemptions.add_permits(1000);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!(site.count("/authorize"), 1, "the user is not asked again");
}

#[tokio::test]
async fn a_token_that_is_said_to_be_over_at_once_is_tried() {
    let habits = Habits { lifetimes: vec![0], gives_no_refresh_token: true, ..Habits::default() };
    let site = Site::start(habits).await;
    let authorizer = site.authorizer(Profile::new("Test")).build();
    for _ in 0..2 {
        assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    }
    assert_eq!(site.count("/authorize"), 1);
}

/// Sends everybody on, slowly.
struct Dragging;

impl HttpClient for Dragging {
    fn send(&self, _: Request<Payload>, _: usize) -> ResponseFuture<'_> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(Response::builder().status(302).header("location", "/more").body(Payload::default()).unwrap())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_not_looked_for_longer_than_one_request_may_take() {
    let dragging = Authorizer::builder("https://mcp.example.com/mcp", Profile::new("Test"), Dragging).unwrap().build();
    let mut attempt = dragging.attempt(Method::POST, "https://mcp.example.com/mcp").unwrap();
    let headers = HeaderMap::new();
    let answered = attempt.answered(StatusCode::UNAUTHORIZED, &headers);
    let answered = tokio::time::timeout(Duration::from_secs(31), answered).await;
    assert!(matches!(answered, Ok(Err(Error::Unreachable { .. }))), "{answered:?}");
}

/// Never gives any.
struct Nothing;

impl steadfast_auth::client::AssertionSource for Nothing {
    fn assertion<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Secret, Error>> {
        Box::pin(std::future::pending())
    }
}

/// A server and its authorization server, as far as their metadata.
struct Described;

impl HttpClient for Described {
    fn send(&self, request: Request<Payload>, _: usize) -> ResponseFuture<'_> {
        let document = if request.uri().path().contains("protected-resource") {
            r#"{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://auth.example.com"]}"#
        } else {
            r#"{"issuer":"https://auth.example.com","token_endpoint":"https://auth.example.com/token"}"#
        };
        Box::pin(async move { Ok(Response::new(Payload::from(document))) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_assertion_that_does_not_come_is_not_waited_for_for_ever() {
    let registered = PreRegistered::new("me", Credential::None);
    let profile = Profile::new("Test").grant(Grant::WorkloadIdentity).registered(registered);
    let builder = Authorizer::builder("https://mcp.example.com/mcp", profile, Described).unwrap();
    let waiting = builder.assertions(Nothing).build();
    let mut attempt = waiting.attempt(Method::POST, "https://mcp.example.com/mcp").unwrap();
    let headers = HeaderMap::new();
    let answered = attempt.answered(StatusCode::UNAUTHORIZED, &headers);
    let answered = tokio::time::timeout(Duration::from_secs(3600), answered).await;
    assert!(matches!(answered, Ok(Err(Error::NoAssertion(_)))), "{answered:?}");
}
