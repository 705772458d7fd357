//! Tool definitions that a client remembers from lists.

use steadfast::ErrorKind;

use crate::client::manual_server::*;

fn promising(name: &str) -> Value {
    let schema = json!({"type": "object", "required": ["sum"]});
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema}]})
}

/// Whether a call that breaks the promise is noticed, which shows that the client knows the tool.
async fn is_known(client: &Client, server: &mut ManualServer, name: &str) -> bool {
    let call = tokio::spawn(client.call_tool(name, json!({})).into_future());
    server.serve("tools/call", json!({"resultType": "complete", "content": []})).await;
    match soon(call).await.unwrap() {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidOutput, "{error:?}");
            true
        }
    }
}

#[tokio::test]
async fn tool_definitions_are_known_until_the_list_changes() {
    for era in [NegotiationMode::Stateless, HANDSHAKE] {
        let (client, mut server) = ManualServer::connect(era, |connecting| connecting).await;
        assert!(!is_known(&client, &mut server, "add").await);
        let listed = names(&client);
        server.serve("tools/list", promising("add")).await;
        at_once(listed).await;
        assert!(is_known(&client, &mut server, "add").await);
        server.notify("notifications/tools/list_changed", json!({})).await;
        assert!(!is_known(&client, &mut server, "add").await);
    }
}

#[tokio::test]
async fn a_list_response_in_flight_during_a_change_is_not_used() {
    for era in [NegotiationMode::Stateless, HANDSHAKE] {
        let (client, mut server) = ManualServer::connect(era, |connecting| connecting).await;
        let listed = names(&client);
        let request = server.asked("tools/list").await;
        server.notify("notifications/tools/list_changed", json!({})).await;
        server.answer(&request, promising("add")).await;
        assert_eq!(at_once(listed).await, ["add"]);
        assert!(!is_known(&client, &mut server, "add").await);
    }
}

#[tokio::test]
async fn a_result_is_not_checked_against_a_schema_that_changed_during_the_call() {
    let (client, mut server) = ManualServer::connect(HANDSHAKE, |connecting| connecting).await;
    let listed = names(&client);
    server.serve("tools/list", promising("add")).await;
    at_once(listed).await;
    let call = tokio::spawn(client.call_tool("add", json!({})).into_future());
    let request = server.asked("tools/call").await;
    server.notify("notifications/tools/list_changed", json!({})).await;
    server.answer(&request, json!({"content": []})).await;
    soon(call).await.unwrap().unwrap();
}

#[tokio::test]
async fn tool_definitions_are_shared_with_the_cache() {
    let cache = steadfast::client::ResponseCache::new();
    let (one, mut first) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let (two, mut second) = ManualServer::modern(|connecting| connecting.cache(cache.clone())).await;
    let listed = names(&one);
    let mut page = promising("add");
    (page["ttlMs"], page["cacheScope"]) = (json!(3_600_000), json!("public"));
    first.serve("tools/list", page).await;
    at_once(listed).await;
    assert!(!is_known(&two, &mut second, "add").await);
    at_once(names(&two)).await;
    assert!(is_known(&two, &mut second, "add").await);
}
