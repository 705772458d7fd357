//! Which calls are retried after a lost connection, and the outcome of those that are not.

use steadfast::client::CallOutcome;
use steadfast::{ClientCapabilities, ElicitResult, Error, ErrorKind, Outcome};

use super::*;

#[tokio::test]
async fn a_call_that_was_not_sent_is_sent_on_the_next_connection() {
    let server = FakeServer::willing();
    let client = server.connect().await;
    server.cut();
    soon(client.closed()).await;
    soon(client.call_tool("pay", json!({})).into_future()).await.unwrap();
    assert_eq!(server.asked("tools/call"), [1]);
}

#[tokio::test]
async fn a_call_that_was_sent_and_lost_is_not_retried() {
    let server = losing("tools/call");
    let client = server.connect().await;
    let error = soon(client.call_tool("pay", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    // The client is as good as before.
    soon(client.list_tools()).await.unwrap();
    assert_eq!(server.asked("tools/call"), [0]);
}

#[tokio::test]
async fn an_idempotent_call_is_retried() {
    let server = losing("tools/call");
    let client = server.connect().await;
    soon(client.call_tool("set", json!({})).idempotent().into_future()).await.unwrap();
    assert_eq!(server.asked("tools/call"), [0, 1]);
}

#[tokio::test]
async fn read_only_requests_are_retried() {
    let server = losing("tools/list");
    let client = server.connect().await;
    soon(client.list_tools()).await.unwrap();
    assert_eq!(server.asked("tools/list"), [0, 1]);
}

#[tokio::test]
async fn a_call_that_is_lost_every_time_is_not_retried_for_ever() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("tools/call") => Reply::HangUp,
        _ => Reply::Result(done(request)),
    });
    let policy = ReconnectPolicy::default().attempts(3).first_pause(Duration::from_millis(1));
    let client = soon(server.connecting().reconnect(policy).into_future()).await.unwrap();
    let call = client.call_tool("set", json!({})).idempotent().total_timeout(Duration::from_secs(4));
    let error = soon(call.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
    // Three lives that were short: the next is ten seconds away.
    assert_eq!(server.asked("tools/call"), [0, 1, 2]);
}

/// Two tools, one of which is annotated as read-only, and the first call is lost.
fn annotated() -> Arc<FakeServer> {
    FakeServer::new(|number, request| match (number, request["method"].as_str()) {
        (0, Some("tools/call")) => Reply::HangUp,
        (_, Some("tools/list")) => Reply::Result(json!({"resultType": "complete", "tools": [
            {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "pay", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}},
        ]})),
        _ => Reply::Result(done(request)),
    })
}

#[tokio::test]
async fn tool_annotations_are_used_only_if_the_server_is_trusted() {
    for (trusting, tool, again) in [(true, "look", true), (true, "pay", false), (false, "look", false)] {
        let server = annotated();
        let connecting = if trusting { server.connecting().trust_annotations() } else { server.connecting() };
        let client = soon(connecting.into_future()).await.unwrap();
        soon(client.list_tools()).await.unwrap();
        let called = soon(client.call_tool(tool, json!({})).into_future()).await;
        assert_eq!(called.is_ok(), again, "{tool}, trusting: {trusting}");
        assert_eq!(server.asked("tools/call").len(), if again { 2 } else { 1 });
    }
}

#[tokio::test]
async fn outcome_is_reported_and_an_unknown_call_can_be_retried() {
    let server = losing("tools/call");
    let client = server.connect().await;
    let CallOutcome::Unknown(unknown) = soon(client.call_tool("pay", json!({"n": 5})).outcome()).await else {
        panic!("nobody can know")
    };
    assert_eq!(unknown.error().outcome(), Outcome::Unknown);
    assert_eq!(server.asked("tools/call"), [0]);
    assert!(matches!(soon(unknown.call_again().outcome()).await, CallOutcome::Completed(_)));
    assert_eq!(server.asked("tools/call"), [0, 1]);
    let heard = server.received.lock().unwrap();
    let sums: Vec<_> = heard.iter().filter_map(|(_, request)| request["params"]["arguments"]["n"].as_i64()).collect();
    assert_eq!(sums, [5, 5]);
}

#[tokio::test]
async fn outcome_reports_refused_and_not_sent() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("tools/call") => Reply::Error(-32602),
        _ => Reply::Result(done(request)),
    });
    let client = soon(server.connecting().reconnect(ReconnectPolicy::never()).into_future()).await.unwrap();
    assert!(matches!(soon(client.call_tool("pay", json!({})).outcome()).await, CallOutcome::Refused(_)));
    server.cut();
    soon(client.closed()).await;
    assert!(matches!(soon(client.call_tool("pay", json!({})).outcome()).await, CallOutcome::NotSent(_)));
    assert!(matches!(soon(client.call_tool("pay", "no object").outcome()).await, CallOutcome::NotSent(_)));
}

#[tokio::test]
async fn a_call_that_waits_for_its_response_can_be_cancelled_through_its_handle() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("tools/call") => Reply::Silence,
        _ => Reply::Result(done(request)),
    });
    let client = server.connect().await;
    let call = client.call_tool("slow", json!({})).start();
    let canceller = call.canceller();
    server.until(|server| !server.asked("tools/call").is_empty()).await;
    canceller.cancel();
    // The server gets a cancellation, whether the call is polled or not.
    server.until(|server| !server.asked("notifications/cancelled").is_empty()).await;
    let error = soon(call).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Unknown));
}

#[tokio::test]
async fn a_call_that_waits_for_a_connection_is_cancelled_at_once() {
    let server = FakeServer::willing();
    let client = server.connect().await;
    server.set(OnConnect::Hang);
    server.cut();
    soon(client.closed()).await;
    let call = client.call_tool("pay", json!({})).start();
    let canceller = call.canceller();
    let ended = tokio::spawn(call.outcome());
    server.until(|server| server.connections() == 2).await;
    canceller.cancel();
    let CallOutcome::Cancelled(error) = soon(ended).await.unwrap() else { panic!("it was cancelled") };
    assert_eq!(error.outcome(), Outcome::NotSent);
}

#[tokio::test]
async fn a_call_between_two_rounds_is_cancelled_at_once() {
    let server = FakeServer::new(|_, request| match request["method"].as_str() {
        Some("tools/call") => Reply::Result(json!({"resultType": "input_required",
            "inputRequests": {"q": {"method": "elicitation/create", "params": {
                "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}})),
        _ => Reply::Result(done(request)),
    });
    let asked = Signal::default();
    let heard = asked.clone();
    let connecting = server.connecting().capabilities(ClientCapabilities::new().with_elicitation_form());
    let connecting = connecting.on_elicit(move |_, _| {
        heard.set();
        std::future::pending::<Result<ElicitResult, Error>>()
    });
    let client = soon(connecting.into_future()).await.unwrap();
    let call = client.call_tool("ask", json!({})).start();
    let canceller = call.canceller();
    let ended = tokio::spawn(call);
    soon(asked.wait()).await;
    canceller.cancel();
    let error = soon(ended).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Unknown));
}

fn a_task(request: &Value) -> Reply {
    let shown = json!({"taskId": "t", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1});
    let of = |kind: &str| {
        let mut shown = shown.clone();
        shown["resultType"] = kind.into();
        Reply::Result(shown)
    };
    match request["method"].as_str() {
        Some("tools/call") => of("task"),
        Some("tasks/get") => of("complete"),
        _ => Reply::Result(done(request)),
    }
}

#[tokio::test]
async fn a_call_that_is_a_task_is_cancelled_with_it() {
    let server = FakeServer::new(|_, request| a_task(request));
    let client = soon(server.connecting().tasks().into_future()).await.unwrap();
    let call = client.call_tool("long", json!({})).start();
    let canceller = call.canceller();
    let ended = tokio::spawn(call);
    server.until(|server| !server.asked("tasks/get").is_empty()).await;
    canceller.cancel();
    let error = soon(ended).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Unknown));
    server.until(|server| !server.asked("tasks/cancel").is_empty()).await;
}

#[tokio::test]
async fn a_task_is_polled_again_after_reconnecting() {
    let server = FakeServer::new(|number, request| match (number, request["method"].as_str()) {
        (0, Some("tasks/get")) => Reply::HangUp,
        (1, Some("tasks/get")) => Reply::Result(json!({"resultType": "complete", "taskId": "t", "status": "completed",
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null,
            "result": {"content": []}})),
        _ => a_task(request),
    });
    let client = soon(server.connecting().tasks().into_future()).await.unwrap();
    soon(client.call_tool("long", json!({})).into_future()).await.unwrap();
    assert_eq!((server.asked("tools/call"), server.asked("tasks/get")), (vec![0], vec![0, 1]));
}

#[tokio::test]
async fn an_unread_task_is_cancelled_with_its_call_after_reconnecting() {
    let server = FakeServer::new(|_, request| a_task(request));
    let client = soon(server.connecting().tasks().into_future()).await.unwrap();
    let call = client.call_tool("long", json!({})).start();
    // A later response shows that this one has arrived.
    soon(client.list_tools()).await.unwrap();
    drop(call);
    server.until(|server| !server.asked("tasks/cancel").is_empty()).await;
}
