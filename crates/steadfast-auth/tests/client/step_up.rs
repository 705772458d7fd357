//! More scopes: who is asked for them, how often, and what becomes of the tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use steadfast_auth::client::{
    Attempt, Authorizer, BoxFuture, Error, Profile, ResponseAction, TokenStore as _, Tokens, Url, UserAgent, Visit,
};
use steadfast_auth::{HttpClient, HttpError, Payload, ResponseFuture};
use tokio::sync::Semaphore;

use crate::faults::{Once, Watched, tokens_of};
use crate::refresh::{Straight, authorize};
use crate::site::{Habits, Site, call};
use crate::wire::Plain;

/// Somebody who has logged in, whose user says no from now on.
async fn denied() -> (Site, Authorizer) {
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).user_agent(Straight).build();
    call(&authorizer, &site.url()).await.unwrap();
    site.deny(true);
    (site, authorizer)
}

/// The server wants these scopes besides those of the token.
async fn step_up(authorizer: &Authorizer, site: &Site, scopes: &str) -> Result<ResponseAction, Error> {
    let mut attempt = authorizer.attempt(Method::POST, &site.url()).unwrap();
    attempt.sign(&mut HeaderMap::new()).await.unwrap();
    answered(&mut attempt, scopes).await
}

async fn answered(attempt: &mut Attempt, scopes: &str) -> Result<ResponseAction, Error> {
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
    // What needs no more scopes goes on, and is no new login.
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
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(ResponseAction::Retry));
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
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(ResponseAction::Retry));
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn a_user_who_did_not_come_back_is_not_asked_again() {
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).user_agent(Once::default()).build();
    call(&authorizer, &site.url()).await.unwrap();
    let asked = || site.count("/.well-known/oauth-protected-resource/mcp");
    for _ in 0..3 {
        assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::UserUnavailable(_))));
    }
    assert_eq!(asked(), 2, "once for each time that the user was asked");
}

/// Reaches nobody for a while.
#[derive(Clone, Default)]
struct Cut(Arc<AtomicBool>);

impl HttpClient for Cut {
    fn send(&self, request: Request<Payload>, limit: usize) -> ResponseFuture<'_> {
        if self.0.load(Ordering::Relaxed) {
            return Box::pin(async { Err(HttpError::new("nobody is there")) });
        }
        Plain.send(request, limit)
    }
}

#[tokio::test]
async fn more_scopes_that_nobody_was_asked_for_are_asked_for_at_the_next_call() {
    let site = Site::start(Habits::default()).await;
    let cut = Cut::default();
    let builder = Authorizer::builder(&site.url(), Profile::new("Test"), cut.clone()).unwrap();
    let authorizer = builder.user_agent(Straight).build();
    call(&authorizer, &site.url()).await.unwrap();
    cut.0.store(true, Ordering::Relaxed);
    assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::Unreachable { .. })));
    cut.0.store(false, Ordering::Relaxed);
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(ResponseAction::Retry));
}

/// The scopes that were asked for with the tokens in the store.
async fn kept(store: &Watched, site: &Site) -> String {
    let kept = store.load(&tokens_of(site)).await.unwrap().unwrap();
    let tokens: Tokens = serde_json::from_str(kept.expose()).unwrap();
    tokens.scopes().map(ToString::to_string).unwrap_or_default()
}

#[tokio::test]
async fn more_scopes_are_not_lost_to_a_refresh_elsewhere() {
    let store = Watched::default();
    let site = Site::start(Habits { lifetimes: vec![0], ..Habits::default() }).await;
    let builder = || site.authorizer(Profile::new("Test")).store(store.clone()).user_agent(Straight);
    let (one, other) = (builder().build(), builder().build());
    authorize(&one, &site).await;
    store.locked.lock().unwrap().clear();
    // The other, as in another process, is in the middle of a refresh, with what was in the store.
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
    assert_eq!(more.await.unwrap(), Ok(ResponseAction::Retry));
    assert_eq!(kept(&store, &site).await, "basic write");
}

/// A user who thinks about it.
struct Thinking(Arc<Semaphore>);

impl UserAgent for Thinking {
    fn prepare<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Visit>, Error>> {
        Box::pin(async { Ok(Box::new(Self(Arc::clone(&self.0))) as Box<dyn Visit>) })
    }
}

impl Visit for Thinking {
    fn redirect_uri(&self) -> &'static str {
        "http://localhost:3000/callback"
    }

    fn visit(self: Box<Self>, url: Url) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            self.0.acquire().await.unwrap().forget();
            Box::new(Straight).visit(url).await
        })
    }
}

#[tokio::test]
async fn fewer_scopes_do_not_take_the_place_of_more_that_somebody_got_meanwhile() {
    let store = Watched::default();
    let site = Site::start(Habits::default()).await;
    let builder = || site.authorizer(Profile::new("Test")).store(store.clone());
    let thought = Arc::new(Semaphore::new(1));
    let one = builder().user_agent(Thinking(Arc::clone(&thought))).build();
    let other = builder().user_agent(Straight).build();
    call(&one, &site.url()).await.unwrap();
    let fewer = {
        let (one, site) = (one.clone(), site.clone());
        tokio::spawn(async move { call(&one, &format!("{}?write", site.url())).await })
    };
    while site.count("/.well-known/oauth-protected-resource/mcp") < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(step_up(&other, &site, "write admin").await, Ok(ResponseAction::Retry));
    thought.add_permits(1);
    assert_eq!(fewer.await.unwrap().unwrap(), (200, String::from(r#"{"scopes":"admin basic write"}"#)));
    assert_eq!(kept(&store, &site).await, "admin basic write");
    // And both have the same.
    assert_eq!(call(&one, &format!("{}?admin", site.url())).await.unwrap().0, 200);
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn what_a_user_granted_elsewhere_is_not_asked_for_again() {
    let store = Watched::default();
    let site = Site::start(Habits::default()).await;
    let builder = || site.authorizer(Profile::new("Test")).store(store.clone()).user_agent(Straight);
    let (one, other) = (builder().build(), builder().build());
    for authorizer in [&one, &other] {
        call(authorizer, &site.url()).await.unwrap();
    }
    for authorizer in [&one, &other] {
        assert_eq!(call(authorizer, &format!("{}?write", site.url())).await.unwrap().0, 200);
    }
    assert_eq!(site.count("/authorize"), 2);
    assert_eq!(step_up(&one, &site, "admin").await, Ok(ResponseAction::Retry));
    assert_eq!(step_up(&other, &site, "delete").await, Ok(ResponseAction::Retry));
    assert_eq!(kept(&store, &site).await, "admin basic delete write", "nothing that was granted is lost");
}

#[tokio::test]
async fn what_a_user_refused_here_and_granted_elsewhere_is_taken_up() {
    let store = Watched::default();
    let site = Site::start(Habits::default()).await;
    let builder = || site.authorizer(Profile::new("Test")).store(store.clone()).user_agent(Straight);
    let (one, other) = (builder().build(), builder().build());
    call(&one, &site.url()).await.unwrap();
    site.deny(true);
    assert!(matches!(step_up(&one, &site, "write").await, Err(Error::Denied(_))));
    site.deny(false);
    assert_eq!(step_up(&other, &site, "write").await, Ok(ResponseAction::Retry));
    assert_eq!(call(&one, &format!("{}?write", site.url())).await.unwrap().0, 200);
}
