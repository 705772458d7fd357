//! HTTP clients, which reconnect by default.

use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture,
};
use steadfast::{ErrorKind, Outcome};

use super::*;
use crate::http::client::{OLDER, ReceivedRequest, connect, json_answer, modern, older, raw, response};

fn count(requests: &Mutex<Vec<ReceivedRequest>>, method: &str) -> usize {
    requests.lock().unwrap().iter().filter(|request| request.is(method)).count()
}

#[tokio::test]
async fn a_lost_session_is_reopened_and_the_call_sent_in_it() {
    let lost = AtomicUsize::new(0);
    let (url, requests) = raw(move |_, request| {
        older(request, || {
            if !request.is("tools/call") {
                response("405 No", &[], "")
            } else if lost.fetch_add(1, Ordering::SeqCst) == 0 {
                response("404 Not Found", &[], "")
            } else {
                json_answer(request, &json!({"content": []}))
            }
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("pay", json!({})).into_future()).await.unwrap();
    assert_eq!((count(&requests, "initialize"), count(&requests, "tools/call")), (2, 2));
}

#[tokio::test]
async fn a_session_that_is_lost_repeatedly_is_reopened_once() {
    let (url, requests) = raw(|_, request| {
        let status = if request.is("tools/call") { "404 Not Found" } else { "405 No" };
        older(request, || response(status, &[], ""))
    })
    .await;
    let client = connect(&url, OLDER).await;
    let error = soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent));
    assert_eq!((count(&requests, "initialize"), count(&requests, "tools/call")), (2, 2));
}

#[tokio::test]
async fn a_lost_response_is_requested_again_if_the_call_is_idempotent() {
    let lost = AtomicUsize::new(0);
    let (url, requests) = raw(move |_, request| {
        modern(request, || {
            if request.is("tools/list") && lost.fetch_add(1, Ordering::SeqCst) > 0 {
                return json_answer(request, &json!({"resultType": "complete", "tools": []}));
            }
            // The connection ends.
            Vec::new()
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    soon(client.list_tools()).await.unwrap();
    assert_eq!(count(&requests, "tools/list"), 2);
    let error = soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown));
    assert_eq!(count(&requests, "tools/call"), 1);
}

#[tokio::test]
async fn a_call_that_refreshes_the_tool_list_is_cancelled_at_once() {
    let (url, requests) = raw(|_, request| {
        modern(request, || {
            if !request.is("tools/call") {
                // The list is lost again and again.
                return Vec::new();
            }
            let error = json!({"code": steadfast::model::code::HEADER_MISMATCH, "message": "no"});
            let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error});
            response("400 Bad Request", &[("content-type", "application/json")], &body.to_string())
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let call = client.call_tool("pay", json!({})).start();
    let canceller = call.canceller();
    let ended = tokio::spawn(call);
    soon(async {
        while count(&requests, "tools/list") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    canceller.cancel();
    let error = soon(ended).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Refused));
    assert_eq!(count(&requests, "tools/call"), 1);
}

/// Authorizes the first request, and no other.
#[derive(Clone, Default)]
struct Once(Arc<AtomicUsize>);

impl Authorize for Once {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Once {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { if asked == 0 { Ok(()) } else { Err("the user has left".into()) } })
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_authorized_is_not_sent_and_not_retried() {
    let (url, requests) = raw(|_, request| modern(request, Vec::new)).await;
    let once = Once::default();
    let target = HttpTarget::new(&url).authorize(once.clone());
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    let error = soon(client.list_tools()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsendable, Outcome::NotSent));
    assert_eq!((once.0.load(Ordering::SeqCst), requests.lock().unwrap().len()), (2, 1));
}
