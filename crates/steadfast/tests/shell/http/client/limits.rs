//! Limits on responses, and redirects.

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture,
};
use steadfast::{ErrorKind, Limits, Outcome};

use super::*;

/// The longest message that clients take here.
const LONGEST: usize = 10_000;

async fn careful(url: &str, era: NegotiationMode) -> Client {
    let mut limits = Limits::default();
    limits.message_bytes = LONGEST;
    soon(Client::connect(url).negotiation(era).limits(limits).into_future()).await.unwrap()
}

/// A server of 2026-07-28 that answers calls with `head`, and then repeats `rest` until the client hangs up, which is the
/// signal.
async fn endless(head: &'static str, rest: String) -> (String, Signal) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let left = Signal::default();
    let signal = left.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let signal = signal.clone();
            let rest = rest.clone();
            tokio::spawn(async move {
                let Some(request) = read(&mut stream).await else { return };
                if request.is("server/discover") {
                    let _ = stream.write_all(&modern(&request, Vec::new)).await;
                    return;
                }
                let _ = stream.write_all(head.as_bytes()).await;
                while stream.write_all(rest.as_bytes()).await.is_ok() {}
                signal.set();
            });
        }
    });
    (url, left)
}

#[tokio::test]
async fn endless_responses_are_aborted() {
    let rows = [
        // A body.
        ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\"", "x".repeat(4096)),
        // A refusal.
        ("HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\r\n\"", "x".repeat(4096)),
        // A line of an event.
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ", "x".repeat(4096)),
        // An event of many lines.
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", "data: x\n".repeat(512)),
        // A header.
        ("HTTP/1.1 200 OK\r\nx-long: ", "x".repeat(4096)),
        // Headers.
        ("HTTP/1.1 200 OK\r\n", "x-many: x\r\n".repeat(400)),
    ];
    for (head, rest) in rows {
        let (url, left) = endless(head, rest).await;
        let client = careful(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert!(
            matches!(error.outcome(), Outcome::Unknown | Outcome::Answered | Outcome::Refused),
            "{head:?}: {error:?}"
        );
        soon(left.wait()).await;
    }
}

#[tokio::test]
async fn a_response_at_the_size_limit_is_accepted_and_a_longer_one_is_not() {
    let answer = |request: &ReceivedRequest, length: usize| {
        let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {"content": []}}).to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    for in_event in [false, true] {
        for (length, fits) in [(LONGEST - 10, true), (LONGEST + 1, false)] {
            let (url, _) = raw(move |_, request| {
                modern(request, || {
                    let body = answer(request, length);
                    if in_event {
                        return events(&format!("data: {body}\n\n"));
                    }
                    response("200 OK", &[("content-type", "application/json")], &body)
                })
            })
            .await;
            let client = careful(&url, NegotiationMode::Stateless).await;
            let called = soon(client.call_tool("any", json!({})).into_future()).await;
            assert_eq!(called.is_ok(), fits, "{length} {in_event}: {called:?}");
            if let Err(error) = called {
                assert!(why(&error).contains(&LONGEST.to_string()), "{}", why(&error));
            }
        }
    }
}

/// Messages are looked at no deeper than the limit, wherever they stand.
#[tokio::test]
async fn a_response_nested_too_deeply_is_not_decoded() {
    const DEEPEST: usize = 16;
    let deep = format!("{}{}", "[".repeat(DEEPEST + 1), "]".repeat(DEEPEST + 1));
    let answer =
        |id: &serde_json::Value| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"deep":{deep}}}}}"#);
    let refusal = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32600,"message":"no","data":{deep}}}}}"#);
    let json = [("content-type", "application/json")];
    for row in 0..4 {
        let (answer, refusal) = (answer(&json!("ID")), refusal.clone());
        let (url, _) = raw(move |_, request| {
            let answer = answer.replace("\"ID\"", &request.body["id"].to_string());
            modern(request, || match row {
                0 => response("200 OK", &json, &answer),
                1 => events(&format!("data: {answer}\n\n")),
                2 => response("200 OK", &json, &refusal),
                _ => response("400 Bad Request", &json, &refusal),
            })
        })
        .await;
        let mut limits = Limits::default();
        limits.depth = DEEPEST;
        let client = soon(Client::connect(&*url).negotiation(NegotiationMode::Stateless).limits(limits).into_future())
            .await
            .unwrap();
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        // A message that is not read may be a result or an error. Of an unread error there is still the status.
        let expected = if row == 3 { Outcome::Refused } else { Outcome::Unknown };
        assert_eq!(error.outcome(), expected, "{row}: {error:?}");
        assert_ne!(error.refusal().map(|refusal| refusal.code), Some(-32600), "{row}: {error:?}");
    }
}

/// Nothing is unpacked, so nothing small can become large.
#[tokio::test]
async fn compression_is_neither_requested_nor_decoded() {
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let (url, requests) = raw(move |_, request| {
            let headers = [("content-type", "application/json"), ("content-encoding", encoding)];
            modern(request, || response("200 OK", &headers, "\u{1f}packed"))
        })
        .await;
        let client = connect(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Decode, Outcome::Unknown), "{error:?}");
        assert!(why(&error).contains(encoding), "{}", why(&error));
        assert!(requests.lock().unwrap().iter().all(|request| request.header("accept-encoding").is_none()));
    }
}

/// L6: a log subscriber may block, and all connections share a thread.
#[tokio::test]
async fn log_lines_caused_by_a_server_are_short_and_written_on_the_log_thread() {
    let refusal =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "pr0voked ".repeat(9_999)}});
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (url, _) = raw(move |_, request| match () {
        () if request.is("notifications/initialized") => response("400 Bad Request", &[], &refusal.to_string()),
        () => older(request, || response("405 No", &[], "")),
    })
    .await;
    let _client = connect(&url, OLDER).await;
    soon(log.written.wait()).await;
    let lines = log.lines.lock().unwrap();
    assert!(lines.iter().all(|(thread, line)| thread == "steadfast-log" && line.len() < 1_000), "{lines:?}");
}

/// Records the log lines that this test causes, with their thread. All tests of this process write to it.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<(String, String)>>>,
    written: Signal,
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN && metadata.target().starts_with("steadfast")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Line(String);
        impl tracing::field::Visit for Line {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 = format!("{} {field}={value:?}", self.0);
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        if line.0.contains("pr0voked") {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            self.lines.lock().unwrap().push((thread, line.0));
            self.written.set();
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// It came whole, and would come again.
#[tokio::test]
async fn an_unusable_response_is_not_requested_again() {
    type EncodedResponse = fn(&ReceivedRequest) -> Vec<u8>;
    fn whole(body: &str) -> Vec<u8> {
        response("200 OK", &[("content-type", "application/json")], body)
    }
    let rows: [(&str, EncodedResponse); 4] = [
        ("bytes", |_| whole(&"x".repeat(LONGEST + 1))),
        ("bytes", |_| events(&format!("data: {}\n\n", "x".repeat(LONGEST + 1)))),
        ("compressed", |_| response("200 OK", &[("content-encoding", "gzip")], "\u{1f}packed")),
        ("no JSON-RPC response to the request", |_| whole("\"hello\"")),
    ];
    for (expected, answer) in rows {
        let (url, requests) = raw(move |_, request| modern(request, || answer(request))).await;
        let client = careful(&url, NegotiationMode::Stateless).await;
        let error = soon(client.call_tool("any", json!({})).idempotent().into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Decode, Outcome::Unknown), "{error:?}");
        assert!(why(&error).contains(expected), "{}", why(&error));
        assert_eq!(requests.lock().unwrap().iter().filter(|request| request.is("tools/call")).count(), 1, "{expected}");
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_headers_and_body() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let (url, requests) = raw(move |_, request| {
            if request.path() == "/mcp" {
                return response(status, &[("location", "/moved?to=here")], "");
            }
            modern(request, || json_answer(request, &json!({"content": []})))
        })
        .await;
        let target = HttpTarget::new(&url).header("x-key", "k3y");
        let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
        soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
        let requests = requests.lock().unwrap();
        let moved: Vec<_> = requests.iter().filter(|request| request.path() == "/moved?to=here").collect();
        assert!(moved.iter().any(|request| request.is("tools/call") && request.method == "POST"), "{moved:?}");
        assert!(moved.iter().all(|request| request.header("x-key") == Some("k3y")));
    }
}

/// Signs for one URL, as a proof of possession does (RFC 9449).
struct Prover;

impl Authorize for Prover {
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        Box::new(Proof(request.url.to_owned()))
    }
}

struct Proof(String);

impl RequestAuthorization for Proof {
    fn sign<'a>(&'a mut self, headers: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async move {
            headers.insert("x-proof", self.0.parse()?);
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_redirected_request_is_authorized_for_its_new_url() {
    let (url, requests) = raw(move |_, request| {
        if request.path() == "/mcp" {
            return response("308 Permanent Redirect", &[("location", "/moved")], "");
        }
        modern(request, || json_answer(request, &json!({"content": []})))
    })
    .await;
    let target = HttpTarget::new(&url).authorize(Prover);
    let client = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap();
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    let requests = requests.lock().unwrap();
    assert!(requests.iter().any(|request| request.path() == "/moved"));
    for request in requests.iter() {
        let asked = url.replace("/mcp", request.path());
        assert_eq!(request.header("x-proof"), Some(asked.as_str()), "{request:?}");
    }
}

#[tokio::test]
async fn redirect_loops_end() {
    let (url, requests) =
        raw(|_, request| modern(request, || response("307 Temporary Redirect", &[("location", "/mcp")], ""))).await;
    let client = connect(&url, NegotiationMode::Stateless).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsendable, Outcome::NotSent), "{error:?}");
    assert!(requests.lock().unwrap().len() < 10);
}

/// Whatever the origin differs in: the port, the host, the scheme.
#[tokio::test]
async fn no_request_follows_a_redirect_to_another_origin() {
    let (elsewhere, visits) = raw(|_, request| json_answer(request, &json!({"content": []}))).await;
    let port = elsewhere.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    for location in [elsewhere.clone(), format!("//127.0.0.2:{port}/mcp"), format!("https://127.0.0.1:{port}/mcp")] {
        for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let to = location.clone();
            let (url, _) = raw(move |_, request| modern(request, || response(status, &[("location", &to)], ""))).await;
            let target = HttpTarget::new(&url).header("authorization", "Bearer t0ken");
            let client = connect_once(target, NegotiationMode::Stateless).await;
            let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
            // The last two mean that nothing was started; the others are also used for what was done.
            let begun = !(status.starts_with("307") || status.starts_with("308"));
            let kind = if begun { ErrorKind::Transport } else { ErrorKind::Unsendable };
            assert_eq!(error.kind(), kind, "{status} {location}: {error:?}");
            assert!(why(&error).contains("another origin"), "{status} {location}: {}", why(&error));
        }
    }
    assert!(visits.lock().unwrap().is_empty());
}

#[tokio::test]
async fn session_streams_and_delete_do_not_follow_redirects_to_another_origin() {
    let (elsewhere, visits) = raw(|_, _| response("200 OK", &[], "")).await;
    let asked = Signal::default();
    let get = asked.clone();
    let (url, _) = raw(move |_, request| {
        if request.method == "GET" {
            get.set();
        }
        older(request, || response("307 Temporary Redirect", &[("location", &elsewhere)], ""))
    })
    .await;
    let client = connect(&url, OLDER).await;
    soon(asked.wait()).await;
    soon(client.close()).await;
    assert!(visits.lock().unwrap().is_empty());
}
