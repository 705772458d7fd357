//! What a fresh pair of eyes found in clients of servers at a URL.

use std::time::Instant;

use serde_json::{Value, json};
use steadfast::client::{Change, Era};
use steadfast::transport::http::HttpTarget;
use steadfast::{Outcome, SubscriptionFilter};

use super::*;

fn refusal() -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}})
}

/// A server that answers after a while, and knows how many connections are open.
async fn slow(
    answer: impl Fn(&Came) -> (Duration, Vec<u8>) + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<Came>>>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (requests, open, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let (seen, count) = (Arc::clone(&requests), Arc::clone(&open));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, count, answer) = (Arc::clone(&seen), Arc::clone(&count), Arc::clone(&answer));
            tokio::spawn(async move {
                count.fetch_add(1, Ordering::SeqCst);
                if let Some(came) = read(&mut stream).await {
                    seen.lock().unwrap().push(came.clone());
                    let (wait, bytes) = answer(&came);
                    let mut rest = [0; 64];
                    // The client hangs up, or it is time.
                    if tokio::time::timeout(wait, stream.read(&mut rest)).await.is_err() {
                        let _ = stream.write_all(&bytes).await;
                        if came.method == "GET" {
                            let _ = stream.read(&mut rest).await;
                        }
                    }
                }
                count.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (url, requests, open)
}

const NEVER: Duration = Duration::from_secs(3600);

/// L2, L10: a response that has ended without the answer is the end of the call.
#[tokio::test]
async fn a_json_body_that_is_not_the_answer_ends_the_call() {
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
        let (url, _) =
            raw(move |_, came| modern(came, || response("200 OK", &[("content-type", "application/json")], &sent)))
                .await;
        let client = connect(&url, Era::Modern).await;
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
    let (url, _) = raw(|_, came| modern(came, || events(&format!("data: {}\n\n", refusal())))).await;
    let client = connect(&url, Era::Modern).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.code), Some(-32600), "{error:?}");
}

/// L10: 303 says that it was done, and where to look; 302 is used for the same. Only 307 and 308 ask for it again.
#[tokio::test]
async fn a_redirect_to_what_was_done_is_not_an_unsent_call() {
    for status in ["301 Moved", "302 Found", "303 See Other"] {
        let (url, requests) = raw(move |_, came| modern(came, || response(status, &[("location", "/done")], ""))).await;
        let client = connect(&url, Era::Modern).await;
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert!(requests.lock().unwrap().iter().any(|came| came.is("tools/call")));
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
            let Some(came) = read(&mut stream).await else { continue };
            if came.is("tools/call") {
                // It asks back, and is gone.
                drop(listener);
                let asks = json!({"resultType": "input_required", "requestState": "s"});
                let _ = stream.write_all(&json_answer(&came, &asks)).await;
                return;
            }
            let _ = stream.write_all(&modern(&came, Vec::new)).await;
        }
    });
    let client = connect(&url, Era::Modern).await;
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_ne!(error.outcome(), Outcome::NotSent, "{error:?}");
}

/// L5: a POST that nobody answers ends with the connection, also if it is of a notification.
#[tokio::test]
async fn no_request_outlives_the_client() {
    let (url, _, open) = slow(|came| {
        let wait = if came.is("notifications/initialized") { NEVER } else { Duration::ZERO };
        (wait, older(came, || response("405 No", &[], "")))
    })
    .await;
    let client = connect(&url, OLDER).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    soon(client.close()).await;
    // The DELETE has two seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(open.load(Ordering::SeqCst), 0, "connections are left behind");
}

/// L7: answers that the server does not take in are bounded.
#[tokio::test]
async fn a_server_that_asks_and_does_not_listen_cannot_make_connections_without_end() {
    let (url, _, open) = slow(|came| {
        if came.method == "GET" {
            let ping = |n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"p{n}\",\"method\":\"ping\"}}\n\n");
            let pings = (0..400).map(ping).collect::<Vec<String>>().concat();
            return (Duration::ZERO, events(&pings));
        }
        let wait = if came.body.get("result").is_some() { NEVER } else { Duration::ZERO };
        (wait, older(came, || response("405 No", &[], "")))
    })
    .await;
    let client = connect(&url, OLDER).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let most = open.load(Ordering::SeqCst);
    soon(client.close()).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let left = open.load(Ordering::SeqCst);
    assert!(most <= 128 && left == 0, "{most} connections at once, {left} after the end");
}

/// A server cannot make a client spin.
#[tokio::test]
async fn a_stream_that_ends_at_once_is_not_opened_again_at_once() {
    let (url, requests) = raw(|_, came| {
        older(came, || if came.method == "GET" { events("retry: 0\n\n") } else { response("405 No", &[], "") })
    })
    .await;
    let _client = connect(&url, OLDER).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let gets = requests.lock().unwrap().iter().filter(|came| came.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}

#[tokio::test]
async fn an_answer_that_never_comes_is_not_resumed_at_once_for_ever() {
    let (url, requests) = raw(|_, came| {
        older(came, || match (&*came.method, came.header("last-event-id")) {
            ("GET", None) => response("405 No", &[], ""),
            _ => events("id: a\nretry: 0\ndata:\n\n"),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let call = client.call_tool("any", json!({})).start();
    let _ = tokio::time::timeout(Duration::from_secs(2), call).await;
    let gets = requests.lock().unwrap().iter().filter(|came| came.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}

/// A message that is too long is passed over, not fetched again for ever.
#[tokio::test]
async fn what_is_too_long_is_not_fetched_again_for_ever() {
    let long = "x".repeat(20_000);
    let (url, requests) = raw(move |_, came| {
        older(came, || match &*came.method {
            "GET" => events(&format!("retry: 10\n\nid: a\ndata: \"{long}\"\n\n")),
            _ => response("405 No", &[], ""),
        })
    })
    .await;
    let mut limits = steadfast::Limits::default();
    limits.message_bytes = 10_000;
    let _client = soon(Client::connect(&*url).era(OLDER).limits(limits).into_future()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let requests = requests.lock().unwrap();
    let gets = requests.iter().filter(|came| came.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}

/// L5: a stream of changes that begins behind the end has ended.
#[tokio::test]
async fn changes_of_a_closed_connection_end() {
    let (url, _) = raw(|_, came| older(came, || response("404 Not Found", &[], ""))).await;
    let connecting = Client::connect(&*url).era(OLDER).reconnect(steadfast::client::Reconnect::never());
    let client = soon(connecting.into_future()).await.unwrap();
    let _ = soon(client.call_tool("any", json!({})).into_future()).await;
    soon(client.closed()).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    let end = async { while let Some(Ok(_)) = changes.next().await {} };
    tokio::time::timeout(Duration::from_secs(2), end).await.expect("the stream hangs");
}

fn subscriptions(uris: &[&str]) -> SubscriptionFilter {
    let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
    SubscriptionFilter::new().with_tools_list_changed(true).with_resource_subscriptions(uris)
}

/// L9: `Listening` is the first thing to come.
#[tokio::test]
async fn what_changes_before_it_listens_is_not_told_before() {
    let (url, _) = raw(|_, came| {
        older(came, || {
            if came.method == "GET" {
                return response("405 No", &[], "");
            }
            let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let answer = json!({"jsonrpc": "2.0", "id": came.body["id"], "result": {}});
            events(&format!("data: {told}\n\ndata: {answer}\n\n"))
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let mut changes = client.changes(subscriptions(&["a:1"]));
    let first = soon(changes.next()).await.unwrap().unwrap();
    assert!(matches!(first, Change::Listening(_)), "{first:?}");
}

/// A stream that was dropped leaves no subscription behind.
#[tokio::test]
async fn changes_that_are_dropped_at_once_leave_no_subscription() {
    let (url, requests) = raw(|_, came| {
        older(came, || if came.method == "GET" { response("405 No", &[], "") } else { json_answer(came, &json!({})) })
    })
    .await;
    let client = connect(&url, OLDER).await;
    drop(client.changes(subscriptions(&["a:1", "a:2"])));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = requests.lock().unwrap();
    for uri in ["a:1", "a:2"] {
        let of = requests.iter().filter(|came| came.body["params"]["uri"] == uri);
        let methods: Vec<_> = of.map(|came| came.body["method"].as_str().unwrap_or_default()).collect();
        assert_ne!(methods.last(), Some(&"resources/subscribe"), "{uri}: {methods:?}");
    }
}

/// A URL may hold secrets.
#[test]
fn no_secret_of_a_url_is_shown() {
    for url in ["https://me:s3cret@example.org/mcp", "https://example.org/mcp?key=s3cret", "https://me:s3cret@:x/"] {
        let shown = format!("{:?}", HttpTarget::new(url));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

/// wire.md: 401 and 403 do not fall back to `initialize`.
#[tokio::test]
async fn a_probe_that_is_not_let_in_is_not_followed_by_a_handshake() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (url, requests) = raw(move |_, _| response(status, &[], "")).await;
        let error = soon(Client::connect(&*url).into_future()).await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Refused);
        let methods: Vec<_> = requests.lock().unwrap().iter().map(|came| came.body["method"].clone()).collect();
        assert_eq!(methods, ["server/discover"], "{status}");
    }
}

/// wire.md: a client that gets -32020 refreshes `tools/list` and tries once more.
#[tokio::test]
async fn a_mismatch_of_headers_is_mended_once() {
    let (url, requests) = raw(|_, came| {
        modern(came, || {
            if came.is("tools/list") {
                return json_answer(
                    came,
                    &json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "tools": [{"name": "any", "inputSchema": {"type": "object",
                        "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}}]}),
                );
            }
            if came.header("mcp-param-city").is_none() {
                let body = json!({"jsonrpc": "2.0", "id": came.body["id"],
                    "error": {"code": -32020, "message": "Mcp-Param-City is missing"}});
                return response("400 Bad Request", &[("content-type", "application/json")], &body.to_string());
            }
            json_answer(came, &json!({"resultType": "complete", "content": []}))
        })
    })
    .await;
    let client = connect(&url, Era::Modern).await;
    let called = soon(client.call_tool("any", json!({"city": "Bonn"})).into_future()).await;
    let methods: Vec<_> = requests.lock().unwrap().iter().map(|came| came.body["method"].clone()).collect();
    assert!(called.is_ok(), "{called:?} {methods:?}");
}

/// L10, L4: a call that was given up behind a handshake that hangs is never sent, and neither is its cancellation.
#[tokio::test]
async fn what_was_given_up_before_it_was_sent_is_not_sent() {
    let (url, requests, _) = slow(|came| {
        let wait = if came.is("notifications/initialized") { Duration::from_secs(1) } else { Duration::ZERO };
        (wait, older(came, || response("405 No", &[], "")))
    })
    .await;
    let client = connect(&url, OLDER).await;
    let began = Instant::now();
    let call = client.call_tool("any", json!({})).timeout(Duration::from_millis(200));
    let error = soon(call.into_future()).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(900));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let methods: Vec<_> = requests.lock().unwrap().iter().map(|came| came.body["method"].clone()).collect();
    assert!(!methods.contains(&json!("tools/call")), "{methods:?}");
    assert!(!methods.contains(&json!("notifications/cancelled")), "{methods:?}");
    assert_eq!(error.outcome(), Outcome::NotSent);
}

/// Lets the first request in, and panics.
#[derive(Clone)]
struct Panics(Arc<AtomicUsize>);

impl steadfast::transport::http::Authorize for Panics {
    fn attempt(&self, _: &::http::Method, _: &str) -> Box<dyn steadfast::transport::http::Attempt> {
        Box::new(self.clone())
    }
}

impl steadfast::transport::http::Attempt for Panics {
    fn sign<'a>(&'a mut self, _: &'a mut ::http::HeaderMap) -> steadfast::transport::http::Authorizing<'a, ()> {
        Box::pin(async {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "no token");
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_panic_while_authorizing_ends_the_call() {
    let (url, _) = raw(|_, came| modern(came, || json_answer(came, &json!({"content": []})))).await;
    let target = HttpTarget::new(&url).authorize(Panics(Arc::default()));
    let client = soon(Client::connect(target).era(Era::Modern).into_future()).await.unwrap();
    let call = client.call_tool("any", json!({})).into_future();
    let ended = tokio::time::timeout(Duration::from_secs(2), call).await.expect("the call hangs");
    assert!(ended.is_err());
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

/// L7: what a subscriber has not looked at is bounded in bytes, not only in number.
#[tokio::test]
async fn a_subscriber_that_does_not_look_holds_no_memory_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sent = Signal::default();
    let done = sent.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(came) = read(&mut stream).await else { continue };
            if !came.is("subscriptions/listen") {
                let _ = stream.write_all(&modern(&came, Vec::new)).await;
                continue;
            }
            let meta = json!({"io.modelcontextprotocol/subscriptionId": came.body["id"]});
            let note = |method: &str, params: Value| {
                let mut params = params;
                params["_meta"] = meta.clone();
                format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": method, "params": params}))
            };
            let acknowledged = note("notifications/subscriptions/acknowledged", json!({"notifications": {}}));
            let _ = stream.write_all(&events(&acknowledged)).await;
            let big = note("notifications/resources/updated", json!({"uri": "x".repeat(4 << 20)}));
            for _ in 0..60 {
                stream.write_all(big.as_bytes()).await.unwrap();
            }
            done.set();
            std::future::pending::<()>().await;
        }
    });
    let client = connect(&url, Era::Modern).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    soon(changes.next()).await.unwrap().unwrap();
    let before = resident();
    soon(sent.wait()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 128, "{grown} MiB are held for somebody who does not look");
}
