//! How many requests a client sends and has open, whatever the server does.

use serde_json::json;

use super::*;

/// A server that answers after a while, and knows how many connections are open.
pub(super) async fn slow(
    answer: impl Fn(&ReceivedRequest) -> (Duration, Vec<u8>) + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<ReceivedRequest>>>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (requests, open, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let (seen, count) = (Arc::clone(&requests), Arc::clone(&open));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, count, answer) = (Arc::clone(&seen), Arc::clone(&count), Arc::clone(&answer));
            tokio::spawn(async move {
                count.fetch_add(1, Ordering::SeqCst);
                if let Some(request) = read(&mut stream).await {
                    seen.lock().unwrap().push(request.clone());
                    let (wait, bytes) = answer(&request);
                    let mut rest = [0; 64];
                    // The client hangs up, or it is time.
                    if tokio::time::timeout(wait, stream.read(&mut rest)).await.is_err() {
                        let _ = stream.write_all(&bytes).await;
                        if request.method == "GET" {
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

/// L5: a POST without a response ends with the connection, also if it carries a notification.
#[tokio::test]
async fn no_request_outlives_the_client() {
    let (url, _, open) = slow(|request| {
        let wait = if request.is("notifications/initialized") { NEVER } else { Duration::ZERO };
        (wait, older(request, || response("405 No", &[], "")))
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
async fn responses_that_the_server_does_not_read_open_a_bounded_number_of_connections() {
    let (url, _, open) = slow(|request| {
        if request.method == "GET" {
            let ping = |n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"p{n}\",\"method\":\"ping\"}}\n\n");
            let pings = (0..400).map(ping).collect::<Vec<String>>().concat();
            return (Duration::ZERO, events(&pings));
        }
        let wait = if request.body.get("result").is_some() { NEVER } else { Duration::ZERO };
        (wait, older(request, || response("405 No", &[], "")))
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
    let (url, requests) = raw(|_, request| {
        older(request, || if request.method == "GET" { events("retry: 0\n\n") } else { response("405 No", &[], "") })
    })
    .await;
    let _client = connect(&url, OLDER).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let gets = requests.lock().unwrap().iter().filter(|request| request.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}

#[tokio::test]
async fn resuming_a_stream_without_a_response_is_rate_limited() {
    let (url, requests) = raw(|_, request| {
        older(request, || match (&*request.method, request.header("last-event-id")) {
            ("GET", None) => response("405 No", &[], ""),
            _ => events("id: a\nretry: 0\ndata:\n\n"),
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let call = client.call_tool("any", json!({})).start();
    let _ = tokio::time::timeout(Duration::from_secs(2), call).await;
    let gets = requests.lock().unwrap().iter().filter(|request| request.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}

/// A message that is too long is skipped, not fetched again for ever.
#[tokio::test]
async fn an_oversized_event_is_not_fetched_again_for_ever() {
    let long = "x".repeat(20_000);
    let (url, requests) = raw(move |_, request| {
        older(request, || match &*request.method {
            "GET" => events(&format!("retry: 10\n\nid: a\ndata: \"{long}\"\n\n")),
            _ => response("405 No", &[], ""),
        })
    })
    .await;
    let mut limits = steadfast::Limits::default();
    limits.message_bytes = 10_000;
    let _client = soon(Client::connect(&*url).negotiation(OLDER).limits(limits).into_future()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let requests = requests.lock().unwrap();
    let gets = requests.iter().filter(|request| request.method == "GET").count();
    assert!(gets <= 20, "{gets} requests in two seconds");
}
