//! What the simulator found, told once more in real time.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::Context as TaskContext;

use http_body::{Body, Frame};
use steadfast::{Limits, LoggingLevel};
use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn a_deadline_is_kept_although_the_client_does_not_read() {
    let dropped = Signal::default();
    let held = dropped.clone();
    let tool = Tool::new("stuck").handler(move |ctx: Context| {
        let held = held.clone();
        async move {
            let _held = held.on_drop();
            ctx.progress(0.5, "half way");
            std::future::pending::<()>().await;
        }
    });
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_millis(50));
    let service = HttpService::new(server([tool]), HttpOptions::new().with_limits(limits));
    let params = json!({"name": "stuck", "_meta": {"progressToken": "p"}});
    let unread = Sent::modern(1, "tools/call", params).to(&service).await;
    soon(dropped.wait()).await;
    let messages = Events::of(unread).all().await;
    assert_eq!((messages.len(), &messages[1]["id"]), (2, &json!(1)), "{messages:?}");
}

#[tokio::test]
async fn what_was_not_read_of_a_request_is_not_said_once_it_is_cancelled() {
    let tool = Tool::new("chatty").handler(|ctx: Context| async move {
        ctx.log(LoggingLevel::Error, "so far");
        std::future::pending::<()>().await;
    });
    let mut options = HttpOptions::new();
    options.resumable_after = Duration::from_secs(60);
    let service = HttpService::new(server([tool]), options);
    let session = open(&service, "2025-06-18").await;
    let unread = Sent::in_session(&session, &call(1, "chatty", json!({}))).to(&service).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(&Sent::in_session(&session, &cancelled).to(&service).await), 202);
    assert_eq!(Events::of(unread).all().await, Vec::<Value>::new());
}

/// A body that comes when it is sent.
struct Late(Option<oneshot::Receiver<Bytes>>);

impl Body for Late {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(coming) = &mut self.0 else { return Poll::Ready(None) };
        let bytes = std::task::ready!(Pin::new(coming).poll(cx));
        self.0 = None;
        Poll::Ready(bytes.ok().map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[tokio::test]
async fn no_session_opens_once_a_shutdown_has_begun() {
    let mut service = service([echo()]);
    let (send, body) = oneshot::channel();
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(Late(Some(body)))
        .unwrap();
    let mut response = service.call(request);
    let begun = std::future::poll_fn(|cx| Poll::Ready(response.as_mut().poll(cx))).await;
    assert!(begun.is_pending(), "its body is on the way");
    service.shut_down();
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    send.send(message.to_string().into()).unwrap();
    let response = soon(response).await.unwrap_or_else(|never| match never {});
    assert_eq!((status(&response), service.sessions()), (503, 0));
}

/// L7: the limit of the service holds for requests of the old transport too.
#[tokio::test]
async fn requests_of_the_old_transport_count_while_they_run() {
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 2;
    let running = Signal::default();
    let begun = running.clone();
    let tool = Tool::new("wait").handler(move || {
        begun.set();
        async { std::future::pending::<()>().await }
    });
    let options = HttpOptions::new().legacy_sse("/sse").with_limits(limits);
    let service = HttpService::new(server([tool]), options);
    let (mut taken, mut streams) = (0, Vec::new());
    for _ in 0..6 {
        let get = Sent::new("GET").at("/sse").without("accept").with("accept", "text/event-stream");
        let mut events = Events::of(get.to(&service).await);
        let endpoint = String::from_utf8(events.next().await.unwrap().data).unwrap();
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = Sent::post(&initialize).at(&endpoint).to(&service).await;
        if status(&response) == 202 {
            events.next().await.unwrap();
        }
        let response = Sent::post(&call(1, "wait", json!({}))).at(&endpoint).to(&service).await;
        if status(&response) == 202 {
            running.wait().await;
            taken += 1;
        }
        streams.push(events);
    }
    assert!(taken <= 2, "{taken} requests run at once, and 2 is the limit");
}
