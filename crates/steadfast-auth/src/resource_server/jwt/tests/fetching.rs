use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use tokio::sync::Semaphore;

use super::*;
use crate::resource_server::{HttpClient, HttpClientBody, HttpClientError, HttpClientFuture};

/// An authorization server: its key set, the number of requests, and whether it responds.
struct Server {
    document: Mutex<Result<Vec<u8>, u16>>,
    asked: AtomicUsize,
    /// One permit for each response.
    answers: Semaphore,
}

impl Server {
    fn new(keys: &[&Value]) -> Arc<Self> {
        let answers = Semaphore::new(Semaphore::MAX_PERMITS / 2);
        Arc::new(Self { document: Mutex::new(Ok(document(keys))), asked: AtomicUsize::new(0), answers })
    }

    fn publish(&self, keys: &[&Value]) {
        *self.document.lock().unwrap() = Ok(document(keys));
    }

    fn fail(&self, status: u16) {
        *self.document.lock().unwrap() = Err(status);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl HttpClient for Server {
    fn send(&self, request: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
        assert_eq!(request.uri(), "https://auth.example.com/jwks");
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.answers.acquire().await.map_err(|_| HttpClientError::new("closed"))?.forget();
            Ok(match self.document.lock().unwrap().clone() {
                Ok(document) => Response::new(document.into()),
                Err(status) => Response::builder().status(status).body(HttpClientBody::default()).unwrap(),
            })
        })
    }
}

fn fetched(server: &Arc<Server>) -> JwtVerifier {
    verifier(RemoteKeySet::new(server.clone(), "https://auth.example.com/jwks").unwrap())
}

/// Runs all tasks that are ready, without advancing the paused clock.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

const UNAVAILABLE: TokenRejection = TokenRejection::Unavailable("the keys of the issuer are not available");
const UNKNOWN: TokenRejection = TokenRejection::Invalid("the token is signed with an unknown key");

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_once_and_kept() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    for _ in 0..3 {
        assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_at_once_share_one_fetch() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    server.answers.forget_permits(usize::MAX);
    let verifier = Arc::new(fetched(&server));
    let token = Arc::new(signer.sign(&claims()));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (verifier, token) = (verifier.clone(), token.clone());
        asking.spawn(async move { verified(&verifier, &token).await });
    }
    settle().await;
    server.answers.add_permits(1);
    for found in asking.join_all().await {
        assert!(found.is_ok());
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_when_a_token_names_it() {
    let (old, new) = (Signer::es256("old"), Signer::es256("new"));
    let server = Server::new(&[&old.public]);
    let verifier = fetched(&server);
    assert!(verified(&verifier, &old.sign(&claims())).await.is_ok());
    server.publish(&[&new.public]);
    pass(Duration::from_secs(30)).await;
    assert!(verified(&verifier, &new.sign(&claims())).await.is_ok());
    assert_eq!(verified(&verifier, &old.sign(&claims())).await, Err(UNKNOWN), "a key that was taken away is gone");
}

#[tokio::test(start_paused = true)]
async fn tokens_with_invented_keys_cause_no_more_than_one_fetch_in_a_while() {
    let (signer, stranger) = (Signer::es256("one"), Signer::es256("invented"));
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    for _ in 0..10 {
        assert_eq!(verified(&verifier, &stranger.sign(&claims())).await, Err(UNKNOWN));
    }
    assert_eq!(server.asked(), 1);
    pass(Duration::from_secs(30)).await;
    assert_eq!(verified(&verifier, &stranger.sign(&claims())).await, Err(UNKNOWN));
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn old_keys_are_used_while_new_ones_are_fetched() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    server.answers.forget_permits(usize::MAX);
    pass(Duration::from_secs(3600)).await;
    for _ in 0..3 {
        assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok(), "nobody waits");
    }
    settle().await;
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn old_keys_outlive_a_server_that_is_down_but_not_for_ever() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    server.fail(500);
    pass(Duration::from_secs(23 * 3600)).await;
    assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    pass(Duration::from_secs(3600)).await;
    assert_eq!(verified(&verifier, &signer.sign(&claims())).await, Err(UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn without_keys_nobody_is_let_in_until_there_are_some() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    server.fail(503);
    for _ in 0..3 {
        assert_eq!(verified(&verifier, &signer.sign(&claims())).await, Err(UNAVAILABLE));
    }
    assert_eq!(server.asked(), 1);
    server.publish(&[&signer.public]);
    pass(Duration::from_secs(30)).await;
    assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_does_not_end_the_fetch() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    server.answers.forget_permits(usize::MAX);
    let verifier = Arc::new(fetched(&server));
    let token = signer.sign(&claims());
    let asking = {
        let (verifier, token) = (verifier.clone(), token.clone());
        tokio::spawn(async move { verified(&verifier, &token).await })
    };
    settle().await;
    asking.abort();
    settle().await;
    server.answers.add_permits(1);
    assert!(verified(&verifier, &token).await.is_ok());
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    server.answers.forget_permits(usize::MAX);
    assert_eq!(verified(&fetched(&server), &signer.sign(&claims())).await, Err(UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_leaves_nobody_waiting() {
    struct Panics;

    impl HttpClient for Panics {
        fn send(&self, _: Request<HttpClientBody>, _: usize) -> HttpClientFuture<'_> {
            panic!("a client that is not well")
        }
    }

    let keys = RemoteKeySet::new(Panics, "https://auth.example.com/jwks").unwrap();
    assert_eq!(verified(&verifier(keys), &Signer::es256("one").sign(&claims())).await, Err(UNAVAILABLE));
}

#[tokio::test(start_paused = true)]
async fn documents_that_are_too_long_or_no_key_set_do_not_replace_the_keys() {
    let signer = Signer::es256("one");
    let server = Server::new(&[&signer.public]);
    let verifier = fetched(&server);
    assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    let long = json!({ "keys": [], "padding": "x".repeat(256 * 1024) }).to_string().into_bytes();
    for wrong in [b"<html>".to_vec(), b"{\"keys\":[]}".to_vec(), long] {
        *server.document.lock().unwrap() = Ok(wrong);
        pass(Duration::from_secs(3600)).await;
        assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
        settle().await;
        assert!(verified(&verifier, &signer.sign(&claims())).await.is_ok());
    }
    assert_eq!(server.asked(), 4);
}

#[test]
fn keys_are_not_fetched_over_an_open_line() {
    assert!(RemoteKeySet::new(Server::new(&[]), "http://auth.example.com/jwks").is_err());
}
