//! Servers that misbehave.

use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture,
};
use steadfast::{ErrorKind, Outcome, Revision};

use super::*;

fn nothing() -> Value {
    json!({"content": []})
}

#[tokio::test]
async fn each_http_failure_has_its_outcome() {
    let rows: [(&str, Outcome); 7] = [
        ("500 Internal Server Error", Outcome::Unknown),
        ("502 Bad Gateway", Outcome::Unknown),
        ("400 Bad Request", Outcome::Refused),
        ("401 Unauthorized", Outcome::Refused),
        ("429 Too Many Requests", Outcome::Refused),
        ("200 OK", Outcome::Unknown),
        ("202 Accepted", Outcome::Unknown),
    ];
    for (status, outcome) in rows {
        let (url, _) = raw(move |_, request| modern(request, || response(status, &[], ""))).await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), outcome, "{status} {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_leaves_the_outcome_unknown() {
    for cut in
        ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"jso"]
    {
        let (url, _) = raw(move |_, request| modern(request, || cut.as_bytes().to_vec())).await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown), "{cut}");
    }
}

#[tokio::test]
async fn a_json_rpc_error_is_the_response_with_any_status_and_id() {
    for id in [json!(null), json!(2)] {
        let (url, _) = raw(move |_, request| {
            let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32020, "message": "no such header"}});
            modern(request, || response("400 Bad Request", &[("content-type", "application/json")], &body.to_string()))
        })
        .await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.refusal().map(|refusal| refusal.code), Some(-32020), "{error:?}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let (elsewhere, visits) = raw(|_, request| json_answer(request, &nothing())).await;
    let (url, _) =
        raw(move |_, request| modern(request, || response("307 Temporary Redirect", &[("location", &elsewhere)], "")))
            .await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsendable, Outcome::NotSent), "{error:?}");
    assert!(visits.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_refuses_the_probe_gets_a_handshake() {
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed", "415 Unsupported Media Type"] {
        let (url, requests) = raw(move |_, request| {
            if request.is("server/discover") {
                return response(status, &[], "what?");
            }
            older(request, || {
                if request.method == "GET" { response("405 No", &[], "") } else { json_answer(request, &nothing()) }
            })
        })
        .await;
        let client = connect(&url, NegotiationMode::Auto).await;
        assert_eq!(client.revision(), Revision::V2025_11_25);
        soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
        let requests = requests.lock().unwrap();
        let call = requests.iter().find(|request| request.is("tools/call")).unwrap();
        assert_eq!(call.header("mcp-session-id"), Some("s1"));
        assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(call.header("mcp-method"), None);
    }
}

#[tokio::test]
async fn the_headers_of_2026_match_the_body() {
    let (url, requests) = raw(|_, request| modern(request, || json_answer(request, &nothing()))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    soon(client.call_tool("wetter für morgen", json!({})).into_future()).await.unwrap_or_default();
    let requests = requests.lock().unwrap();
    for request in requests.iter() {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), request.body["method"].as_str());
        assert_eq!(request.header("mcp-session-id"), None);
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    }
    assert_eq!(requests[1].header("mcp-name"), Some("=?base64?d2V0dGVyIGbDvHIgbW9yZ2Vu?="));
}

#[tokio::test]
async fn an_expired_session_ends_the_connection_and_the_call_was_not_sent() {
    let (url, _) = raw(|_, request| {
        older(request, || {
            if request.method == "GET" { response("405 No", &[], "") } else { response("404 Not Found", &[], "") }
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotSent, "{error:?}");
    soon(client.closed()).await;
}

/// A stream of three events, cut at every byte: events that were complete are not requested again, and the rest is.
#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_stopped() {
    let event = |number: usize, id: &Value| {
        let data = match number {
            0 => return "id: e0\nretry: 1\ndata:\n\n".to_owned(),
            1 => json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": 0, "progress": 1}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "whole"}]}}),
        };
        format!("id: e{number}\ndata: {data}\n\n")
    };
    let whole: String = (0..3).map(|number| event(number, &json!(2))).collect();
    let first = event(0, &json!(2)).len();
    for cut in first..whole.len() {
        let sent = whole.clone();
        let (url, requests) = raw(move |_, request| {
            older(request, || match (&*request.method, request.header("last-event-id")) {
                ("GET", None) => response("405 Method Not Allowed", &[], ""),
                ("GET", Some(last)) => {
                    let from: usize = last.trim_start_matches('e').parse::<usize>().unwrap() + 1;
                    events(&(from..3).map(|number| event(number, &json!(2))).collect::<String>())
                }
                _ => events(&sent[..cut]),
            })
        })
        .await;
        let client = connect(&url, OLDER).await;
        let result = soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("whole"), "cut at {cut}");
        let resumed =
            requests.lock().unwrap().iter().filter(|request| request.header("last-event-id").is_some()).count();
        assert_eq!(resumed, 1, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_stream_without_an_answer_cannot_be_resumed_since_2026() {
    let (url, requests) = raw(|_, request| modern(request, || events("id: e0\ndata: \n\n"))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::Unknown));
    assert!(requests.lock().unwrap().iter().all(|request| request.method == "POST"));
}

#[tokio::test]
async fn server_messages_arrive_on_the_get_stream() {
    let (url, requests) = raw(|_, request| {
        older(request, || match &*request.method {
            "GET" if request.header("last-event-id").is_none() => {
                events("id: a\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"ping-1\",\"method\":\"ping\"}\n\n")
            }
            "GET" => response("405 No", &[], ""),
            _ => response("202 Accepted", &[], ""),
        })
    })
    .await;
    let _client = connect(&url, OLDER).await;
    let answered = || requests.lock().unwrap().iter().any(|request| request.body["id"] == "ping-1");
    soon(async {
        while !answered() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn closing_a_client_deletes_its_session() {
    let (url, requests) = raw(|_, request| older(request, || response("405 No", &[], ""))).await;
    let client = connect(&url, OLDER).await;
    // The DELETE is sent before close returns: a program may exit right after it.
    soon(client.close()).await;
    let requests = requests.lock().unwrap();
    let delete = requests.iter().find(|request| request.method == "DELETE").unwrap();
    assert_eq!(delete.header("mcp-session-id"), Some("s1"));
}

/// Gives out tokens by number, a new one for each refusal.
#[derive(Clone, Default)]
struct Numbered {
    refused: Arc<std::sync::atomic::AtomicUsize>,
}

impl Authorize for Numbered {
    fn attempt(&self, _: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(self.clone())
    }
}

impl RequestAuthorization for Numbered {
    fn sign<'a>(&'a mut self, headers: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async {
            let token = format!("Bearer {}", self.refused.load(Ordering::SeqCst));
            headers.insert(::http::header::AUTHORIZATION, token.parse()?);
            Ok(())
        })
    }

    fn answered<'a>(
        &'a mut self,
        status: ::http::StatusCode,
        headers: &'a ::http::HeaderMap,
    ) -> RequestAuthorizationFuture<'a, bool> {
        Box::pin(async move {
            if status != ::http::StatusCode::UNAUTHORIZED {
                return Ok(false);
            }
            assert_eq!(headers["www-authenticate"], "Bearer scope=\"a\"");
            self.refused.fetch_add(1, Ordering::SeqCst);
            Ok(true)
        })
    }
}

fn challenge() -> Vec<u8> {
    response("401 Unauthorized", &[("www-authenticate", "Bearer scope=\"a\"")], "")
}

#[tokio::test]
async fn an_unauthorized_request_is_authorized_and_retried() {
    let (url, requests) = raw(|_, request| match request.header("authorization") {
        Some("Bearer 2") => modern(request, || json_answer(request, &nothing())),
        _ => challenge(),
    })
    .await;
    let target = HttpTarget::new(&url).authorize(Numbered::default());
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    let requests = requests.lock().unwrap();
    let tokens: Vec<_> = requests.iter().map(|request| request.header("authorization").unwrap_or_default()).collect();
    assert_eq!(tokens, ["Bearer 0", "Bearer 1", "Bearer 2", "Bearer 2"]);
}

#[tokio::test]
async fn unauthorized_requests_are_retried_a_bounded_number_of_times() {
    let (url, requests) = raw(|_, _| challenge()).await;
    let target = HttpTarget::new(&url).authorize(Numbered::default());
    let error = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Refused);
    assert_eq!(requests.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn an_unauthorized_client_does_not_fall_back_to_an_older_revision() {
    for status in ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests"] {
        let (url, requests) = raw(move |_, _| response(status, &[], "")).await;
        let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
        assert!(error.to_string().contains(status), "{error}");
        assert_eq!(requests.lock().unwrap().len(), 1, "{status}");
    }
}
