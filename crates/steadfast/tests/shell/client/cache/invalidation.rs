//! Changes invalidate cached results, in whatever order messages arrive.

use steadfast::SubscriptionFilter;
use steadfast::client::{Change, ChangeStream};

use crate::client::manual_server::*;

const HOUR: u64 = 3_600_000;

/// A stream of changes, and the id under which the server tells of them.
async fn listening(client: &Client, server: &mut ManualServer) -> (ChangeStream, Value) {
    let filter = SubscriptionFilter::new()
        .with_tools_list_changed(true)
        .with_resource_subscriptions(vec!["a:1".to_owned(), "a:2".to_owned()]);
    let mut changes = client.changes(filter.clone());
    // It is requested when it is first polled, or before.
    let heard = tokio::spawn(async move {
        let heard = changes.next().await.unwrap().unwrap();
        assert!(matches!(heard, Change::Listening(_)));
        changes
    });
    let request = server.asked("subscriptions/listen").await;
    let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": request["id"]},
        "notifications": serde_json::to_value(filter).unwrap()});
    server.notify("notifications/subscriptions/acknowledged", params).await;
    (soon(heard).await.unwrap(), request["id"].clone())
}

async fn tell(server: &mut ManualServer, id: &Value, method: &str, mut params: Value) {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    server.notify(method, params).await;
}

const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCE: &str = "notifications/resources/updated";

/// Waits until all that the server has sent so far has arrived.
async fn settle(client: &Client, server: &mut ManualServer) {
    let asked = tokio::spawn(client.complete(steadfast::Reference::prompt("p"), "a", "").into_future());
    server.serve("completion/complete", json!({"resultType": "complete", "completion": {"values": []}})).await;
    soon(asked).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_unread_change_invalidates_a_cached_list() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (_changes, id) = listening(&client, &mut server).await;
    let listed = names(&client);
    server.serve("tools/list", listing(&["old"], HOUR, "public")).await;
    at_once(listed).await;
    tell(&mut server, &id, TOOLS, json!({})).await;
    settle(&client, &mut server).await;
    let listed = names(&client);
    server.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
    assert_eq!(at_once(names(&client)).await, ["new"]);
}

#[tokio::test]
async fn a_response_in_flight_during_a_change_is_not_cached() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (_changes, id) = listening(&client, &mut server).await;
    let listed = names(&client);
    let request = server.asked("tools/list").await;
    tell(&mut server, &id, TOOLS, json!({})).await;
    server.answer(&request, listing(&["old"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["old"]);
    let listed = names(&client);
    server.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
}

#[tokio::test]
async fn an_unread_response_is_not_cached_after_a_change() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (_changes, id) = listening(&client, &mut server).await;
    let unread = client.read_resource("a:1").start();
    server.serve("resources/read", contents("old", HOUR)).await;
    tell(&mut server, &id, RESOURCE, json!({"uri": "a:1"})).await;
    settle(&client, &mut server).await;
    soon(unread).await.unwrap();
    let again = read(&client, "a:1");
    server.serve("resources/read", contents("new", HOUR)).await;
    assert_eq!(at_once(again).await, "new");
}

#[tokio::test]
async fn a_changed_resource_invalidates_only_its_own_entry() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (_changes, id) = listening(&client, &mut server).await;
    for uri in ["a:1", "a:2"] {
        let reading = read(&client, uri);
        server.serve("resources/read", contents("old", HOUR)).await;
        at_once(reading).await;
    }
    let listed = names(&client);
    server.serve("tools/list", listing(&["t"], HOUR, "public")).await;
    at_once(listed).await;
    tell(&mut server, &id, RESOURCE, json!({"uri": "a:2"})).await;
    settle(&client, &mut server).await;
    assert_eq!(at_once(read(&client, "a:1")).await, "old");
    assert_eq!(at_once(names(&client)).await, ["t"]);
    let reading = read(&client, "a:2");
    server.serve("resources/read", contents("new", HOUR)).await;
    assert_eq!(at_once(reading).await, "new");
}

#[tokio::test]
async fn a_change_invalidates_entries_of_all_clients_that_share_the_cache() {
    let cache = steadfast::client::ResponseCache::new();
    let (one, mut first) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let (two, mut second) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let (_changes, id) = listening(&one, &mut first).await;
    // The other client's list is in flight when the change arrives.
    let listed = names(&two);
    let request = second.asked("tools/list").await;
    tell(&mut first, &id, TOOLS, json!({})).await;
    settle(&one, &mut first).await;
    second.answer(&request, listing(&["old"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["old"]);
    let listed = names(&one);
    first.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
    assert_eq!(at_once(names(&two)).await, ["new"]);
}

#[tokio::test]
async fn subscribing_invalidates_cached_entries() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let listed = names(&client);
    server.serve("tools/list", listing(&["old"], HOUR, "public")).await;
    at_once(listed).await;
    for uri in ["a:1", "a:3"] {
        let reading = read(&client, uri);
        server.serve("resources/read", contents("old", HOUR)).await;
        at_once(reading).await;
    }
    let (_changes, _) = listening(&client, &mut server).await;
    let listed = names(&client);
    server.serve("tools/list", listing(&["new"], HOUR, "public")).await;
    assert_eq!(at_once(listed).await, ["new"]);
    let reading = read(&client, "a:1");
    server.serve("resources/read", contents("new", HOUR)).await;
    assert_eq!(at_once(reading).await, "new");
    // Nobody listens to that one.
    assert_eq!(at_once(read(&client, "a:3")).await, "old");
}
