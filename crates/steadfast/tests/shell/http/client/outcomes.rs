//! The outcome that a caller learns, for each way in which a response can be missing or wrong.

use std::time::Instant;

use serde_json::{Value, json};
use steadfast::Outcome;
use steadfast::client::NegotiationMode;

use super::request_rate::slow;
use super::*;

fn refusal() -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}})
}

/// L2, L10: a response that has ended without the answer is the end of the call.
#[tokio::test]
async fn a_json_body_without_the_response_ends_the_call() {
    let rows = [
        (refusal().to_string(), Outcome::Refused),
        (json!({"jsonrpc": "2.0", "id": 4711, "result": {}}).to_string(), Outcome::Unknown),
        (json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).to_string(), Outcome::Unknown),
        ("{}".to_owned(), Outcome::Unknown),
        ("<html>sign in first</html>".to_owned(), Outcome::Unknown),
        ("[]".to_owned(), Outcome::Unknown),
    ];
    let mut wrong = Vec::new();
    for (body, outcome) in rows {
        let sent = body.clone();
        let (url, _) = raw(move |_, request| {
            modern(request, || response("200 OK", &[("content-type", "application/json")], &sent))
        })
        .await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let call = client.call_tool("any", json!({})).into_future();
        match tokio::time::timeout(Duration::from_secs(2), call).await {
            Err(_) => wrong.push(format!("{body}: the call hangs")),
            Ok(Ok(_)) => wrong.push(format!("{body}: a result")),
            Ok(Err(error)) if error.outcome() != outcome => wrong.push(format!("{body}: {error:?}")),
            Ok(Err(_)) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// wire.md: an error without an id is the outcome of the POST that it answers, on a stream too.
#[tokio::test]
async fn an_error_without_an_id_on_a_stream_is_the_outcome_of_its_post() {
    let (url, _) = raw(|_, request| modern(request, || events(&format!("data: {}\n\n", refusal())))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.code), Some(-32600), "{error:?}");
}

/// L10: 303 means that it was done, and where to look; 302 is used for the same. Only 307 and 308 ask for a repeated request.
#[tokio::test]
async fn a_303_redirect_is_not_reported_as_not_sent() {
    for status in ["301 Moved", "302 Found", "303 See Other"] {
        let (url, requests) =
            raw(move |_, request| modern(request, || response(status, &[("location", "/done")], ""))).await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert!(requests.lock().unwrap().iter().any(|request| request.is("tools/call")));
        assert_ne!(error.outcome(), Outcome::NotSent, "{status}: {error:?}");
    }
}

/// L10: the first round was sent, and its handler ran up to its question.
#[tokio::test]
async fn a_call_whose_second_round_does_not_arrive_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(request) = read(&mut stream).await else { continue };
            if request.is("tools/call") {
                // It asks back, and is gone.
                drop(listener);
                let asks = json!({"resultType": "input_required", "requestState": "s"});
                let _ = stream.write_all(&json_answer(&request, &asks)).await;
                return;
            }
            let _ = stream.write_all(&modern(&request, Vec::new)).await;
        }
    });
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_ne!(error.outcome(), Outcome::NotSent, "{error:?}");
}

/// wire.md: 401 and 403 do not fall back to `initialize`.
#[tokio::test]
async fn an_unauthorized_probe_is_not_followed_by_a_handshake() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (url, requests) = raw(move |_, _| response(status, &[], "")).await;
        let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Refused);
        let methods: Vec<_> = requests.lock().unwrap().iter().map(|request| request.body["method"].clone()).collect();
        assert_eq!(methods, ["server/discover"], "{status}");
    }
}

/// wire.md: a client that gets -32020 refreshes `tools/list` and tries once more.
#[tokio::test]
async fn a_header_mismatch_refreshes_the_tool_list_and_retries_once() {
    let (url, requests) = raw(|_, request| {
        modern(request, || {
            if request.is("tools/list") {
                return json_answer(
                    request,
                    &json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "tools": [{"name": "any", "inputSchema": {"type": "object",
                        "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}}]}),
                );
            }
            if request.header("mcp-param-city").is_none() {
                let body = json!({"jsonrpc": "2.0", "id": request.body["id"],
                    "error": {"code": -32020, "message": "Mcp-Param-City is missing"}});
                return response("400 Bad Request", &[("content-type", "application/json")], &body.to_string());
            }
            json_answer(request, &json!({"resultType": "complete", "content": []}))
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let called = soon(client.call_tool("any", json!({"city": "Bonn"})).into_future()).await;
    let methods: Vec<_> = requests.lock().unwrap().iter().map(|request| request.body["method"].clone()).collect();
    assert!(called.is_ok(), "{called:?} {methods:?}");
}

/// L10, L4: a call that times out behind a handshake that hangs is never sent, and neither is its cancellation.
#[tokio::test]
async fn a_call_that_times_out_before_it_is_sent_is_never_sent() {
    let (url, requests, _) = slow(|request| {
        let wait = if request.is("notifications/initialized") { Duration::from_secs(1) } else { Duration::ZERO };
        (wait, older(request, || response("405 No", &[], "")))
    })
    .await;
    let client = connect(&url, OLDER).await;
    let began = Instant::now();
    let call = client.call_tool("any", json!({})).timeout(Duration::from_millis(200));
    let error = soon(call.into_future()).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(900));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let methods: Vec<_> = requests.lock().unwrap().iter().map(|request| request.body["method"].clone()).collect();
    assert!(!methods.contains(&json!("tools/call")), "{methods:?}");
    assert!(!methods.contains(&json!("notifications/cancelled")), "{methods:?}");
    assert_eq!(error.outcome(), Outcome::NotSent);
}
