//! Requests of an HTTP client: their headers, bodies and retries.

use std::time::Instant;

use serde_json::Value;
use steadfast::transport::http::{Authorize, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture};
use steadfast::{ClientCapabilities, ErrorKind, JsonObject, Outcome, SubscriptionFilter, model::TASKS_EXTENSION};

use super::*;
use crate::client::{ERAS, discovered};
use crate::support::LogLines;

/// Waits until a request came that is looked for.
async fn until(requests: &Mutex<Vec<ReceivedRequest>>, wanted: impl Fn(&ReceivedRequest) -> bool) -> ReceivedRequest {
    soon(async {
        loop {
            if let Some(request) = requests.lock().unwrap().iter().find(|request| wanted(request)) {
                return request.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

fn done() -> Value {
    json!({"resultType": "complete", "content": []})
}

/// A server of the older revisions that pings its client, and answers its calls.
fn curious(request: &ReceivedRequest) -> Vec<u8> {
    older(request, || match &*request.method {
        "GET" => events("id: 1\nretry: 60000\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n"),
        "POST" if request.is("tools/call") => json_answer(request, &done()),
        "POST" => response("202 Accepted", &[], ""),
        _ => response("204 No Content", &[], ""),
    })
}

#[tokio::test]
async fn every_message_is_a_post_that_accepts_json_and_events() {
    let (url, requests) = raw(|_, request| curious(request)).await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("t", json!({})).into_future()).await.unwrap();
    until(&requests, |request| request.body["id"] == "p").await;
    soon(client.close()).await;
    let requests = requests.lock().unwrap();
    let posts: Vec<_> = requests.iter().filter(|request| request.method == "POST").collect();
    let said: Vec<&str> = posts.iter().map(|request| request.body["method"].as_str().unwrap_or("an answer")).collect();
    assert_eq!(said[..2], ["initialize", "notifications/initialized"]);
    assert!(said.contains(&"tools/call") && said.contains(&"an answer"), "{said:?}");
    for request in posts {
        assert!(request.body.is_object(), "{request:?}");
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(request.header("content-type"), Some("application/json"));
    }
    let get = requests.iter().find(|request| request.method == "GET").unwrap();
    assert_eq!(get.header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn session_and_revision_headers_are_on_every_request_after_the_first() {
    let (url, requests) = raw(|_, request| curious(request)).await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("t", json!({})).into_future()).await.unwrap();
    until(&requests, |request| request.body["id"] == "p").await;
    soon(client.close()).await;
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].header("mcp-session-id"), None);
    let methods: std::collections::BTreeSet<&str> = requests.iter().map(|request| &*request.method).collect();
    assert_eq!(methods.into_iter().collect::<Vec<_>>(), ["DELETE", "GET", "POST"]);
    for request in &requests[1..] {
        assert_eq!(request.header("mcp-session-id"), Some("s1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}");
    }
}

#[tokio::test]
async fn a_response_is_accepted_as_json_and_as_a_stream() {
    for era in ERAS {
        for stream in [false, true] {
            let (url, _) = raw(move |_, request| {
                let answer = || match (&*request.method, stream) {
                    ("GET", _) => response("405 No", &[], ""),
                    (_, false) => {
                        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": done()});
                        // Names of headers may be written in any case.
                        response("200 OK", &[("CONTENT-type", "application/json")], &answer.to_string())
                    }
                    (_, true) => {
                        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": done()});
                        events(&format!("data: {answer}\n\n"))
                    }
                };
                if era == NegotiationMode::Stateless { modern(request, answer) } else { older(request, answer) }
            })
            .await;
            let client = connect(&url, era).await;
            soon(client.call_tool("t", json!({})).into_future()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_reconnects_no_earlier_than_retry_after_says() {
    const RETRY: Duration = Duration::from_millis(700);
    let left = Arc::new(Mutex::new(None));
    let (leaving, came_back) = (Arc::clone(&left), Arc::new(Mutex::new(None)));
    let back = Arc::clone(&came_back);
    let (url, _) = raw(move |_, request| {
        older(request, || match (&*request.method, request.header("last-event-id")) {
            ("GET", Some("e1")) => {
                *back.lock().unwrap() = Some(Instant::now());
                let answer = json!({"jsonrpc": "2.0", "id": 2, "result": done()});
                events(&format!("data: {answer}\n\n"))
            }
            ("POST", _) => {
                *leaving.lock().unwrap() = Some(Instant::now());
                events(&format!("id: e1\nretry: {}\ndata:\n\n", RETRY.as_millis()))
            }
            _ => response("405 No", &[], ""),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(client.call_tool("t", json!({})).into_future()).await.unwrap();
    let (left, back) = (left.lock().unwrap().unwrap(), came_back.lock().unwrap().unwrap());
    assert!(back - left >= RETRY, "{:?}", back - left);
}

#[tokio::test]
async fn in_2026_only_requests_are_posted_and_no_cancellation() {
    let (url, requests) = raw(|_, request| {
        modern(request, || match request.body["params"]["name"].as_str() {
            // It sends a request that no server of this revision may send, and continues.
            Some("asks") => {
                let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
                let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": done()});
                events(&format!("data: {ping}\n\ndata: {answer}\n\n"))
            }
            _ => json_answer(request, &done()),
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    soon(client.call_tool("asks", json!({})).into_future()).await.unwrap();
    let call = client.call_tool("late", json!({})).start();
    drop(call);
    drop(client.changes(SubscriptionFilter::new().with_tools_list_changed(true)));
    soon(client.call_tool("last", json!({})).into_future()).await.unwrap();
    soon(client.close()).await;
    for request in requests.lock().unwrap().iter() {
        assert_eq!(request.method, "POST");
        assert!(request.body.get("id").is_some() && request.body["method"].is_string(), "{request:?}");
    }
}

/// A tool of which every kind of argument is mirrored.
fn mirrored() -> Value {
    let header = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
    let inner = json!({"type": "object", "properties": {"deep": header("string", "Deep")}});
    json!({"name": "m", "inputSchema": {"type": "object", "properties": {"text": header("string", "Text"),
        "count": header("integer", "Count"), "flag": header("boolean", "Flag"), "inner": inner, "plain": {"type": "string"}}}})
}

fn listing(request: &ReceivedRequest, tools: &Value) -> Vec<u8> {
    json_answer(request, &json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools}))
}

#[tokio::test]
async fn arguments_are_mirrored_exactly_where_there_is_a_value() {
    let (url, requests) = raw(|_, request| {
        modern(request, || {
            if request.is("tools/list") {
                listing(request, &json!([mirrored()]))
            } else {
                json_answer(request, &done())
            }
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    soon(client.list_tools()).await.unwrap();
    let rows = [
        (
            json!({"text": "Bonn", "count": -42, "flag": true, "plain": "p"}),
            [Some("Bonn"), Some("-42"), Some("true"), None],
        ),
        (json!({"text": null, "flag": false}), [None, None, Some("false"), None]),
        (json!({}), [None, None, None, None]),
        (json!({"text": "Köln", "inner": {"deep": "x"}}), [Some("=?base64?S8O2bG4=?="), None, None, Some("x")]),
        (json!({"text": " padded "}), [Some("=?base64?IHBhZGRlZCA=?="), None, None, None]),
        (json!({"text": "a\r\nb"}), [Some("=?base64?YQ0KYg==?="), None, None, None]),
        (json!({"text": "=?base64?eA==?="}), [Some("=?base64?PT9iYXNlNjQ/ZUE9PT89?="), None, None, None]),
    ];
    for (arguments, expected) in rows {
        soon(client.call_tool("m", &arguments).into_future()).await.unwrap();
        let requests = requests.lock().unwrap();
        let request = requests.last().unwrap();
        let sent = ["text", "count", "flag", "deep"].map(|name| request.header(&format!("mcp-param-{name}")));
        assert_eq!(sent, expected, "{arguments}");
        assert_eq!(request.header("mcp-param-plain"), None);
    }
}

#[tokio::test]
async fn tools_with_invalid_header_annotations_are_left_out_and_logged() {
    let heard = LogLines::default();
    let _guard = tracing::subscriber::set_default(heard.clone());
    let of = |name: &str, schema: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": {"a": schema}}});
    let twice = json!({"name": "twice", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "string", "x-mcp-header": "Same"}, "b": {"type": "string", "x-mcp-header": "same"}}}});
    let tools = json!([
        mirrored(),
        of("empty", json!({"type": "string", "x-mcp-header": ""})),
        of("token", json!({"type": "string", "x-mcp-header": "a b"})),
        of("control", json!({"type": "string", "x-mcp-header": "a\r\nb"})),
        of("number", json!({"type": "number", "x-mcp-header": "N"})),
        of("object", json!({"type": "object", "x-mcp-header": "O"})),
        of("items", json!({"type": "array", "items": {"type": "string", "x-mcp-header": "I"}})),
        of("composed", json!({"anyOf": [{"type": "string", "x-mcp-header": "C"}]})),
        twice,
        of("good", json!({"type": "string"})),
    ]);
    let (url, _) = raw(move |_, request| modern(request, || listing(request, &tools))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let listed = soon(client.list_tools()).await.unwrap();
    assert_eq!(listed.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["m", "good"]);
    let log = heard.text();
    for name in ["empty", "token", "control", "number", "object", "items", "composed", "twice"] {
        assert!(log.lines().any(|line| line.starts_with("WARN") && line.contains(name)), "{name}: {log}");
    }
}

#[tokio::test]
async fn a_tool_with_invalid_header_annotations_is_not_called_and_the_error_says_why() {
    let tool = json!({"name": "bad", "inputSchema": {"type": "object",
        "properties": {"a": {"type": "number", "x-mcp-header": "Rate"}}}});
    let (url, requests) = raw(move |_, request| modern(request, || listing(request, &json!([tool])))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    soon(client.list_tools()).await.unwrap();
    let error = soon(client.call_tool("bad", json!({"a": 1})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsupported, Outcome::NotSent));
    assert!(error.to_string().contains("`bad`") && error.to_string().contains("x-mcp-header Rate"), "{error}");
    assert!(!requests.lock().unwrap().iter().any(|request| request.is("tools/call")));
}

#[tokio::test]
async fn header_annotations_are_ignored_in_older_revisions() {
    let tool = json!({"name": "bad", "inputSchema": {"type": "object",
        "properties": {"a": {"type": "number", "x-mcp-header": "Rate"}}}});
    let (url, _) = raw(move |_, request| {
        older(request, || match request.body["method"].as_str() {
            Some("tools/list") => json_answer(request, &json!({"tools": [tool]})),
            Some("tools/call") => json_answer(request, &json!({"content": []})),
            _ => response("202 Accepted", &[], ""),
        })
    })
    .await;
    let client = connect(&url, NegotiationMode::Handshake(Revision::V2025_11_25)).await;
    let listed = soon(client.list_tools()).await.unwrap();
    assert_eq!(listed.len(), 1);
    soon(client.call_tool("bad", json!({"a": 1})).into_future()).await.unwrap();
}

#[tokio::test]
async fn the_name_header_has_the_tool_resource_prompt_or_task() {
    let (url, requests) = raw(|_, request| {
        if request.is("server/discover") {
            return json_answer(request, &discovered());
        }
        let (kind, status) = if request.is("tools/call") { ("task", "working") } else { ("complete", "completed") };
        let task = json!({"resultType": kind, "taskId": "task-1", "status": status, "pollIntervalMs": 1,
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null,
            "result": done(), "contents": [], "messages": []});
        json_answer(request, &task)
    })
    .await;
    let declared = ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new());
    let connecting = Client::connect(&*url).negotiation(NegotiationMode::Stateless).capabilities(declared);
    let client = soon(connecting.into_future()).await.unwrap();
    soon(client.call_tool("tool-1", json!({})).into_future()).await.unwrap();
    soon(client.read_resource("a:1").into_future()).await.unwrap();
    soon(client.get_prompt("prompt-1", json!({ "a": "b" })).into_future()).await.unwrap();
    let requests = requests.lock().unwrap();
    let names: Vec<_> = requests
        .iter()
        .map(|request| (request.header("mcp-method").unwrap_or_default(), request.header("mcp-name")))
        .collect();
    let expected = [
        ("server/discover", None),
        ("tools/call", Some("tool-1")),
        ("tasks/get", Some("task-1")),
        ("resources/read", Some("a:1")),
        ("prompts/get", Some("prompt-1")),
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn the_body_of_a_400_is_read_before_falling_back() {
    for code in [-32020, -32021, -32022] {
        let (url, requests) = raw(move |_, request| {
            let error = json!({"code": code, "message": "no", "data": {"supported": ["2099-01-01"]}});
            let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error}).to_string();
            response("400 Bad Request", &[("content-type", "application/json")], &body)
        })
        .await;
        let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
        assert_eq!(error.refusal().map(|refusal| refusal.code), Some(code));
        assert!(requests.lock().unwrap().iter().all(|request| request.is("server/discover")), "{code}");
    }
}

/// The same token for every request.
#[derive(Clone)]
struct Token;

impl Authorize for Token {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Token {
    fn sign<'a>(&'a mut self, headers: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        headers.insert(::http::header::AUTHORIZATION, ::http::HeaderValue::from_static("Bearer t"));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn the_token_is_in_a_header_of_every_request_and_never_in_the_url() {
    let (url, requests) = raw(|_, request| curious(request)).await;
    let connecting = Client::connect(HttpTarget::new(&url).authorize(Token)).negotiation(OLDER);
    let client = soon(connecting.into_future()).await.unwrap();
    soon(client.call_tool("t", json!({})).into_future()).await.unwrap();
    until(&requests, |request| request.body["id"] == "p").await;
    soon(client.close()).await;
    let requests = requests.lock().unwrap();
    for method in ["POST", "GET", "DELETE"] {
        assert!(requests.iter().any(|request| request.method == method), "{method}");
    }
    for request in requests.iter() {
        assert_eq!(request.header("authorization"), Some("Bearer t"), "{request:?}");
        assert!(!request.head.lines().next().unwrap_or_default().contains('?'), "{request:?}");
    }
}
