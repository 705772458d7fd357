//! `TransportFetch` and `Authorize` of the program: on which threads they run, and what happens when they panic.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};

use bytes::Bytes;
use serde_json::{Value, json};
use steadfast::transport::http::{
    Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture, TransportFetch,
    TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest, TransportFetchResponse,
};
use steadfast::{Outcome, SubscriptionFilter};

use super::*;

/// A network in which everything is answered at once: the handshakes as they should be, and calls of tools with nothing.
pub(super) struct LocalFetch<F>(pub(super) F);

/// What a test does with a request before it is answered.
pub(super) type Before = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<F: Fn(&TransportFetchRequest, &Value) -> Before + Send + Sync + 'static> TransportFetch for LocalFetch<F> {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        let message = request.body.as_ref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
        let before = (self.0)(&request, &message);
        Box::pin(async move {
            before.await;
            Ok(answer(&request, &message))
        })
    }
}

pub(super) fn no_delay() -> Before {
    Box::pin(async {})
}

fn answer(request: &TransportFetchRequest, message: &Value) -> TransportFetchResponse {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "near", "version": "1"},
            "capabilities": {"tools": {}}}),
        Some("server/discover") => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        _ => json!({"resultType": "complete", "content": []}),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    match (request.method.as_str(), message.get("id")) {
        ("POST", Some(_)) => respond(200, "application/json", FullBody(Some(body.into()))),
        ("POST", None) => respond(202, "application/json", FullBody(None)),
        _ => respond(405, "text/plain", FullBody(None)),
    }
}

pub(super) fn respond(status: u16, content: &str, body: impl TransportFetchBody + 'static) -> TransportFetchResponse {
    let body: Box<dyn TransportFetchBody> = Box::new(body);
    ::http::Response::builder().status(status).header("content-type", content).body(body).unwrap()
}

/// A body in one piece.
pub(super) struct FullBody(pub(super) Option<Bytes>);

impl TransportFetchBody for FullBody {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// A body that is nothing but trouble.
struct Trouble<F>(F);

impl<F: FnMut() + Send> TransportFetchBody for Trouble<F> {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        (self.0)();
        Poll::Ready(None)
    }
}

/// Where the program's code does something that it should not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Attempt,
    Sign,
    SignLater,
    Answered,
    AnsweredLater,
    Fetch,
    FetchLater,
    Body,
}

use Place::{Answered, AnsweredLater, Body, FetchLater, Sign, SignLater};

/// Lets the first request pass, and does something to every other in one place.
#[derive(Clone)]
struct Troubled {
    place: Place,
    passed: Arc<AtomicUsize>,
    trouble: Arc<dyn Fn() + Send + Sync>,
}

impl Troubled {
    fn new(place: Place, trouble: impl Fn() + Send + Sync + 'static) -> Self {
        Self { place, passed: Arc::default(), trouble: Arc::new(trouble) }
    }

    fn is_at(&self, place: Place) {
        if self.place == place && self.passed.load(Ordering::SeqCst) > 1 {
            (self.trouble)();
        }
    }

    /// A client of a real server, with this fault.
    async fn connect(self, url: &str) -> Client {
        let target = HttpTarget::new(url);
        let target = match self.place {
            Place::Fetch | FetchLater | Body => target.fetch(self),
            _ => target.authorize(self),
        };
        connect_once(target, NegotiationMode::Stateless).await
    }
}

impl Authorize for Troubled {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        self.passed.fetch_add(1, Ordering::SeqCst);
        self.is_at(Place::Attempt);
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Troubled {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        self.is_at(Sign);
        Box::pin(async {
            self.is_at(SignLater);
            Ok(())
        })
    }

    fn answered<'a>(
        &'a mut self,
        _: ::http::StatusCode,
        _: &'a ::http::HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        self.is_at(Answered);
        Box::pin(async {
            self.is_at(AnsweredLater);
            Ok(false)
        })
    }
}

impl TransportFetch for Troubled {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        self.passed.fetch_add(1, Ordering::SeqCst);
        self.is_at(Place::Fetch);
        let troubled = self.clone();
        Box::pin(async move {
            troubled.is_at(FetchLater);
            if troubled.place == Body && troubled.passed.load(Ordering::SeqCst) > 1 {
                return Ok(respond(200, "application/json", Trouble(move || troubled.is_at(Body))));
            }
            LocalFetch(|_: &TransportFetchRequest, _: &Value| no_delay()).fetch(request).await
        })
    }
}

/// An unauthorized request was not sent. A panic whose payload is not a string counts, too.
#[tokio::test]
async fn a_panic_in_authorize_ends_the_call_as_not_sent() {
    for place in [Place::Attempt, Sign, SignLater, Answered, AnsweredLater] {
        let (url, requests) = raw(|_, request| modern(request, || response("401 Unauthorized", &[], ""))).await;
        let client = Troubled::new(place, move || panic_any(place)).connect(&url).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent, "{place:?} {error:?}");
        let refused = requests.lock().unwrap().iter().filter(|request| request.is("tools/call")).count();
        assert_eq!(refused, usize::from(matches!(place, Answered | AnsweredLater)), "{place:?}");
    }
}

#[tokio::test]
async fn a_panic_in_fetch_ends_the_call_as_unknown() {
    for place in [Place::Fetch, FetchLater, Body] {
        let client = Troubled::new(place, || panic!("as it does")).connect("http://near/mcp").await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Unknown, "{place:?} {error:?}");
    }
}

/// A call that waits for the handshake does not wait for ever.
#[tokio::test]
async fn a_panic_after_the_handshake_does_not_delay_later_calls() {
    let panics = |_: &TransportFetchRequest, message: &Value| {
        assert_ne!(message["method"], "notifications/initialized", "as it does");
        no_delay()
    };
    let client = connect_once(HttpTarget::new("http://near/mcp").fetch(LocalFetch(panics)), OLDER).await;
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
}

/// L6: code that blocks its thread delays only its own request.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn blocking_in_authorize_or_fetch_does_not_delay_other_clients() {
    for place in [Place::Attempt, Sign, SignLater, Answered, AnsweredLater, Place::Fetch, FetchLater, Body] {
        let (url, _) = raw(|_, request| modern(request, || json_answer(request, &json!({"content": []})))).await;
        let (blocks, (release, released)) = (Signal::default(), mpsc::channel::<()>());
        let (begun, released) = (blocks.clone(), Mutex::new(released));
        let blocking = move || {
            begun.set();
            // Ends when the test lets go of the other end.
            let _ = released.lock().unwrap().recv();
        };
        let (stuck, other) =
            (Troubled::new(place, blocking).connect(&url).await, connect(&url, NegotiationMode::Stateless).await);
        let call = tokio::spawn(stuck.call_tool("any", json!({})).into_future());
        soon(blocks.wait()).await;
        soon(other.call_tool("any", json!({})).into_future()).await.unwrap();
        drop(release);
        let ended = soon(call).await.unwrap();
        // The body has nothing in it.
        assert_eq!(ended.is_ok(), place != Body, "{place:?} {ended:?}");
    }
}

/// Refuses GET requests, and asks for a retry of every refused request.
#[derive(Clone, Default)]
struct Stubborn {
    reading: Signal,
    answered: Arc<Mutex<Vec<u16>>>,
}

struct Asking {
    stubborn: Stubborn,
    reads: bool,
}

impl Authorize for Stubborn {
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(Asking { stubborn: self.clone(), reads: request.method == ::http::Method::GET })
    }
}

impl RequestAuthorization for Asking {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        if self.reads {
            self.stubborn.reading.set();
            return Box::pin(async { Err("nobody is there to log in".into()) });
        }
        Box::pin(async { Ok(()) })
    }

    fn answered<'a>(
        &'a mut self,
        status: ::http::StatusCode,
        _: &'a ::http::HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        self.stubborn.answered.lock().unwrap().push(status.as_u16());
        Box::pin(async { Ok(true) })
    }
}

/// After a 401 that is not resolved, the same stream is not requested again.
#[tokio::test]
async fn an_unauthorized_event_stream_is_requested_once() {
    let (url, _) = raw(|_, request| older(request, || events("id: 1\nretry: 1\ndata:\n\n"))).await;
    let stubborn = Stubborn::default();
    let client = connect_once(HttpTarget::new(&url).authorize(stubborn.clone()), OLDER).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    // There is nothing to wait for any more.
    soon(changes.next()).await.unwrap().unwrap();
    assert_eq!(stubborn.reading.count(), 1, "the stream of the server");
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error:?}");
    assert_eq!(stubborn.reading.count(), 2, "the rest of an answer");
}

/// Counts the responses that `Authorize` sees, until a request is authorized.
#[tokio::test]
async fn authorize_sees_every_response() {
    for (refusals, statuses) in [(4, [401, 401, 401, 401, 200]), (9, [401; 5])] {
        let (url, requests) = raw(move |number, request| {
            modern(request, || match number {
                0 => panic!("it is for finding out what the server speaks"),
                number if number <= refusals => response("401 Unauthorized", &[], ""),
                _ => json_answer(request, &json!({"resultType": "complete", "content": []})),
            })
        })
        .await;
        let stubborn = Stubborn::default();
        let client = connect_once(HttpTarget::new(&url).authorize(stubborn.clone()), NegotiationMode::Stateless).await;
        stubborn.answered.lock().unwrap().clear();
        let called = soon(client.call_tool("any", json!({})).into_future()).await;
        assert_eq!(called.is_ok(), refusals == 4, "{called:?}");
        assert_eq!(*stubborn.answered.lock().unwrap(), statuses);
        assert_eq!(requests.lock().unwrap().len(), 6, "a few times at most");
    }
}

/// L7, L5: the body of a dropped call is dropped, also by the task that reads it.
#[tokio::test]
async fn dropping_a_call_drops_the_rest_of_its_body() {
    struct Endless(#[allow(dead_code, reason = "its drop is what it is for")] Box<dyn Send>);
    impl TransportFetchBody for Endless {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
            Poll::Pending
        }
    }
    struct Silent(Signal, Signal);
    impl TransportFetch for Silent {
        fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
            let message: Value =
                serde_json::from_slice(request.body.as_deref().unwrap_or_default()).unwrap_or_default();
            if message["method"] != "tools/call" {
                return LocalFetch(|_: &TransportFetchRequest, _: &Value| no_delay()).fetch(request);
            }
            let (begun, dropped) = (self.0.clone(), self.1.on_drop());
            Box::pin(async move {
                begun.set();
                Ok(respond(200, "text/event-stream", Endless(Box::new(dropped))))
            })
        }
    }
    let (begun, dropped) = (Signal::default(), Signal::default());
    let target = HttpTarget::new("http://near/mcp").fetch(Silent(begun.clone(), dropped.clone()));
    let client = connect_once(target, NegotiationMode::Stateless).await;
    let call = client.call_tool("any", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    soon(dropped.wait()).await;
}

/// Lets the first request in, and panics.
#[derive(Clone)]
struct Panics(Arc<AtomicUsize>);

impl Authorize for Panics {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Panics {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "no token");
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_panic_while_authorizing_ends_the_call() {
    let (url, _) = raw(|_, request| modern(request, || json_answer(request, &json!({"content": []})))).await;
    let target = HttpTarget::new(&url).authorize(Panics(Arc::default()));
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    let call = client.call_tool("any", json!({})).into_future();
    let ended = tokio::time::timeout(Duration::from_secs(2), call).await.expect("the call hangs");
    assert!(ended.is_err());
}
