//! More scopes: who is asked for them, how often, and what becomes of the tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use steadfast_auth::client::{Authorizer, Error, Profile, Verdict};
use steadfast_auth::{HttpClient, HttpError, Payload, Reply};

use crate::faults::Once;
use crate::refresh::Straight;
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

/// The server wants these scopes besides.
async fn step_up(authorizer: &Authorizer, site: &Site, scopes: &str) -> Result<Verdict, Error> {
    let mut attempt = authorizer.attempt(Method::POST, &site.url()).unwrap();
    attempt.sign(&mut HeaderMap::new()).await.unwrap();
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
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(Verdict::Again));
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
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(Verdict::Again));
    assert_eq!(site.count("/authorize"), 3);
}

#[tokio::test]
async fn a_user_who_did_not_come_back_is_not_asked_again() {
    let site = Site::start(Habits::default()).await;
    let authorizer = site.authorizer(Profile::new("Test")).user_agent(Once::default()).build();
    call(&authorizer, &site.url()).await.unwrap();
    let asked = || site.count("/.well-known/oauth-protected-resource/mcp");
    for _ in 0..3 {
        assert!(matches!(step_up(&authorizer, &site, "write").await, Err(Error::NoUser(_))));
    }
    assert_eq!(asked(), 2, "once for each time that the user was asked");
}

/// Reaches nobody for a while.
#[derive(Clone, Default)]
struct Cut(Arc<AtomicBool>);

impl HttpClient for Cut {
    fn send(&self, request: Request<Payload>, limit: usize) -> Reply<'_> {
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
    assert_eq!(step_up(&authorizer, &site, "write").await, Ok(Verdict::Again));
}
