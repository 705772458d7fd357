//! Up to 2025-11-25: sessions, their streams, and clients that are cut off.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::Context as TaskContext;

use http_body::{Body, Frame};
use steadfast::LoggingLevel;
use tokio::sync::oneshot;

use super::*;

fn get(session: &str) -> Sent {
    Sent::new("GET").with("mcp-session-id", session)
}

fn delete(session: &str) -> Sent {
    Sent::new("DELETE").with("mcp-session-id", session)
}

fn ping(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

#[tokio::test]
async fn a_session_serves_every_older_revision() {
    let service = service([echo()]);
    for revision in cases() {
        let session = open(&service, revision).await;
        assert_eq!(session.len(), 32);
        let sent = Sent::in_session(&session, &call(1, "echo", json!({"text": "hi"})));
        let response = sent.with("mcp-protocol-version", revision).to(&service).await;
        assert_eq!(body(response).await["result"]["content"][0]["text"], "hi");
    }
    assert_eq!(service.sessions(), 3);
}

#[tokio::test]
async fn requests_without_a_valid_session_are_refused() {
    let service = service([]);
    let session = open(&service, "2025-11-25").await;
    assert_eq!(status(&Sent::post(&ping(1)).to(&service).await), 400, "no id");
    assert_eq!(status(&Sent::in_session("no-such", &ping(1)).to(&service).await), 404);
    let twice = Sent::in_session(&session, &ping(1)).with("mcp-session-id", &session);
    assert_eq!(status(&twice.to(&service).await), 400, "twice");
    let version = Sent::in_session(&session, &ping(1)).with("mcp-protocol-version", "1999-01-01");
    assert_eq!(status(&version.to(&service).await), 400, "no such revision");
    assert_eq!(status(&get("no-such").to(&service).await), 404);
    assert_eq!(status(&Sent::new("GET").to(&service).await), 400);
    assert_eq!(status(&delete("no-such").to(&service).await), 404);
}

#[tokio::test]
async fn a_failed_initialize_opens_no_session() {
    let service = service([]);
    let response = Sent::post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"})).to(&service).await;
    assert_eq!((status(&response), header(&response, "mcp-session-id"), service.sessions()), (400, "", 0));
}

#[tokio::test]
async fn deleting_a_session_stops_its_handlers_and_ends_its_streams() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let service = service([forever(&begun, &dropped)]);
    let session = open(&service, "2025-11-25").await;
    let running = Sent::in_session(&session, &call(1, "forever", json!({}))).begin(&service);
    let running = tokio::spawn(running);
    let listening = Events::of(get(&session).to(&service).await);
    soon(begun.wait()).await;
    assert!((200..300).contains(&status(&delete(&session).to(&service).await)));
    soon(dropped.wait()).await;
    assert!(listening.all().await.is_empty());
    running.await.unwrap();
    assert_eq!(status(&Sent::in_session(&session, &ping(2)).to(&service).await), 404);
    assert_eq!(service.sessions(), 0);
}

#[tokio::test]
async fn a_call_that_ran_when_its_session_was_deleted_gets_an_error_and_not_404() {
    for revision in cases() {
        let (begun, dropped) = (Signal::default(), Signal::default());
        let service = service([forever(&begun, &dropped)]);
        let session = open(&service, revision).await;
        let running = tokio::spawn(Sent::in_session(&session, &call(1, "forever", json!({}))).begin(&service));
        soon(begun.wait()).await;
        delete(&session).to(&service).await;
        let response = running.await.unwrap();
        // A busy machine may have opened its stream already.
        assert_eq!(status(&response), 200);
        let answer = if header(&response, "content-type") == "application/json" {
            body(response).await
        } else {
            Events::of(response).all().await.remove(0)
        };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)), "{revision}");
    }
}

#[tokio::test]
async fn deleting_a_session_sends_errors_on_the_streams_of_its_calls() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    for revision in cases() {
        let session = open(&service, revision).await;
        let mut message = call(1, "gated", json!({}));
        message["params"]["_meta"]["progressToken"] = json!("p");
        let mut events = Events::of(Sent::in_session(&session, &message).to(&service).await);
        assert_eq!(events.message().await.unwrap()["method"], "notifications/progress");
        delete(&session).to(&service).await;
        let rest = events.all().await;
        assert_eq!(rest.len(), 1);
        assert_eq!((&rest[0]["id"], &rest[0]["error"]["code"]), (&json!(1), &json!(-32603)));
    }
}

#[tokio::test]
async fn a_slow_call_gets_an_event_id_first_and_its_response_can_be_resumed_repeatedly() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    let session = open(&service, "2025-11-25").await;
    let mut events = Events::of(Sent::in_session(&session, &call(1, "gated", json!({}))).to(&service).await);
    let primed = events.next().await.unwrap();
    assert!(primed.data.is_empty() && events.decoder.retry().is_some());
    // The connection is cut; that is no cancellation.
    drop(events);
    gate.set();
    let id = primed.id.unwrap();
    for _ in 0..3 {
        let resumed = Events::of(get(&session).with("last-event-id", &id).to(&service).await);
        let messages = resumed.all().await;
        assert_eq!((messages.len(), &messages[0]["id"]), (1, &json!(1)));
    }
}

#[tokio::test]
async fn a_response_after_closing_the_stream_arrives_when_the_client_resumes() {
    let gate = Signal::default();
    let waiting = gate.clone();
    let tool = ServerTool::new("released").handler(move |ctx: Context| {
        let gate = waiting.clone();
        async move {
            ctx.release_connection();
            gate.wait().await;
            "at last"
        }
    });
    let service = service([tool]);
    let session = open(&service, "2025-11-25").await;
    let mut events = Events::of(Sent::in_session(&session, &call(1, "released", json!({}))).to(&service).await);
    let primed = events.next().await.unwrap();
    assert_eq!(events.next().await, None, "the connection is closed, the call goes on");
    let resumed = Events::of(get(&session).with("last-event-id", &primed.id.unwrap()).to(&service).await);
    gate.set();
    assert_eq!(resumed.all().await[0]["result"]["content"][0]["text"], "at last");
}

#[tokio::test]
async fn older_revisions_get_no_event_id_before_the_response() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    let session = open(&service, "2025-06-18").await;
    let mut events = Events::of(Sent::in_session(&session, &call(1, "gated", json!({}))).to(&service).await);
    gate.set();
    let first = events.next().await.unwrap();
    assert!(!first.data.is_empty() && first.id.is_some());
}

#[tokio::test]
async fn resuming_sends_only_later_events_of_the_same_stream() {
    let gate = Signal::default();
    let server = server([gated(&gate)]);
    let service = HttpService::new(server.clone(), HttpServerOptions::new());
    let session = open(&service, "2025-11-25").await;
    let mut params = call(1, "gated", json!({}));
    params["params"]["_meta"]["progressToken"] = json!("p");
    let mut one = Events::of(Sent::in_session(&session, &params).to(&service).await);
    let mut last = None;
    while last.is_none() {
        let event = one.next().await.unwrap();
        last = event.id.filter(|_| !event.data.is_empty());
    }
    drop(one);
    // A message of another stream, meanwhile.
    server.add_tool(echo());
    gate.set();
    let resumed = get(&session).with("last-event-id", &last.unwrap());
    let messages = Events::of(resumed.to(&service).await).all().await;
    assert_eq!((messages.len(), &messages[0]["id"]), (1, &json!(1)));
    let mut other = Events::of(get(&session).to(&service).await);
    assert_eq!(other.message().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn unknown_event_ids_are_refused() {
    let service = service([]);
    let session = open(&service, "2025-11-25").await;
    let other = open(&service, "2025-11-25").await;
    let mut events = Events::of(get(&other).to(&service).await);
    let foreign = events.next().await.unwrap().id.unwrap();
    for id in [&*foreign, "99-0", "0-99", "nonsense", ""] {
        assert_eq!(status(&get(&session).with("last-event-id", id).to(&service).await), 400, "{id}");
    }
}

#[tokio::test]
async fn an_event_id_of_another_session_is_unknown() {
    let service = service([]);
    let (session, other) = (open(&service, "2025-11-25").await, open(&service, "2025-11-25").await);
    let mut events = Events::of(get(&session).to(&service).await);
    let mut others = Events::of(get(&other).to(&service).await);
    let (own, foreign) = (events.next().await.unwrap().id.unwrap(), others.next().await.unwrap().id.unwrap());
    assert_eq!(status(&get(&session).with("last-event-id", &foreign).to(&service).await), 400);
    assert_eq!(status(&get(&session).with("last-event-id", &own).to(&service).await), 200);
}

#[tokio::test]
async fn the_request_limit_covers_all_sessions_and_a_cancellation_frees_a_slot() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 2;
    let service = HttpService::new(server([forever(&begun, &dropped)]), HttpServerOptions::new().limits(limits));
    let (one, two) = (open(&service, "2025-11-25").await, open(&service, "2025-11-25").await);
    for session in [&one, &two] {
        // Their clients do not wait for them, and they go on.
        let running = tokio::spawn(Sent::in_session(session, &call(1, "forever", json!({}))).begin(&service));
        soon(begun.wait()).await;
        running.abort();
        let _ = running.await;
    }
    assert_eq!(status(&Sent::in_session(&two, &ping(2)).to(&service).await), 503);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(&Sent::in_session(&one, &cancel).to(&service).await), 202);
    soon(dropped.wait()).await;
    assert_eq!(status(&Sent::in_session(&two, &ping(2)).to(&service).await), 200);
}

#[tokio::test]
async fn messages_of_no_request_are_sent_on_the_get_stream_once() {
    let server = server([]);
    let service = HttpService::new(server.clone(), HttpServerOptions::new());
    let session = open(&service, "2025-11-25").await;
    server.add_tool(echo());
    let mut first = Events::of(get(&session).to(&service).await);
    assert_eq!(first.message().await.unwrap()["method"], "notifications/tools/list_changed");
    // Another GET takes the stream over, and gets nothing twice.
    let mut second = Events::of(get(&session).to(&service).await);
    assert_eq!(first.message().await, None);
    second.next().await.unwrap();
    assert!(second.is_silent().await);
    server.remove_tool("echo");
    assert_eq!(second.message().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn an_input_request_is_on_the_stream_of_its_call() {
    let tool = ServerTool::new("ask").handler(|ctx: Context| async move {
        let pinged: Result<(), steadfast::Error> = ctx.ping().await;
        pinged.is_ok()
    });
    let service = service([tool]);
    for revision in cases() {
        let session = open(&service, revision).await;
        let mut events = Events::of(Sent::in_session(&session, &call(1, "ask", json!({}))).to(&service).await);
        let asked = events.message().await.unwrap();
        assert_eq!(asked["method"], "ping");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
        assert_eq!(status(&Sent::in_session(&session, &answer).to(&service).await), 202);
        let rest = events.all().await;
        assert_eq!((rest.len(), &rest[0]["result"]["content"][0]["text"]), (1, &json!("true")));
    }
}

#[tokio::test]
async fn a_cancellation_ends_the_stream_without_an_answer() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let service = service([forever(&begun, &dropped)]);
    let session = open(&service, "2025-11-25").await;
    let running = tokio::spawn(Sent::in_session(&session, &call(1, "forever", json!({}))).begin(&service));
    soon(begun.wait()).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(&Sent::in_session(&session, &cancel).to(&service).await), 202);
    soon(dropped.wait()).await;
    assert!(Events::of(running.await.unwrap()).all().await.is_empty());
}

#[tokio::test]
async fn hanging_up_does_not_cancel() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let service = service([forever(&begun, &dropped)]);
    let session = open(&service, "2025-06-18").await;
    let running = tokio::spawn(Sent::in_session(&session, &call(1, "forever", json!({}))).begin(&service));
    soon(begun.wait()).await;
    running.abort();
    let _ = running.await;
    assert_eq!(status(&Sent::in_session(&session, &ping(2)).to(&service).await), 200);
    assert_eq!(dropped.count(), 0);
    let again = Sent::in_session(&session, &call(1, "forever", json!({})));
    assert_eq!(status(&again.to(&service).await), 400, "its id is still taken");
}

#[tokio::test]
async fn an_id_in_flight_is_refused_in_the_response_of_its_own_post() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    let session = open(&service, "2025-11-25").await;
    let first = Sent::in_session(&session, &call(1, "gated", json!({}))).to(&service).await;
    let second = Sent::in_session(&session, &call(1, "gated", json!({}))).to(&service).await;
    assert_eq!(status(&second), 400);
    let refused = body(second).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)));
    gate.set();
    assert!(Events::of(first).all().await[0]["result"].is_object());
}

#[tokio::test]
async fn an_unread_stream_delays_no_other_request() {
    let tool = ServerTool::new("flood").handler(|ctx: Context| async move {
        for number in 0..10_000 {
            ctx.log(steadfast::LoggingLevel::Error, number);
            tokio::task::yield_now().await;
        }
        "done"
    });
    let service = service([tool]);
    let session = open(&service, "2025-11-25").await;
    let unread = Sent::in_session(&session, &call(1, "flood", json!({}))).to(&service).await;
    for id in 2..10 {
        assert_eq!(status(&Sent::in_session(&session, &ping(id)).to(&service).await), 200);
    }
    let messages = Events::of(unread).all().await;
    assert_eq!(messages.last().unwrap()["id"], 1, "the answer is there in the end");
}

#[tokio::test]
async fn a_batch_is_answered_with_an_array() {
    let service = service([echo()]);
    let session = open(&service, "2025-03-26").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let batch = json!([call(1, "echo", json!({"text": "a"})), note, ping(2), call(3, "echo", json!({"text": "b"}))]);
    let answers = body(Sent::in_session(&session, &batch).to(&service).await).await;
    let mut ids: Vec<i64> = answers.as_array().unwrap().iter().filter_map(|answer| answer["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(status(&Sent::in_session(&session, &json!([note])).to(&service).await), 202);
}

#[tokio::test]
async fn an_empty_batch_is_refused_in_its_own_response() {
    let service = service([]);
    for revision in cases() {
        let session = open(&service, revision).await;
        let response = Sent::in_session(&session, &json!([])).to(&service).await;
        assert_eq!(status(&response), 400, "{revision}");
        assert_eq!(body(response).await["error"]["code"], -32600);
    }
}

#[tokio::test]
async fn concurrent_large_responses_do_not_evict_each_other() {
    let tool = ServerTool::new("large").handler(|ctx: Context| async move {
        ctx.progress(0.5, "so that it is a stream");
        tokio::task::yield_now().await;
        "x".repeat(3 << 20)
    });
    let service = service([tool]);
    let session = open(&service, "2025-11-25").await;
    let mut streams = Vec::new();
    for id in 0..6 {
        let mut message = call(id, "large", json!({}));
        message["params"]["_meta"]["progressToken"] = json!(id);
        let sent = Sent::in_session(&session, &message).to(&service).await;
        streams.push(Events::of(sent));
    }
    for (id, mut events) in streams.into_iter().enumerate() {
        events.decoder = SseDecoder::new(8 << 20);
        assert_eq!(events.all().await.last().unwrap()["id"], id, "its answer is there");
    }
}

#[tokio::test]
async fn abandoned_sessions_are_removed_with_their_handlers() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let mut options = HttpServerOptions::new();
    // Longer than a busy machine takes between two requests of the same client.
    options = options.session_idle_timeout(Duration::from_secs(2));
    let service = HttpService::new(server([forever(&begun, &dropped)]), options);
    for _ in 0..100 {
        open(&service, "2025-11-25").await;
    }
    let session = open(&service, "2025-11-25").await;
    let running = tokio::spawn(Sent::in_session(&session, &call(1, "forever", json!({}))).begin(&service));
    soon(begun.wait()).await;
    running.abort();
    soon(dropped.wait()).await;
    soon(async {
        while service.sessions() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_open_stream_keeps_its_session_alive() {
    let gate = Signal::default();
    let mut options = HttpServerOptions::new();
    options = options.session_idle_timeout(Duration::from_millis(1));
    options = options.comment_interval(Duration::from_millis(5));
    let service = HttpService::new(server([gated(&gate)]), options);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    // Between two requests it may go at any time; with a stream that is being read it may not.
    let (session, mut events) = loop {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = Sent::post(&message).to(&service).await;
        let session = header(&response, "mcp-session-id").to_owned();
        let response = get(&session).to(&service).await;
        if status(&response) == 200 {
            break (session, Events::of(response));
        }
    };
    for _ in 0..10 {
        soon(events.body.frame()).await.unwrap().unwrap();
    }
    assert_eq!(status(&Sent::in_session(&session, &ping(1)).to(&service).await), 200);
}

#[tokio::test]
async fn past_the_session_limit_the_status_is_503() {
    let mut options = HttpServerOptions::new();
    options = options.max_sessions(1);
    let service = HttpService::new(server([]), options);
    let session = open(&service, "2025-11-25").await;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    assert_eq!(status(&Sent::post(&message).to(&service).await), 503);
    delete(&session).to(&service).await;
    open(&service, "2025-11-25").await;
}

#[tokio::test]
async fn a_session_is_unknown_to_another_principal() {
    let identify = |parts: &::http::request::Parts| {
        parts.headers.get("x-user").and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let service = HttpService::new(server([]), HttpServerOptions::new().identify(identify));
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = Sent::post(&message).with("x-user", "alice").to(&service).await;
    let session = header(&response, "mcp-session-id").to_owned();
    let sent = |user| Sent::in_session(&session, &ping(1)).with("x-user", user);
    assert_eq!(status(&sent("mallory").to(&service).await), 404);
    assert_eq!(status(&delete(&session).to(&service).await), 404);
    assert_eq!(status(&sent("alice").to(&service).await), 200);
}

#[tokio::test]
async fn a_shutdown_lets_handlers_answer_and_ends_every_stream() {
    let gate = Signal::default();
    let service = service([gated(&gate)]);
    let session = open(&service, "2025-11-25").await;
    let running = Sent::in_session(&session, &call(1, "gated", json!({}))).to(&service).await;
    let listening = Events::of(get(&session).to(&service).await);
    service.shutdown();
    gate.set();
    assert!(Events::of(running).all().await[0]["result"].is_object());
    assert!(listening.all().await.is_empty());
}

/// Limits with which a drain takes as long as it has to.
fn patient() -> HttpServerOptions {
    let mut limits = steadfast::Limits::default();
    (limits.drain_window, limits.drain_deadline) = (Duration::from_secs(600), Duration::from_secs(601));
    HttpServerOptions::new().limits(limits)
}

/// What a handler waits for in the drain window, it can only get if it is taken.
#[tokio::test]
async fn responses_and_cancellations_are_accepted_while_the_service_drains() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let asks = ServerTool::new("asks").handler(|ctx: Context| async move {
        let roots = ctx.roots().await?;
        Ok::<_, steadfast::Error>(format!("{} roots", roots.roots.len()))
    });
    let service = HttpService::new(server([asks, forever(&begun, &dropped)]), patient());
    let session = open(&service, "2025-11-25").await;
    let mut asking = Events::of(Sent::in_session(&session, &call(1, "asks", json!({}))).to(&service).await);
    let question = asking.message().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    let waiting = tokio::spawn(Sent::in_session(&session, &call(2, "forever", json!({}))).begin(&service));
    soon(begun.wait()).await;
    service.shutdown();
    assert_eq!(status(&Sent::in_session(&session, &call(3, "asks", json!({}))).to(&service).await), 503);
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(status(&Sent::in_session(&session, &cancelled).to(&service).await), 202);
    soon(dropped.wait()).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///one"}]}});
    assert_eq!(status(&Sent::in_session(&session, &answer).to(&service).await), 202);
    assert_eq!(asking.message().await.unwrap()["result"]["content"][0]["text"], "1 roots");
    drop(soon(waiting).await);
}

#[tokio::test]
async fn unread_messages_of_a_cancelled_request_are_dropped() {
    let tool = ServerTool::new("chatty").handler(|ctx: Context| async move {
        ctx.log(LoggingLevel::Error, "so far");
        std::future::pending::<()>().await;
    });
    let mut options = HttpServerOptions::new();
    options = options.resumable_after(Duration::from_secs(60));
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
    service.shutdown();
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    send.send(message.to_string().into()).unwrap();
    let response = soon(response).await.unwrap_or_else(|never| match never {});
    assert_eq!((status(&response), service.sessions()), (503, 0));
}

#[tokio::test]
async fn a_request_counts_until_its_shield_has_ended() {
    let (begun, release) = (Signal::default(), Signal::default());
    let mut limits = steadfast::Limits::default();
    limits.in_flight = 1;
    let options = HttpServerOptions::new().limits(limits);
    let service = HttpService::new(server([shielded(&begun, &release)]), options);
    let (one, two) = (open(&service, "2025-11-25").await, open(&service, "2025-11-25").await);
    let running = tokio::spawn(Sent::in_session(&one, &call(1, "shielded", json!({}))).begin(&service));
    soon(begun.wait()).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(status(&Sent::in_session(&one, &cancel).to(&service).await), 202);
    soon(running).await.unwrap();
    for id in 2..10 {
        assert_eq!(status(&Sent::in_session(&two, &ping(id)).to(&service).await), 503);
    }
    release.set();
    soon(async {
        while status(&Sent::in_session(&two, &ping(2)).to(&service).await) != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
