//! Authorization that is slow or never ends, and calls that are dropped meanwhile.

use std::sync::Mutex;

use serde_json::json;
use steadfast::client::ReconnectPolicy;
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture,
};
use steadfast::{ErrorKind, Outcome};

use crate::http::client::{OLDER, ReceivedRequest, older, raw, response};
use crate::*;

async fn until(requests: &Mutex<Vec<ReceivedRequest>>, it_is_so: impl Fn(&[ReceivedRequest]) -> bool) {
    soon(async {
        while !it_is_so(&requests.lock().unwrap()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn count(requests: &[ReceivedRequest], method: &str) -> usize {
    requests.iter().filter(|request| request.is(method)).count()
}

/// The step of the authorization that never ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stuck {
    Sign,
    Answered,
}

/// Never lets a second request in.
#[derive(Clone)]
struct Never {
    place: Stuck,
    attempts: Arc<AtomicUsize>,
    stuck: Signal,
    dropped: Signal,
}

impl Never {
    fn new(place: Stuck) -> Self {
        Self { place, attempts: Arc::default(), stuck: Signal::default(), dropped: Signal::default() }
    }

    async fn stay(&self) {
        let _dropped = self.dropped.on_drop();
        self.stuck.set();
        std::future::pending::<()>().await;
    }
}

struct One {
    number: usize,
    never: Never,
}

impl Authorize for Never {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(One { number: self.attempts.fetch_add(1, Ordering::SeqCst), never: self.clone() })
    }
}

/// The handshake takes so many: `initialize`, `notifications/initialized` and the stream.
const PASS: usize = 3;

impl RequestAuthorization for One {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async {
            if self.never.place == Stuck::Sign && self.number >= PASS {
                self.never.stay().await;
            }
            Ok(())
        })
    }

    fn answered<'a>(
        &'a mut self,
        status: ::http::StatusCode,
        _: &'a ::http::HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async move {
            if self.never.place == Stuck::Answered && status == 401 {
                self.never.stay().await;
            }
            Ok(false)
        })
    }
}

async fn never(place: Stuck) -> (Client, Never, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let (url, requests) = raw(|_, request| match request.method.as_str() {
        "GET" => response("405 Method Not Allowed", &[], ""),
        _ => older(request, || response("401 Unauthorized", &[], "")),
    })
    .await;
    let never = Never::new(place);
    let target = HttpTarget::new(url).authorize(never.clone());
    let connecting = Client::connect(target).negotiation(OLDER).reconnect(ReconnectPolicy::never());
    let client = soon(connecting.into_future()).await.unwrap();
    until(&requests, |all| all.len() == PASS).await;
    (client, never, requests)
}

/// L3, L5: the authorization is dropped with its call, and no cancellation is sent for an unauthorized request.
#[tokio::test]
async fn a_call_that_is_never_authorized_ends_by_timeout_drop_and_close() {
    let mut cases = Vec::new();
    for place in [Stuck::Sign, Stuck::Answered] {
        for how in ["cancel", "drop", "timeout", "total", "close"] {
            // All at once: each close waits two seconds for its DELETE, which is not authorized either.
            cases.push(tokio::spawn(a_call_is_ended(place, how)));
        }
    }
    for case in cases {
        soon(case).await.unwrap();
    }
}

async fn a_call_is_ended(place: Stuck, how: &'static str) {
    let (client, never, requests) = never(place).await;
    let brief = Duration::from_millis(300);
    let call = client.call_tool("any", json!({}));
    let call = match how {
        "timeout" => call.timeout(brief),
        "total" => call.total_timeout(brief),
        _ => call,
    };
    let call = call.start();
    let canceller = call.canceller();
    let ended = tokio::spawn(call);
    soon(never.stuck.wait()).await;
    match how {
        "cancel" => canceller.cancel(),
        "drop" => ended.abort(),
        "close" => soon(client.clone().close()).await,
        _ => {}
    }
    if let Ok(ended) = soon(ended).await {
        let error = ended.unwrap_err();
        let kinds = [ErrorKind::Cancelled, ErrorKind::TimedOut, ErrorKind::Closed];
        assert!(kinds.contains(&error.kind()), "{place:?} {how}: {error:?}");
    }
    soon(never.dropped.wait()).await;
    soon(client.close()).await;
    assert_eq!(count(&requests.lock().unwrap(), "notifications/cancelled"), 0, "{place:?} {how}");
}

/// L5: an authorization in progress is dropped with its runtime, and close ends.
#[test]
fn a_call_ends_when_its_runtime_is_dropped_during_authorization() {
    for place in [Stuck::Sign, Stuck::Answered] {
        let (first, second) = (
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        );
        let (client, call) = first.block_on(async {
            let (client, never, _) = never(place).await;
            let call = client.call_tool("any", json!({})).start();
            soon(never.stuck.wait()).await;
            (client, call)
        });
        drop(first);
        second.block_on(async {
            let error = soon(call).await.unwrap_err();
            assert!(matches!(error.outcome(), Outcome::NotSent | Outcome::Unknown), "{error:?}");
            soon(client.close()).await;
        });
    }
}
