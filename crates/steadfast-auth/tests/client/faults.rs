//! Tokens and failures: a failing store, a busy server or one that forgot a client, a caller that is dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use steadfast_auth::client::{
    Authorizer, BoxFuture, ClientCredential, Error, Grant, MemoryTokenStore, OAuthClientSettings, PreRegisteredClient,
    Secret, TokenStore, TokenStoreError, TokenStoreKey, TokenStoreLockGuard, Url, UserAgent, UserLogin,
};
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientFuture};

use crate::refresh::{DirectUserAgent, authorize};
use crate::site::{Site, SiteOptions, call};
use crate::wire::MinimalHttpClient;

/// A store that records its calls, and that can be made to fail.
#[derive(Clone, Default)]
pub(crate) struct RecordingStore {
    kept: MemoryTokenStore,
    /// The keys whose locks were requested, in order.
    pub(crate) locked: Arc<Mutex<Vec<TokenStoreKey>>>,
    pub(crate) is_full: Arc<AtomicBool>,
}

impl TokenStore for RecordingStore {
    fn load<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<Option<Secret>, TokenStoreError>> {
        self.kept.load(key)
    }

    fn save<'a>(&'a self, key: &'a TokenStoreKey, value: &'a Secret) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        if self.is_full.load(Ordering::Relaxed) {
            return Box::pin(async { Err(TokenStoreError::new("there is no room")) });
        }
        self.kept.save(key, value)
    }

    fn remove<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        self.kept.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a TokenStoreKey) -> BoxFuture<'a, Result<TokenStoreLockGuard, TokenStoreError>> {
        self.locked.lock().unwrap().push(key.clone());
        self.kept.lock(key)
    }
}

pub(crate) fn tokens_of(site: &Site) -> TokenStoreKey {
    TokenStoreKey::Tokens { issuer: site.origin.clone(), resource: site.url() }
}

/// A site whose first tokens expire at once, and an authorizer that has them, with a user agent at a fixed redirect URI.
async fn stale(store: &RecordingStore, lifetimes: Vec<u64>) -> (Site, Authorizer) {
    let site = Site::start(SiteOptions { lifetimes, ..SiteOptions::default() }).await;
    let authorizer =
        site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).user_agent(DirectUserAgent).build();
    authorize(&authorizer, &site).await;
    (site, authorizer)
}

/// An authorizer that loaded the store while it was empty.
async fn early(site: &Site, store: &RecordingStore) -> Authorizer {
    let early = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), MinimalHttpClient)
        .unwrap()
        .store(store.clone())
        .build();
    let mut headers = HeaderMap::new();
    early.attempt(Method::POST, &site.url()).unwrap().sign(&mut headers).await.unwrap();
    assert!(headers.is_empty());
    early
}

#[tokio::test]
async fn what_others_got_meanwhile_is_refreshed_under_its_lock() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions { lifetimes: vec![0], ..SiteOptions::default() }).await;
    let early = early(&site, &store).await;
    authorize(&site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).build(), &site).await;
    store.locked.lock().unwrap().clear();
    assert_eq!(call(&early, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 1));
    assert_eq!(*store.locked.lock().unwrap(), [tokens_of(&site)]);
}

#[tokio::test]
async fn signing_out_forgets_what_others_got_meanwhile() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions::default()).await;
    let early = early(&site, &store).await;
    authorize(&site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).build(), &site).await;
    store.locked.lock().unwrap().clear();
    early.sign_out().await.unwrap();
    assert!(store.load(&tokens_of(&site)).await.unwrap().is_none());
    // Not during a refresh of another process, which would store them again.
    assert_eq!(*store.locked.lock().unwrap(), [tokens_of(&site)]);
}

#[tokio::test]
async fn a_client_that_is_not_known_any_more_registers_again() {
    let site = Site::start(SiteOptions { lifetimes: vec![0, 0], ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/register")), (1, 1));
    site.refuse_refreshes(Some((401, "invalid_client")));
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/register")), (2, 2));
}

/// A user who completes one login, and none after it.
#[derive(Default)]
pub(crate) struct OneLogin(AtomicBool);

impl UserAgent for OneLogin {
    fn prepare<'a>(&'a self, preferred: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Box::pin(async { Ok(Box::new(AbsentUser) as Box<dyn UserLogin>) });
        }
        DirectUserAgent.prepare(preferred)
    }
}

struct AbsentUser;

impl UserLogin for AbsentUser {
    fn redirect_uri(&self) -> &'static str {
        "http://localhost:3000/callback"
    }

    fn visit(self: Box<Self>, _: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async { Err(Error::UserUnavailable(String::from("there was no answer in time"))) })
    }
}

#[tokio::test]
async fn a_registration_is_not_reused_after_a_login_without_redirect() {
    let store = MemoryTokenStore::new();
    let site = Site::start(SiteOptions::default()).await;
    let authorizer =
        site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).user_agent(OneLogin::default()).build();
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    let client = TokenStoreKey::Client { issuer: site.origin.clone() };
    assert!(store.load(&client).await.unwrap().is_some());
    authorizer.sign_out().await.unwrap();
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::UserUnavailable(_))));
    assert!(store.load(&client).await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_always_wants_more_scopes_is_followed_a_few_times_only() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
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
    let store = RecordingStore::default();
    let (site, _) = stale(&store, Vec::new()).await;
    site.forget_access_tokens();
    site.forget_refresh_tokens();
    let alone = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), MinimalHttpClient)
        .unwrap()
        .store(store)
        .build();
    for _ in 0..3 {
        assert!(matches!(call(&alone, &site.url()).await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(site.refreshed(), 1);
}

#[tokio::test]
async fn a_refresh_token_that_was_refused_to_another_is_not_missed() {
    let store = RecordingStore::default();
    let (site, one) = stale(&store, vec![0]).await;
    let other = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), MinimalHttpClient)
        .unwrap()
        .store(store.clone())
        .build();
    // It has the same tokens, and has to find out that they are invalid.
    site.forget_refresh_tokens();
    assert!(matches!(call(&other, &site.url()).await, Err(Error::UserUnavailable(_))));
    assert_eq!(call(&one, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (2, 1));
}

#[tokio::test]
async fn a_refresh_token_outlives_an_authorization_server_that_is_busy() {
    let (site, authorizer) = stale(&RecordingStore::default(), vec![0]).await;
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
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions { lifetimes: vec![0, 0], ..SiteOptions::default() }).await;
    let before = site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).build();
    assert_eq!(call(&before, &site.url()).await.unwrap().0, 200);
    let mut tokens: serde_json::Value =
        serde_json::from_str(store.load(&tokens_of(&site)).await.unwrap().unwrap().expose()).unwrap();
    tokens["token_endpoint"] = format!("{}/token-before", site.origin).into();
    store.save(&tokens_of(&site), &Secret::new(tokens.to_string())).await.unwrap();
    let later = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), MinimalHttpClient)
        .unwrap()
        .store(store)
        .build();
    assert_eq!(call(&later, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.count("/token-before"), site.refreshed()), (1, 1, 2));
}

#[tokio::test]
async fn the_tokens_of_another_client_are_left_to_it() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions { lifetimes: vec![0, 0], ..SiteOptions::default() }).await;
    let registered =
        OAuthClientSettings::new("Test").registered(PreRegisteredClient::new("me", ClientCredential::None));
    let its = site.authorizer(registered).store(store.clone()).build();
    assert_eq!(call(&its, &site.url()).await.unwrap().0, 200);
    let other = Authorizer::builder(&site.url(), OAuthClientSettings::new("Other"), MinimalHttpClient)
        .unwrap()
        .store(store.clone())
        .build();
    for _ in 0..2 {
        assert!(matches!(call(&other, &site.url()).await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(call(&its, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 2));
}

#[tokio::test]
async fn tokens_that_could_not_be_saved_are_not_lost() {
    let store = RecordingStore::default();
    let (site, authorizer) = stale(&store, vec![0, 0]).await;
    store.is_full.store(true, Ordering::Relaxed);
    assert!(matches!(call(&authorizer, &site.url()).await, Err(Error::Store(_))));
    assert_eq!(site.refreshed(), 1);
    // The old refresh token is used up: only the new one works, which is not in the store yet.
    store.is_full.store(false, Ordering::Relaxed);
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert_eq!((site.count("/authorize"), site.refreshed()), (1, 2));
    let kept = store.load(&tokens_of(&site)).await.unwrap().unwrap();
    assert!(kept.expose().contains("refresh-2"));
}

#[tokio::test]
async fn a_code_is_redeemed_though_its_caller_is_gone() {
    let site = Site::start(SiteOptions::default()).await;
    site.redemptions.forget_permits(1000);
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
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
    let options = SiteOptions { lifetimes: vec![0], gives_no_refresh_token: true, ..SiteOptions::default() };
    let site = Site::start(options).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).build();
    for _ in 0..2 {
        assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    }
    assert_eq!(site.count("/authorize"), 1);
}

/// An HTTP client that answers every request slowly with a redirect.
struct SlowRedirects;

impl HttpClient for SlowRedirects {
    fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(Response::builder().status(302).header("location", "/more").body(HttpClientBody::default()).unwrap())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_not_looked_for_longer_than_one_request_may_take() {
    let dragging = Authorizer::builder("https://mcp.example.com/mcp", OAuthClientSettings::new("Test"), SlowRedirects)
        .unwrap()
        .build();
    let mut attempt = dragging.attempt(Method::POST, "https://mcp.example.com/mcp").unwrap();
    let headers = HeaderMap::new();
    let answered = attempt.answered(StatusCode::UNAUTHORIZED, &headers);
    let answered = tokio::time::timeout(Duration::from_secs(31), answered).await;
    assert!(matches!(answered, Ok(Err(Error::Unreachable { .. }))), "{answered:?}");
}

/// An assertion source that never returns.
struct PendingAssertions;

impl steadfast_auth::client::AssertionSource for PendingAssertions {
    fn assertion<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Secret, Error>> {
        Box::pin(std::future::pending())
    }
}

/// A server and its authorization server, with metadata only.
struct MetadataServer;

impl HttpClient for MetadataServer {
    fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        let document = if request.uri().path().contains("protected-resource") {
            r#"{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://auth.example.com"]}"#
        } else {
            r#"{"issuer":"https://auth.example.com","token_endpoint":"https://auth.example.com/token"}"#
        };
        Box::pin(async move { Ok(Response::new(HttpClientBody::from(document))) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_assertion_that_does_not_come_is_not_waited_for_for_ever() {
    let registered = PreRegisteredClient::new("me", ClientCredential::None);
    let profile = OAuthClientSettings::new("Test").grant(Grant::WorkloadIdentity).registered(registered);
    let builder = Authorizer::builder("https://mcp.example.com/mcp", profile, MetadataServer).unwrap();
    let waiting = builder.assertions(PendingAssertions).build();
    let mut attempt = waiting.attempt(Method::POST, "https://mcp.example.com/mcp").unwrap();
    let headers = HeaderMap::new();
    let answered = attempt.answered(StatusCode::UNAUTHORIZED, &headers);
    let answered = tokio::time::timeout(Duration::from_secs(3600), answered).await;
    assert!(matches!(answered, Ok(Err(Error::NoAssertion(_)))), "{answered:?}");
}
