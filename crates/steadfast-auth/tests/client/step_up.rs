//! Step-up authorization: when the user is asked for more scopes, and which tokens result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use steadfast_auth::client::{
    Authorizer, BoxFuture, Error, OAuthClientSettings, OAuthRequestAttempt, OAuthResponseAction, TokenStore as _,
    Tokens, Url, UserAgent, UserLogin,
};
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};
use tokio::sync::Semaphore;

use crate::faults::{OneLogin, RecordingStore, tokens_of};
use crate::refresh::{DirectUserAgent, authorize};
use crate::site::{Site, SiteOptions, call};
use crate::wire::MinimalHttpClient;

/// An authorizer with tokens, whose user denies access from now on.
async fn denied() -> (Site, Authorizer) {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).build();
    call(&authorizer, &site.url()).await.unwrap();
    site.deny(true);
    (site, authorizer)
}

/// A request that requires these scopes in addition to those of the token.
async fn step_up(authorizer: &Authorizer, site: &Site, scopes: &str) -> Result<OAuthResponseAction, Error> {
    let mut attempt = authorizer.attempt(Method::POST, &site.url()).unwrap();
    attempt.sign(&mut HeaderMap::new()).await.unwrap();
    answered(&mut attempt, scopes).await
}

async fn answered(attempt: &mut OAuthRequestAttempt, scopes: &str) -> Result<OAuthResponseAction, Error> {
    let mut headers = HeaderMap::new();
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
    headers.insert("www-authenticate", challenge.parse().unwrap());
    attempt.answered(StatusCode::FORBIDDEN, &headers).await
}

#[tokio::test]
async fn a_user_who_said_no_to_more_scopes_is_not_asked_again() {
    let (site, authorizer) = denied().await;
    for _ in 0..3 {
        let refused = call(&authorizer, &format!("{}?write", site.url())).await;
        assert!(matches!(refused, Err(Error::Denied(_))), "{refused:?}");
    }
    // A request that needs no more scopes works, without a new login.
    assert_eq!(call(&authorizer, &site.url()).await.unwrap().0, 200);
    assert!(matches!(step_up(&authorizer, &site, "basic write").await, Err(Error::Denied(_))), "the same question");
    assert_eq!(site.count("/authorize"), 2);
}

#[tokio::test]
async fn a_user_who_said_no_is_asked_for_other_scopes() {
    let (site, authorizer) = denied().await;
    for scopes in ["write", "admin", "write admin", "write", "admin"] {
        assert!(matches!(step_up(&authorizer, &site, scopes).await, Err(Error::Denied(_))), "{scopes}");
    }
    assert_eq!(site.count("/authorize"), 4, "once, and once for each question");
}

#[tokio::test]
async fn a_user_who_said_no_is_asked_again_after_a_new_login() {
    let (site, authorizer) = denied().await;
    assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::Denied(_))));
    site.deny(false);
    authorizer.sign_out().await.unwrap();
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(OAuthResponseAction::Retry));
    assert_eq!(site.count("/authorize"), 4);
}

#[tokio::test]
async fn a_user_who_said_no_is_asked_again_after_a_while() {
    let (site, authorizer) = denied().await;
    assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::Denied(_))));
    site.deny(false);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(9 * 60)).await;
    assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::Denied(_))));
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(OAuthResponseAction::Retry));
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn a_user_who_did_not_come_back_is_not_asked_again() {
    let site = Site::start(SiteOptions::default()).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(OneLogin::default()).build();
    call(&authorizer, &site.url()).await.unwrap();
    let asked = || site.count("/.well-known/oauth-protected-resource/mcp");
    for _ in 0..3 {
        assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(asked(), 2, "once for each time that the user was asked");
}

/// An HTTP client that can be switched to fail.
#[derive(Clone, Default)]
struct SwitchableHttpClient(Arc<AtomicBool>);

impl HttpClient for SwitchableHttpClient {
    fn send(&self, request: Request<HttpClientBody>, limit: usize) -> HttpClientFuture<'_> {
        if self.0.load(Ordering::Relaxed) {
            return Box::pin(async { Err(HttpClientError::new("connection refused")) });
        }
        MinimalHttpClient.send(request, limit)
    }
}

#[tokio::test]
async fn more_scopes_that_nobody_was_asked_for_are_asked_for_at_the_next_call() {
    let site = Site::start(SiteOptions::default()).await;
    let http = SwitchableHttpClient::default();
    let builder = Authorizer::builder(&site.url(), OAuthClientSettings::new("Test"), http.clone()).unwrap();
    let authorizer = builder.user_agent(DirectUserAgent).build();
    call(&authorizer, &site.url()).await.unwrap();
    http.0.store(true, Ordering::Relaxed);
    assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::Unreachable { .. })));
    http.0.store(false, Ordering::Relaxed);
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(OAuthResponseAction::Retry));
}

/// The requested scopes of the tokens in the store.
async fn kept(store: &RecordingStore, site: &Site) -> String {
    let kept = store.load(&tokens_of(site)).await.unwrap().unwrap();
    let tokens: Tokens = serde_json::from_str(kept.expose()).unwrap();
    tokens.scopes().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn more_scopes_are_not_lost_to_a_refresh_elsewhere() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions { lifetimes: vec![0], ..SiteOptions::default() }).await;
    let builder = || site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).user_agent(DirectUserAgent);
    let (one, other) = (builder().build(), builder().build());
    authorize(&one, &site).await;
    store.locked.lock().unwrap().clear();
    // The other, as in another process, is refreshing the stored tokens.
    site.refreshes.forget_permits(1000);
    let mut attempt = other.attempt(Method::POST, &site.url()).unwrap();
    let refresh = tokio::spawn(async move { attempt.sign(&mut HeaderMap::new()).await });
    while site.refreshed() == 0 {
        tokio::task::yield_now().await;
    }
    let mut attempt = one.attempt(Method::POST, &site.url()).unwrap();
    let more = tokio::spawn(async move { answered(&mut attempt, "basic write").await });
    while store.locked.lock().unwrap().len() < 2 && !more.is_finished() {
        tokio::task::yield_now().await;
    }
    site.refreshes.add_permits(1000);
    refresh.await.unwrap().unwrap();
    assert_eq!(more.await.unwrap(), Ok(OAuthResponseAction::Retry));
    assert_eq!(kept(&store, &site).await, "basic write");
}

/// A user agent that responds when released.
struct PausedUserAgent(Arc<Semaphore>);

impl UserAgent for PausedUserAgent {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn UserLogin>, Error>> {
        Box::pin(async { Ok(Box::new(Self(Arc::clone(&self.0))) as Box<dyn UserLogin>) })
    }
}

impl UserLogin for PausedUserAgent {
    fn redirect_uri(&self) -> &'static str {
        "http://localhost:3000/callback"
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            self.0.acquire().await.unwrap().forget();
            Box::new(DirectUserAgent).visit(url).await
        })
    }
}

#[tokio::test]
async fn fewer_scopes_do_not_take_the_place_of_more_that_somebody_got_meanwhile() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions::default()).await;
    let builder = || site.authorizer(OAuthClientSettings::new("Test")).store(store.clone());
    let thought = Arc::new(Semaphore::new(1));
    let one = builder().user_agent(PausedUserAgent(Arc::clone(&thought))).build();
    let other = builder().user_agent(DirectUserAgent).build();
    call(&one, &site.url()).await.unwrap();
    let fewer = {
        let (one, site) = (one.clone(), site.clone());
        tokio::spawn(async move { call(&one, &format!("{}?write", site.url())).await })
    };
    while site.count("/.well-known/oauth-protected-resource/mcp") < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(step_up(&other, &site, "write admin").await, Ok(OAuthResponseAction::Retry));
    thought.add_permits(1);
    assert_eq!(fewer.await.unwrap().unwrap(), (200, String::from(r#"{"scopes":"admin basic write"}"#)));
    assert_eq!(kept(&store, &site).await, "admin basic write");
    // Both have the same tokens.
    assert_eq!(call(&one, &format!("{}?admin", site.url())).await.unwrap().0, 200);
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn what_a_user_granted_elsewhere_is_not_asked_for_again() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions::default()).await;
    let builder = || site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).user_agent(DirectUserAgent);
    let (one, other) = (builder().build(), builder().build());
    for authorizer in [&one, &other] {
        call(authorizer, &site.url()).await.unwrap();
    }
    for authorizer in [&one, &other] {
        assert_eq!(call(authorizer, &format!("{}?write", site.url())).await.unwrap().0, 200);
    }
    assert_eq!(site.count("/authorize"), 2);
    assert_eq!(step_up(&one, &site, "admin").await, Ok(OAuthResponseAction::Retry));
    assert_eq!(step_up(&other, &site, "delete").await, Ok(OAuthResponseAction::Retry));
    assert_eq!(kept(&store, &site).await, "admin basic delete write", "nothing that was granted is lost");
}

#[tokio::test]
async fn what_a_user_refused_here_and_granted_elsewhere_is_taken_up() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions::default()).await;
    let builder = || site.authorizer(OAuthClientSettings::new("Test")).store(store.clone()).user_agent(DirectUserAgent);
    let (one, other) = (builder().build(), builder().build());
    call(&one, &site.url()).await.unwrap();
    site.deny(true);
    assert!(matches!(step_up(&one, &site, "write").await, Err(Error::Denied(_))));
    site.deny(false);
    assert_eq!(step_up(&other, &site, "write").await, Ok(OAuthResponseAction::Retry));
    assert_eq!(call(&one, &format!("{}?write", site.url())).await.unwrap().0, 200);
}
