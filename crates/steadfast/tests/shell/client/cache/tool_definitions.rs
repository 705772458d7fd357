//! What a client knows of the tools that were listed.

use steadfast::ErrorKind;

use crate::client::puppet::*;

fn promising(name: &str) -> Value {
    let schema = json!({"type": "object", "required": ["sum"]});
    json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [{"name": name, "inputSchema": {"type": "object"}, "outputSchema": schema}]})
}

/// Whether a call that breaks the promise is noticed, which shows that the client knows the tool.
async fn is_known(client: &Client, puppet: &mut Puppet, name: &str) -> bool {
    let call = tokio::spawn(client.call_tool(name, json!({})).into_future());
    puppet.serve("tools/call", json!({"resultType": "complete", "content": []})).await;
    match soon(call).await.unwrap() {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidOutput, "{error:?}");
            true
        }
    }
}

#[tokio::test]
async fn what_was_listed_is_known_until_the_list_changes() {
    for era in [Era::Modern, HANDSHAKE] {
        let (client, mut puppet) = Puppet::connect(era, |connecting| connecting).await;
        assert!(!is_known(&client, &mut puppet, "add").await);
        let listed = names(&client);
        puppet.serve("tools/list", promising("add")).await;
        at_once(listed).await;
        assert!(is_known(&client, &mut puppet, "add").await);
        puppet.notify("notifications/tools/list_changed", json!({})).await;
        assert!(!is_known(&client, &mut puppet, "add").await);
    }
}

#[tokio::test]
async fn a_listing_that_was_on_its_way_when_the_list_changed_is_not_believed() {
    for era in [Era::Modern, HANDSHAKE] {
        let (client, mut puppet) = Puppet::connect(era, |connecting| connecting).await;
        let listed = names(&client);
        let request = puppet.asked("tools/list").await;
        puppet.notify("notifications/tools/list_changed", json!({})).await;
        puppet.answer(&request, promising("add")).await;
        assert_eq!(at_once(listed).await, ["add"]);
        assert!(!is_known(&client, &mut puppet, "add").await);
    }
}

#[tokio::test]
async fn a_tool_that_changed_while_it_was_called_is_not_held_to_what_it_said_before() {
    let (client, mut puppet) = Puppet::connect(HANDSHAKE, |connecting| connecting).await;
    let listed = names(&client);
    puppet.serve("tools/list", promising("add")).await;
    at_once(listed).await;
    let call = tokio::spawn(client.call_tool("add", json!({})).into_future());
    let request = puppet.asked("tools/call").await;
    puppet.notify("notifications/tools/list_changed", json!({})).await;
    puppet.answer(&request, json!({"content": []})).await;
    soon(call).await.unwrap().unwrap();
}

#[tokio::test]
async fn tools_that_another_client_has_listed_are_known_to_those_who_share_its_cache() {
    let cache = steadfast::client::ResponseCache::new();
    let (one, mut first) = Puppet::modern(|connecting| connecting.cache(cache.clone())).await;
    let (two, mut second) = Puppet::modern(|connecting| connecting.cache(cache.clone())).await;
    let listed = names(&one);
    let mut page = promising("add");
    (page["ttlMs"], page["cacheScope"]) = (json!(3_600_000), json!("public"));
    first.serve("tools/list", page).await;
    at_once(listed).await;
    assert!(!is_known(&two, &mut second, "add").await);
    at_once(names(&two)).await;
    assert!(is_known(&two, &mut second, "add").await);
}
