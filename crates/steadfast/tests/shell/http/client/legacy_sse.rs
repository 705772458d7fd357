//! HTTP+SSE, the transport of 2024-11-05: servers that support no other.

use std::task::Poll;

use bytes::Bytes;
use serde_json::{Value, json};
use steadfast::client::NegotiationMode;
use steadfast::transport::http::HttpServerOptions;
use steadfast::transport::http::{
    Authorize, HttpTarget, OutgoingHttpRequest, RequestAuthorization, RequestAuthorizationFuture, TransportFetch,
    TransportFetchBody, TransportFetchError, TransportFetchFuture, TransportFetchRequest,
};
use steadfast::{ElicitResult, ErrorKind, Limits, Outcome, Revision};
use tokio::sync::mpsc;

use super::custom_fetch::{FullBody, respond};
use super::end_to_end::Served;
use super::*;

/// The stream of a hand-written server. Without the sender, the stream ends.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>);

impl Stream {
    fn say(&self, message: &Value) {
        self.event(&format!("event: message\ndata: {message}\n\n"));
    }

    fn event(&self, text: &str) {
        if let Some(stream) = &*self.0.lock().unwrap() {
            // The client may have gone.
            let _ = stream.send(text.to_owned());
        }
    }

    fn end(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn answer(&self, request: &ReceivedRequest, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}));
    }
}

/// A hand-written server: its stream is at `/sse`, and messages are accepted at `/messages`.
struct Old {
    url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    stream: Stream,
}

impl Old {
    /// Takes the first bytes of the stream, the status of a POST to the stream, and a function for messages after the
    /// handshake, which returns the status of their POST.
    async fn new(
        first: impl Into<String>,
        refusal: &'static str,
        taken: impl Fn(&ReceivedRequest, &Stream) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        let (first, taken) = (first.into(), Arc::new(taken));
        let (requests, stream) = (Arc::new(Mutex::new(Vec::new())), Stream::default());
        let (seen, said) = (Arc::clone(&requests), stream.clone());
        let url = by_hand(move |request, mut connection| {
            let (seen, said, first, taken) = (Arc::clone(&seen), said.clone(), first.clone(), Arc::clone(&taken));
            async move {
                seen.lock().unwrap().push(request.clone());
                if request.method == "GET" {
                    let (sender, mut receiver) = mpsc::unbounded_channel();
                    *said.0.lock().unwrap() = Some(sender);
                    let mut text = events(&first);
                    while connection.write_all(&text).await.is_ok() {
                        let Some(next) = receiver.recv().await else { return };
                        text = next.into_bytes();
                    }
                    return;
                }
                let status = match request.path() {
                    "/sse" => refusal,
                    _ => take(&request, &said, &*taken),
                };
                let _ = connection.write_all(&response(status, &[], "Accepted")).await;
            }
        })
        .await;
        Self { url: url.replace("/mcp", "/sse"), requests, stream }
    }

    /// One that is as it should be.
    async fn good(taken: impl Fn(&ReceivedRequest, &Stream) -> &'static str + Send + Sync + 'static) -> Self {
        Self::new(ENDPOINT, "405 Method Not Allowed", taken).await
    }

    /// What came, in order: the method, the path, and the method of the message.
    fn told(&self) -> Vec<String> {
        let told = |request: &ReceivedRequest| {
            format!("{} {} {}", request.method, request.path(), request.body["method"].as_str().unwrap_or_default())
        };
        self.requests.lock().unwrap().iter().map(told).collect()
    }
}

const ENDPOINT: &str = "event: endpoint\ndata: /messages?session=1\n\n";

fn take(
    request: &ReceivedRequest,
    stream: &Stream,
    taken: &dyn Fn(&ReceivedRequest, &Stream) -> &'static str,
) -> &'static str {
    match request.body["method"].as_str() {
        Some("initialize") => stream.answer(
            request,
            &json!({"protocolVersion": "2024-11-05", "serverInfo": {"name": "old", "version": "1"},
                "capabilities": {"tools": {}}}),
        ),
        Some("notifications/initialized") => {}
        _ => return taken(request, stream),
    }
    "202 Accepted"
}

fn echoes(request: &ReceivedRequest, stream: &Stream) -> &'static str {
    let text = &request.body["params"]["arguments"]["text"];
    stream.answer(request, &json!({"content": [{"type": "text", "text": text}]}));
    "202 Accepted"
}

async fn echoed(client: &Client, said: &str) {
    let result = soon(client.call_tool("echo", json!({"text": said})).into_future()).await.unwrap();
    assert_eq!(text(&result), said);
}

#[tokio::test]
async fn a_legacy_server_is_detected_in_the_order_of_the_specification() {
    for refusal in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        let old = Old::new(ENDPOINT, refusal, echoes).await;
        let client = soon(Client::connect(&*old.url).into_future()).await.unwrap();
        assert_eq!(client.revision(), Revision::V2024_11_05);
        echoed(&client, "größe").await;
        assert_eq!(
            old.told(),
            [
                "POST /sse server/discover",
                "POST /sse initialize",
                "GET /sse ",
                "POST /messages?session=1 initialize",
                "POST /messages?session=1 notifications/initialized",
                "POST /messages?session=1 tools/call",
            ],
            "{refusal}"
        );
        soon(client.close()).await;
    }
}

#[tokio::test]
async fn other_error_statuses_do_not_start_the_legacy_fallback() {
    for refusal in ["401 Unauthorized", "403 Forbidden", "415 Unsupported", "500 Internal Server Error"] {
        let old = Old::new(ENDPOINT, refusal, echoes).await;
        let error = soon(Client::connect(&*old.url).negotiation(OLDER).into_future()).await.unwrap_err();
        assert!(why(&error).contains(&refusal[..3]), "{}", why(&error));
        assert_eq!(old.told(), ["POST /sse initialize"], "{refusal}");
    }
}

#[tokio::test]
async fn a_json_rpc_error_to_initialize_does_not_start_the_legacy_fallback() {
    let (url, requests) = raw(|_, request| {
        let body = json!({"jsonrpc": "2.0", "id": request.body["id"],
            "error": {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}});
        response("400 Bad Request", &[("content-type", "application/json")], &body.to_string())
    })
    .await;
    let error = soon(Client::connect(&*url).negotiation(OLDER).into_future()).await.unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.code), Some(-32022));
    assert_eq!(requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_set_to_legacy_sse_tries_nothing_else() {
    let old = Old::good(echoes).await;
    let client = soon(Client::connect(HttpTarget::new(&old.url).legacy_sse()).into_future()).await.unwrap();
    echoed(&client, "a").await;
    assert_eq!(old.told()[..2], ["GET /sse ", "POST /messages?session=1 initialize"]);
    let target = HttpTarget::new(&old.url).legacy_sse();
    let error = soon(Client::connect(target).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn the_detected_transport_is_remembered_when_reconnecting() {
    let old = Old::good(echoes).await;
    let target = HttpTarget::new(&old.url).header("x-key", "k3y");
    for _ in 0..2 {
        let client = soon(Client::connect(target.clone()).into_future()).await.unwrap();
        echoed(&client, "a").await;
        soon(client.close()).await;
    }
    let told = old.told();
    assert_eq!(told.iter().filter(|told| told.starts_with("POST /sse")).count(), 2, "{told:?}");
    assert!(old.requests.lock().unwrap().iter().all(|request| request.header("x-key") == Some("k3y")));
}

#[tokio::test]
async fn an_upgraded_server_is_detected_when_reconnecting() {
    let newer = Arc::new(AtomicUsize::new(0));
    let learned = Arc::clone(&newer);
    let old = Old::good(echoes).await;
    let old_address = old.url.trim_start_matches("http://").trim_end_matches("/sse").to_owned();
    // In front of it: first it is the old server, and then a new one.
    let url = by_hand(move |request, mut stream| {
        let (learned, old) = (Arc::clone(&learned), old_address.clone());
        async move {
            if learned.load(Ordering::SeqCst) == 1 {
                let answer = older(&request, || {
                    if request.method == "GET" {
                        response("405 No", &[], "")
                    } else {
                        json_answer(&request, &json!({"content": []}))
                    }
                });
                let _ = stream.write_all(&answer).await;
                return;
            }
            let mut server = TcpStream::connect(old).await.unwrap();
            let body = if request.body.is_null() { String::new() } else { request.body.to_string() };
            let line = request.head.lines().next().unwrap();
            let request = format!(
                "{line}\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            server.write_all(request.as_bytes()).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        }
    })
    .await;
    let target = HttpTarget::new(url.replace("/mcp", "/sse"));
    let client = soon(Client::connect(target.clone()).into_future()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    soon(client.close()).await;
    newer.store(1, Ordering::SeqCst);
    let client = soon(Client::connect(target).into_future()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
}

#[tokio::test]
async fn nothing_is_sent_to_an_endpoint_of_another_origin() {
    let (elsewhere, visits) = raw(|_, _| response("202 Accepted", &[], "")).await;
    let port = elsewhere.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    for endpoint in [elsewhere.clone(), format!("//127.0.0.1:{port}/messages"), "https://127.0.0.1/messages".to_owned()]
    {
        for demanded in [false, true] {
            let first = format!("event: endpoint\ndata: {endpoint}\n\n");
            let old = Old::new(first, "405 Method Not Allowed", echoes).await;
            let mut target = HttpTarget::new(&old.url).header("authorization", "Bearer t0ken");
            if demanded {
                target = target.legacy_sse();
            }
            let error = soon(Client::connect(target).into_future()).await.unwrap_err();
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Transport, Outcome::NotSent), "{error:?}");
            assert!(why(&error).contains("another origin"), "{}", why(&error));
            assert!(old.told().iter().all(|told| !told.contains("/messages")));
        }
    }
    assert!(visits.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_of_the_legacy_stream_to_another_origin_is_not_followed() {
    let (elsewhere, visits) = raw(|_, _| events(ENDPOINT)).await;
    for demanded in [false, true] {
        let to = elsewhere.clone();
        let (url, _) = raw(move |_, request| match &*request.method {
            "GET" => response("307 Temporary Redirect", &[("location", &to)], ""),
            _ => response("405 Method Not Allowed", &[], ""),
        })
        .await;
        let mut target = HttpTarget::new(&url);
        if demanded {
            target = target.legacy_sse();
        }
        let error = soon(Client::connect(target).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsendable, Outcome::NotSent), "{error:?}");
        assert!(why(&error).contains("another origin"), "{}", why(&error));
    }
    assert!(visits.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_stream_without_an_endpoint_event_is_not_legacy_and_the_first_error_is_reported() {
    for first in ["event: message\ndata: {}\n\n", "data: /messages\n\n", "event: endpoint\n"] {
        let old = Old::new(first, "405 Method Not Allowed", echoes).await;
        let stream = old.stream.clone();
        let ending = tokio::spawn(async move {
            // The last one does not end otherwise.
            while stream.0.lock().unwrap().is_none() {
                tokio::task::yield_now().await;
            }
            stream.end();
        });
        let error = soon(Client::connect(&*old.url).negotiation(OLDER).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Refused, "{first:?}: {error:?}");
        assert!(why(&error).contains("405"), "{first:?}: {}", why(&error));
        soon(ending).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_without_an_endpoint_event_times_out() {
    let old = Old::new(": hello\n\n", "405 Method Not Allowed", echoes).await;
    let connecting = Client::connect(&*old.url).negotiation(OLDER).opening_timeout(Duration::from_millis(300));
    let error = soon(connecting.into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    // With the default timeout, the error is the refusal.
    let error = soon(Client::connect(&*old.url).negotiation(OLDER).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Refused, "{error:?}");
}

#[tokio::test]
async fn without_a_legacy_stream_the_first_error_is_reported() {
    for get in ["404 Not Found", "500 Internal Server Error", "200 OK"] {
        let (url, _) = raw(move |_, request| match &*request.method {
            "GET" => response(get, &[], ""),
            _ => response("400 Bad Request", &[], "what?"),
        })
        .await;
        let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Refused, "{get}: {error:?}");
        assert!(why(&error).contains("400"), "{get}: {}", why(&error));
        let error = soon(Client::connect(HttpTarget::new(&url).legacy_sse()).into_future()).await.unwrap_err();
        assert_ne!(error.outcome(), Outcome::Answered, "{get}: {error:?}");
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let begun = Signal::default();
    let signal = begun.clone();
    let old = Old::good(move |_, _| {
        signal.set();
        "202 Accepted"
    })
    .await;
    let client = connect_once(HttpTarget::new(&old.url), NegotiationMode::Auto).await;
    let mut call = Box::pin(client.call_tool("any", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(begun.wait()) => {}
    }
    old.stream.end();
    let error = soon(call).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error:?}");
    soon(client.closed()).await;
}

/// What was found out is not found out again.
#[tokio::test]
async fn a_client_reconnects_with_a_new_stream() {
    let old = Old::good(echoes).await;
    let client = soon(Client::connect(&*old.url).into_future()).await.unwrap();
    echoed(&client, "before").await;
    old.stream.end();
    soon(client.closed()).await;
    echoed(&client, "after").await;
    let told = old.told();
    assert_eq!(told.iter().filter(|told| *told == "GET /sse ").count(), 2, "{told:?}");
    assert_eq!(told.iter().filter(|told| *told == "POST /sse initialize").count(), 1, "{told:?}");
}

#[tokio::test]
async fn each_error_status_for_a_message_has_its_outcome() {
    for (status, outcome) in [
        ("400 Bad Request", Outcome::Refused),
        ("503 Service Unavailable", Outcome::Unknown),
        ("404 Not Found", Outcome::NotSent),
    ] {
        let old = Old::good(move |_, _| status).await;
        let client = connect_once(HttpTarget::new(&old.url), NegotiationMode::Auto).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), outcome, "{status}: {error:?}");
        if outcome == Outcome::NotSent {
            soon(client.closed()).await;
        }
    }
}

#[tokio::test]
async fn an_oversized_event_ends_the_connection_and_its_calls() {
    let old = Old::good(|_, stream| {
        stream.event(&format!("data: \"{}\"\n\n", "x".repeat(20_000)));
        "202 Accepted"
    })
    .await;
    let mut limits = Limits::default();
    limits.message_bytes = 10_000;
    let connecting = Client::connect(&*old.url).limits(limits).reconnect(ReconnectPolicy::never());
    let client = soon(connecting.into_future()).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error:?}");
    soon(client.closed()).await;
}

/// A server inside of this process that counts how much of its stream was read.
#[derive(Clone, Default)]
struct Counting {
    stream: Arc<Mutex<Option<mpsc::UnboundedSender<Bytes>>>>,
    taken: Arc<AtomicUsize>,
    /// So much of it was taken.
    enough: Signal,
}

/// The stream of [`Counting`]: each event is a piece.
struct Counted(mpsc::UnboundedReceiver<Bytes>, Counting);

impl TransportFetchBody for Counted {
    fn poll_chunk(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Option<Result<Bytes, TransportFetchError>>> {
        let piece = std::task::ready!(self.0.poll_recv(cx));
        if self.1.taken.fetch_add(1, Ordering::SeqCst) == 16 {
            self.1.enough.set();
        }
        Poll::Ready(piece.map(Ok))
    }
}

impl Counting {
    fn say(&self, message: &Value) {
        self.event(format!("data: {message}\n\n"));
    }

    fn event(&self, event: String) {
        // The client may have gone.
        let _ = self.stream.lock().unwrap().as_ref().map(|stream| stream.send(event.into()));
    }
}

impl TransportFetch for Counting {
    fn fetch(&self, request: TransportFetchRequest) -> TransportFetchFuture {
        let server = self.clone();
        Box::pin(async move {
            if request.method == ::http::Method::GET {
                let (sender, receiver) = mpsc::unbounded_channel();
                *server.stream.lock().unwrap() = Some(sender);
                server.event(ENDPOINT.to_owned());
                return Ok(respond(200, "text/event-stream", Counted(receiver, server)));
            }
            let message: Value = serde_json::from_slice(request.body.as_deref().unwrap_or_default()).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "near", "version": "1"}}),
                Some("notifications/initialized") => {
                    for number in 0..32 {
                        server.say(&json!({"jsonrpc": "2.0", "id": format!("p{number}"), "method": "ping"}));
                    }
                    server.enough.wait().await;
                    Value::Null
                }
                Some(_) => json!({"content": []}),
                None => Value::Null,
            };
            if !result.is_null() {
                server.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            Ok(respond(202, "text/plain", FullBody(None)))
        })
    }
}

/// L1: what the server asks for meanwhile cannot be answered yet, and is more than may wait.
#[tokio::test]
async fn requests_before_the_end_of_the_handshake_do_not_deadlock() {
    let mut limits = Limits::default();
    limits.outbox_bytes = 100;
    let target = HttpTarget::new("http://near/sse").legacy_sse().fetch(Counting::default());
    let client = soon(Client::connect(target).limits(limits).into_future()).await.unwrap();
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
}

#[tokio::test]
async fn responses_may_arrive_in_any_order() {
    let held = Arc::new(Mutex::new(Vec::<ReceivedRequest>::new()));
    let old = Old::good(move |request, stream| {
        let mut held = held.lock().unwrap();
        held.push(request.clone());
        if held.len() == 8 {
            for request in held.iter().rev() {
                echoes(request, stream);
            }
        }
        "202 Accepted"
    })
    .await;
    let client = soon(Client::connect(&*old.url).into_future()).await.unwrap();
    let calls: Vec<_> =
        (0..8).map(|number| client.call_tool("echo", json!({"text": number.to_string()})).start()).collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(text(&soon(call).await.unwrap()), number.to_string());
    }
}

/// Signs each request with where it goes.
struct Signs;

struct Signature(String);

impl Authorize for Signs {
    fn attempt(&self, request: &OutgoingHttpRequest<'_>) -> Box<dyn RequestAuthorization> {
        let path = request.url.splitn(4, '/').nth(3).unwrap_or_default();
        Box::new(Signature(format!("{} /{path}", request.method)))
    }
}

impl RequestAuthorization for Signature {
    fn sign<'a>(&'a mut self, headers: &'a mut ::http::HeaderMap) -> RequestAuthorizationFuture<'a, ()> {
        Box::pin(async {
            headers.insert("x-signed", self.0.parse()?);
            Ok(())
        })
    }
}

#[tokio::test]
async fn each_request_is_authorized_for_its_own_url() {
    let old = Old::good(echoes).await;
    let target = HttpTarget::new(&old.url).authorize(Signs);
    let client = soon(Client::connect(target).into_future()).await.unwrap();
    echoed(&client, "a").await;
    for request in old.requests.lock().unwrap().iter() {
        let goes = format!("{} {}", request.method, request.path());
        assert_eq!(request.header("x-signed"), Some(&*goes));
    }
}

/// Our own server, in every revision that it negotiates.
#[tokio::test]
async fn client_and_server_of_the_library_work_over_legacy_sse() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let talk = ServerTool::new("talk").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        let name: String = ctx.elicit("Name?").await?;
        Ok::<_, ToolError>(format!("hello {name}"))
    });
    let tools = [echo(), talk, forever(&begun, &dropped)];
    let served = Served::with(tools, HttpServerOptions::new().legacy_sse("/sse"));
    let target = HttpTarget::new(served.url.replace("/mcp", "/sse"));
    for era in [NegotiationMode::Auto, NegotiationMode::Handshake(Revision::V2025_06_18), OLDER] {
        let client = soon(
            Client::connect(target.clone())
                .negotiation(era)
                .on_elicit(|_, _| async {
                    Ok(ElicitResult::accept(json!({"answer": "Ann"}).as_object().cloned().unwrap()))
                })
                .into_future(),
        )
        .await
        .unwrap();
        assert_eq!(soon(client.list_tools()).await.unwrap().len(), 3);
        echoed(&client, "größe").await;
        let progress = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&progress);
        let call = client.call_tool("talk", json!({})).on_progress(move |_| _ = told.fetch_add(1, Ordering::SeqCst));
        assert_eq!(text(&soon(call.into_future()).await.unwrap()), "hello Ann");
        assert_eq!(progress.load(Ordering::SeqCst), 1, "{era:?}");
        let mut call = Box::pin(client.call_tool("forever", json!({})).start());
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = soon(begun.wait()) => {}
        }
        drop(call);
        // The cancellation has reached the server.
        soon(dropped.wait()).await;
        echoed(&client, "and on").await;
        soon(client.close()).await;
    }
    served.stop().await;
}

#[tokio::test]
async fn calls_end_when_a_legacy_sse_server_stops() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let served = Served::with([forever(&begun, &dropped)], HttpServerOptions::new().legacy_sse("/sse"));
    let client = connect_once(HttpTarget::new(served.url.replace("/mcp", "/sse")), NegotiationMode::Auto).await;
    let mut call = Box::pin(client.call_tool("forever", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(begun.wait()) => {}
    }
    tokio::spawn(served.stop());
    let error = soon(call).await.unwrap_err();
    assert!(matches!(error.outcome(), Outcome::Refused | Outcome::Unknown), "{error:?}");
    soon(client.closed()).await;
}
