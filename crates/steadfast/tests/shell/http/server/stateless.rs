//! 2026-07-28: every POST is independent of all others.

use steadfast::Limits;

use super::*;

#[tokio::test]
async fn a_response_without_other_messages_is_json() {
    let response = Sent::modern(7, "tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}));
    let response = response.to(&service([echo()])).await;
    assert_eq!((status(&response), header(&response, "content-type")), (200, "application/json"));
    assert_eq!(header(&response, "mcp-session-id"), "");
    let answer = body(response).await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(7), &json!("hi")));
}

#[tokio::test]
async fn messages_before_the_response_make_it_a_stream() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    let params = json!({"name": "gated", "_meta": {"progressToken": "p"}});
    let response = Sent::modern(1, "tools/call", params).to(&service).await;
    assert_eq!((header(&response, "cache-control"), header(&response, "x-accel-buffering")), ("no-cache", "no"));
    let mut events = Events::of(response);
    let progress = events.message().await.unwrap();
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p"))
    );
    gate.set();
    let rest = events.all().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!(1)));
}

#[tokio::test]
async fn hanging_up_before_the_response_cancels() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let service = service([forever(&begun, &dropped)]);
    let response = tokio::spawn(Sent::modern(1, "tools/call", json!({"name": "forever"})).begin(&service));
    soon(begun.wait()).await;
    response.abort();
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn hanging_up_in_the_middle_of_a_stream_cancels() {
    let dropped = Signal::default();
    let held = dropped.clone();
    let tool = ServerTool::new("gated").handler(move |ctx: Context| {
        let held = held.clone();
        async move {
            let _held = held.on_drop();
            ctx.progress(0.5, "half way");
            std::future::pending::<()>().await;
        }
    });
    let params = json!({"name": "gated", "_meta": {"progressToken": "p"}});
    let mut events = Events::of(Sent::modern(1, "tools/call", params).to(&service([tool])).await);
    events.message().await.unwrap();
    assert_eq!(dropped.count(), 0);
    drop(events);
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn a_slow_response_is_kept_alive_with_comments() {
    let gate = Signal::default();
    let mut options = HttpServerOptions::new();
    options = options.stream_after(Duration::from_millis(1));
    options = options.comment_interval(Duration::from_millis(1));
    let service = HttpService::new(server([gated(&gate)]), options);
    let mut response = Sent::modern(1, "tools/call", json!({"name": "gated"})).to(&service).await;
    let comment = soon(response.body_mut().frame()).await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&*comment, b":\n\n");
    gate.set();
    assert_eq!(Events::of(response).all().await[0]["id"], 1);
}

#[tokio::test]
async fn two_requests_with_one_id_are_both_served() {
    let service = service([echo()]);
    let sent = |text| Sent::modern(1, "tools/call", json!({"name": "echo", "arguments": {"text": text}}));
    let (one, two) = tokio::join!(sent("one").to(&service), sent("two").to(&service));
    assert_eq!(body(one).await["result"]["content"][0]["text"], "one");
    assert_eq!(body(two).await["result"]["content"][0]["text"], "two");
}

#[tokio::test]
async fn a_notification_is_accepted_and_has_no_effect() {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let response = Sent::post(&message).with("mcp-protocol-version", "2026-07-28").to(&service([])).await;
    assert_eq!((status(&response), body(response).await), (202, Value::Null));
}

#[tokio::test]
async fn a_shutdown_sends_an_error_for_a_handler_that_does_not_end() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.drain_window = Duration::from_millis(1);
    let server = Server::builder("test", "1").tool(forever(&begun, &dropped)).limits(limits).build();
    let service = HttpService::new(server, HttpServerOptions::new());
    let response = tokio::spawn(Sent::modern(1, "tools/call", json!({"name": "forever"})).begin(&service));
    soon(begun.wait()).await;
    service.shutdown();
    let answer = body(response.await.unwrap()).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    soon(dropped.wait()).await;
    assert_eq!(status(&Sent::modern(2, "tools/list", json!({})).to(&service).await), 503);
}

#[tokio::test]
async fn a_session_id_is_ignored() {
    let response = Sent::modern(1, "tools/list", json!({})).with("mcp-session-id", "x").to(&service([])).await;
    assert_eq!(status(&response), 200);
}

#[tokio::test]
async fn a_subscription_is_a_stream_that_ends_with_its_result() {
    let server = server([echo()]);
    let service = HttpService::new(server.clone(), HttpServerOptions::new());
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut events = Events::of(Sent::modern(7, "subscriptions/listen", params).to(&service).await);
    let first = events.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    server.remove_tool("echo");
    let second = events.message().await.unwrap();
    assert_eq!(second["method"], "notifications/tools/list_changed");
    assert_eq!(second["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    service.shutdown();
    let rest = events.all().await;
    assert_eq!((rest.len(), &rest[0]["id"], rest[0]["result"].is_object()), (1, &json!(7), true));
}

#[tokio::test]
async fn the_handler_deadline_holds_although_the_client_does_not_read() {
    let dropped = Signal::default();
    let held = dropped.clone();
    let tool = ServerTool::new("stuck").handler(move |ctx: Context| {
        let held = held.clone();
        async move {
            let _held = held.on_drop();
            ctx.progress(0.5, "half way");
            std::future::pending::<()>().await;
        }
    });
    let mut limits = Limits::default();
    limits.handler_deadline = Some(Duration::from_millis(50));
    let service = HttpService::new(server([tool]), HttpServerOptions::new().limits(limits));
    let params = json!({"name": "stuck", "_meta": {"progressToken": "p"}});
    let unread = Sent::modern(1, "tools/call", params).to(&service).await;
    soon(dropped.wait()).await;
    let messages = Events::of(unread).all().await;
    assert_eq!((messages.len(), &messages[1]["id"]), (2, &json!(1)), "{messages:?}");
}
