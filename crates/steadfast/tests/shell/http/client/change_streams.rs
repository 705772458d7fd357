//! Change streams over HTTP.

use serde_json::{Value, json};
use steadfast::SubscriptionFilter;
use steadfast::client::{Change, NegotiationMode};

use super::*;
use crate::support::resident;

/// L5: a change stream that starts after the connection was closed ends.
#[tokio::test]
async fn a_change_stream_of_a_closed_connection_ends() {
    let (url, _) = raw(|_, request| older(request, || response("404 Not Found", &[], ""))).await;
    let connecting = Client::connect(&*url).negotiation(OLDER).reconnect(steadfast::client::ReconnectPolicy::never());
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
async fn listening_is_the_first_item_of_a_change_stream() {
    let (url, _) = raw(|_, request| {
        older(request, || {
            if request.method == "GET" {
                return response("405 No", &[], "");
            }
            let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {}});
            events(&format!("data: {told}\n\ndata: {answer}\n\n"))
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    let mut changes = client.changes(subscriptions(&["a:1"]));
    let first = soon(changes.next()).await.unwrap().unwrap();
    assert!(matches!(first, Change::Listening(_)), "{first:?}");
}

/// A dropped change stream leaves no subscription.
#[tokio::test]
async fn a_change_stream_dropped_at_once_leaves_no_subscription() {
    let (url, requests) = raw(|_, request| {
        older(request, || {
            if request.method == "GET" { response("405 No", &[], "") } else { json_answer(request, &json!({})) }
        })
    })
    .await;
    let client = connect(&url, OLDER).await;
    drop(client.changes(subscriptions(&["a:1", "a:2"])));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = requests.lock().unwrap();
    for uri in ["a:1", "a:2"] {
        let of = requests.iter().filter(|request| request.body["params"]["uri"] == uri);
        let methods: Vec<_> = of.map(|request| request.body["method"].as_str().unwrap_or_default()).collect();
        assert_ne!(methods.last(), Some(&"resources/subscribe"), "{uri}: {methods:?}");
    }
}

/// L7: what a subscriber has not looked at is bounded in bytes, not only in number.
#[tokio::test]
async fn unread_changes_are_bounded_in_bytes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sent = Signal::default();
    let done = sent.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(request) = read(&mut stream).await else { continue };
            if !request.is("subscriptions/listen") {
                let _ = stream.write_all(&modern(&request, Vec::new)).await;
                continue;
            }
            let meta = json!({"io.modelcontextprotocol/subscriptionId": request.body["id"]});
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
    let client = connect(&url, NegotiationMode::Stateless).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    soon(changes.next()).await.unwrap().unwrap();
    let before = resident();
    soon(sent.wait()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = resident().saturating_sub(before);
    assert!(grown >> 20 < 128, "{} MiB are held for somebody who does not look", grown >> 20);
}
