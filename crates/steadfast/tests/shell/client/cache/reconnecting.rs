//! After a reconnect nothing cached is used: it may be another server.

use steadfast::LoggingLevel;
use steadfast::client::{ReconnectPolicy, ResponseCache};
use tokio::sync::mpsc;

use crate::client::manual_server::*;

/// A client that reconnects, and its servers, one after the other.
async fn coming_back(
    era: NegotiationMode,
    settings: impl FnOnce(ConnectBuilder) -> ConnectBuilder,
) -> (Client, ManualServer, mpsc::UnboundedReceiver<ManualServer>) {
    let (opened, mut servers) = mpsc::unbounded_channel();
    let open = move || {
        let opened = opened.clone();
        async move {
            let (here, there) = tokio::io::duplex(1 << 20);
            opened.send(ManualServer::new(there)).map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(StreamTransport::duplex(here))
        }
    };
    let connecting =
        settings(Client::connect(open).negotiation(era).reconnect(ReconnectPolicy::default())).into_future();
    let (client, first) = soon(async { tokio::join!(connecting, next(&mut servers)) }).await;
    (client.unwrap(), first, servers)
}

/// The next server, once its client knows what it speaks.
async fn next(servers: &mut mpsc::UnboundedReceiver<ManualServer>) -> ManualServer {
    let mut server = soon(servers.recv()).await.expect("the client comes back");
    server.open().await;
    server
}

#[tokio::test]
async fn the_cache_is_cleared_after_reconnecting() {
    let (client, mut first, mut servers) = coming_back(NegotiationMode::Stateless, |connecting| connecting).await;
    let listed = names(&client);
    let mut page = listing(&["sum"], 3_600_000, "public");
    page["tools"][0]["outputSchema"] = json!({"type": "object"});
    first.serve("tools/list", page).await;
    assert_eq!(at_once(listed).await, ["sum"]);
    drop(first);
    // What it answers would not fit what the other server had promised.
    let call = tokio::spawn(client.call_tool("sum", json!({})).into_future());
    let mut second = next(&mut servers).await;
    second.serve("tools/call", json!({"resultType": "complete", "content": []})).await;
    soon(call).await.unwrap().unwrap();
    let listed = names(&client);
    second.serve("tools/list", listing(&["other"], 3_600_000, "public")).await;
    assert_eq!(at_once(listed).await, ["other"]);
}

#[tokio::test]
async fn a_reconnect_clears_a_shared_cache() {
    let cache = ResponseCache::new();
    let (one, mut first, mut servers) =
        coming_back(NegotiationMode::Stateless, |connecting| connecting.cache(cache.clone())).await;
    let (two, mut other) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let listed = names(&one);
    first.serve("tools/list", listing(&["old"], 3_600_000, "public")).await;
    at_once(listed).await;
    assert_eq!(at_once(names(&two)).await, ["old"]);
    drop(first);
    let call = tokio::spawn(one.call_tool("any", json!({})).into_future());
    let mut second = next(&mut servers).await;
    second.serve("tools/call", json!({"resultType": "complete", "content": []})).await;
    soon(call).await.unwrap().unwrap();
    let listed = names(&two);
    other.serve("tools/list", listing(&["new"], 3_600_000, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
}

#[tokio::test]
async fn log_streams_continue_and_set_level_is_sent_again_after_reconnecting() {
    let (client, mut first, mut servers) = coming_back(HANDSHAKE, |connecting| connecting).await;
    let mut logs = client.logs(LoggingLevel::Notice);
    first.serve("logging/setLevel", json!({})).await;
    first.notify("notifications/message", json!({"level": "error", "data": 1})).await;
    assert_eq!(soon(logs.next()).await.unwrap().unwrap().data, 1);
    drop(first);
    let pinging = client.clone();
    let ping = tokio::spawn(async move { pinging.ping().await });
    let mut second = next(&mut servers).await;
    let request = second.asked("logging/setLevel").await;
    assert_eq!(request["params"]["level"], "notice");
    second.answer(&request, json!({})).await;
    second.serve("ping", json!({})).await;
    soon(ping).await.unwrap().unwrap();
    second.notify("notifications/message", json!({"level": "error", "data": 2})).await;
    assert_eq!(soon(logs.next()).await.unwrap().unwrap().data, 2);
    client.close().await;
    assert!(soon(logs.next()).await.is_none());
}
