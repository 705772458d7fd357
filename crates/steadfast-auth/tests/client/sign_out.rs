//! Sign-out deletes the tokens, and revokes them if the issuer supports it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Request, Response};
use serde_json::json;
use steadfast_auth::client::{
    Authorizer, MemoryTokenStore, OAuthClientSettings, Secret, TokenStore as _, TokenStoreKey,
};
use steadfast_auth::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};

use crate::faults::RecordingStore;
use crate::refresh::{DirectUserAgent, authorize};
use crate::site::{Site, SiteOptions, call};

const SERVER: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.com";

#[tokio::test]
async fn tokens_are_taken_back_where_that_can_be_done() {
    let site = Site::start(SiteOptions { revokes: true, ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).build();
    call(&authorizer, &site.url()).await.unwrap();
    authorizer.sign_out().await.unwrap();
    let seen = site.seen();
    let revoked: Vec<_> = seen.revocations.iter().map(|form| (&*form["token"], &*form["token_type_hint"])).collect();
    assert_eq!(revoked, [("refresh-0", "refresh_token"), ("access-0", "access_token")]);
}

#[tokio::test]
async fn the_last_tokens_are_the_ones_that_are_taken_back() {
    let site = Site::start(SiteOptions { revokes: true, lifetimes: vec![0], ..SiteOptions::default() }).await;
    let authorizer = site.authorizer(OAuthClientSettings::new("Test")).user_agent(DirectUserAgent).build();
    call(&authorizer, &site.url()).await.unwrap();
    assert_eq!(site.refreshed(), 1);
    assert_eq!(authorizer.forget().await, Ok(true));
    let seen = site.seen();
    let revoked: Vec<_> = seen.revocations.iter().map(|form| &*form["token"]).collect();
    assert_eq!(revoked, ["refresh-1", "access-1"], "by the client that is then invalidation");
}

#[tokio::test]
async fn tokens_that_no_store_took_are_taken_back() {
    let store = RecordingStore::default();
    let site = Site::start(SiteOptions { revokes: true, lifetimes: vec![0], ..SiteOptions::default() }).await;
    let builder = site.authorizer(OAuthClientSettings::new("Test")).store(store.clone());
    let authorizer = builder.user_agent(DirectUserAgent).build();
    authorize(&authorizer, &site).await;
    store.is_full.store(true, Ordering::Relaxed);
    assert!(call(&authorizer, &site.url()).await.is_err());
    authorizer.sign_out().await.unwrap();
    let seen = site.seen();
    let revoked: Vec<_> = seen.revocations.iter().map(|form| &*form["token"]).collect();
    assert_eq!(revoked, ["refresh-1", "access-1"]);
}

/// A store with tokens of a client with this authentication method.
async fn with_tokens(method: &str) -> MemoryTokenStore {
    let store = MemoryTokenStore::new();
    let binding = json!({"issuer": ISSUER, "resource": SERVER}).to_string();
    store.save(&TokenStoreKey::Server { url: SERVER.to_owned() }, &Secret::new(binding)).await.unwrap();
    let tokens = json!({
        "issuer": ISSUER, "resource": SERVER, "token_endpoint": "https://auth.example.com/token",
        "revocation_endpoint": "https://auth.example.com/revoke", "client_id": "me", "method": method,
        "access_token": "a", "scheme": "Bearer", "issued_at": 1,
    });
    let key = TokenStoreKey::Tokens { issuer: ISSUER.to_owned(), resource: SERVER.to_owned() };
    store.save(&key, &Secret::new(tokens.to_string())).await.unwrap();
    store
}

/// An HTTP client that never responds.
struct SilentHttpClient;

impl HttpClient for SilentHttpClient {
    fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn signing_out_works_while_the_issuer_does_not_respond() {
    let store = with_tokens("none").await;
    let authorizer = Authorizer::builder(SERVER, OAuthClientSettings::new("Test"), SilentHttpClient)
        .unwrap()
        .store(store.clone())
        .build();
    let signed_out = tokio::time::timeout(Duration::from_secs(6), authorizer.sign_out()).await;
    assert_eq!(signed_out, Ok(Ok(())));
    assert_eq!(format!("{store:?}"), "MemoryTokenStore(1 values)");
}

/// An HTTP client that responds with an error, or fails.
struct FailingRevocation(Result<u16, HttpClientError>);

impl HttpClient for FailingRevocation {
    fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        let answer = self.0.clone();
        Box::pin(async {
            answer.map(|status| Response::builder().status(status).body(HttpClientBody::default()).unwrap())
        })
    }
}

#[tokio::test]
async fn an_issuer_that_does_not_take_tokens_back_keeps_nobody_from_signing_out() {
    for unhelpful in [
        FailingRevocation(Ok(503)),
        FailingRevocation(Ok(302)),
        FailingRevocation(Err(HttpClientError::new("connection refused"))),
    ] {
        let store = with_tokens("none").await;
        let builder = Authorizer::builder(SERVER, OAuthClientSettings::new("Test"), unhelpful).unwrap();
        builder.store(store.clone()).build().sign_out().await.unwrap();
        assert_eq!(format!("{store:?}"), "MemoryTokenStore(1 values)");
    }
}

/// An HTTP client that must not be used.
struct UnusedHttpClient;

impl HttpClient for UnusedHttpClient {
    fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        panic!("{request:?}")
    }
}

#[tokio::test]
async fn a_client_that_cannot_show_who_it_is_shows_nobody_its_tokens() {
    let store = with_tokens("client_secret_basic").await;
    let authorizer = Authorizer::builder(SERVER, OAuthClientSettings::new("Test"), UnusedHttpClient)
        .unwrap()
        .store(store.clone())
        .build();
    authorizer.sign_out().await.unwrap();
    assert_eq!(format!("{store:?}"), "MemoryTokenStore(1 values)");
}
