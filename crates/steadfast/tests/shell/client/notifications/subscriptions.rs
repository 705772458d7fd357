//! Subscriptions of 2026-07-28, over one connection.

use steadfast::client::Change;
use steadfast::{ErrorKind, Revision, SubscriptionFilter};

use crate::client::*;

fn of(id: &Value) -> Value {
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

#[tokio::test]
async fn notifications_are_routed_by_their_subscription_id() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let resource = |uri: &str| SubscriptionFilter::new().with_resource_subscriptions(vec![uri.to_owned()]);
    let (mut one, mut two) = (client.changes(resource("a:1")), client.changes(resource("a:1")));
    let (first, second) = (server.until("subscriptions/listen").await, server.until("subscriptions/listen").await);
    for request in [&second, &first] {
        let params = json!({"notifications": {"resourceSubscriptions": ["a:1"]}, "_meta": of(&request["id"])});
        server.tell("notifications/subscriptions/acknowledged", params).await;
    }
    let updated = |uri: &str, id: &Value| json!({"uri": uri, "_meta": of(id)});
    server.tell("notifications/resources/updated", updated("for:two", &second["id"])).await;
    server.tell("notifications/resources/updated", updated("for:nobody", &json!("unknown"))).await;
    server.tell("notifications/resources/updated", updated("for:one", &first["id"])).await;
    for (changes, uri) in [(&mut one, "for:one"), (&mut two, "for:two")] {
        assert!(matches!(soon(changes.next()).await, Some(Ok(Change::Listening(_)))));
        assert_eq!(soon(changes.next()).await.unwrap().unwrap(), Change::Resource(uri.to_owned()));
    }
    // One that ends does not end the other.
    server.answer(&first, json!({"resultType": "complete", "_meta": of(&first["id"])})).await;
    assert!(soon(one.next()).await.is_none());
    server.tell("notifications/resources/updated", updated("on", &second["id"])).await;
    assert_eq!(soon(two.next()).await.unwrap().unwrap(), Change::Resource("on".to_owned()));
    drop(two);
    let cancelled = server.next().await.unwrap();
    assert_eq!(cancelled["params"]["requestId"], second["id"], "{cancelled}");
}

#[tokio::test]
async fn the_granted_filter_is_reported_to_the_caller() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let wanted = SubscriptionFilter::new().with_tools_list_changed(true).with_prompts_list_changed(true);
    let mut changes = client.changes(wanted);
    let request = server.until("subscriptions/listen").await;
    assert_eq!(request["params"]["notifications"], json!({"toolsListChanged": true, "promptsListChanged": true}));
    let params = json!({"notifications": {"promptsListChanged": true}, "_meta": of(&request["id"])});
    server.tell("notifications/subscriptions/acknowledged", params).await;
    let Some(Ok(Change::Listening(granted))) = soon(changes.next()).await else { panic!("nothing was granted") };
    assert!(granted.prompts() && !granted.tools(), "{granted:?}");
}

/// More changes than a stream holds arrive before the program reads: the oldest are dropped, and never `Change::Listening`,
/// without which all others would be withheld.
#[tokio::test]
async fn a_stream_that_is_not_read_for_long_begins_with_listening_and_has_the_newest_changes() {
    for era in [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_11_25)] {
        let (client, mut server) = RecordingServer::connected(era, |connecting| connecting).await;
        let filter = SubscriptionFilter::new().with_resource_subscriptions(vec!["a:1".to_owned()]);
        let mut changes = client.changes(filter.clone());
        let request = server.next().await.unwrap();
        let meta = if era == NegotiationMode::Stateless {
            let params = json!({"notifications": {"resourceSubscriptions": ["a:1"]}, "_meta": of(&request["id"])});
            server.tell("notifications/subscriptions/acknowledged", params).await;
            of(&request["id"])
        } else {
            server.answer(&request, json!({})).await;
            // The subscription of this one follows the other, which then receives changes.
            let mut second = client.changes(filter);
            let request = server.until("resources/subscribe").await;
            server.answer(&request, json!({})).await;
            soon(second.next()).await.unwrap().unwrap();
            json!({})
        };
        for number in 0..3000 {
            server
                .tell("notifications/resources/updated", json!({"uri": format!("a:1/{number}"), "_meta": meta}))
                .await;
        }
        server.is_quiet(&client).await;
        assert!(matches!(soon(changes.next()).await, Some(Ok(Change::Listening(_)))), "{era:?}");
        let Some(Ok(Change::Resource(first))) = soon(changes.next()).await else { panic!("no change in {era:?}") };
        let first: usize = first.trim_start_matches("a:1/").parse().unwrap();
        assert!(first > 0, "the oldest are dropped in {era:?}");
        for number in first + 1..3000 {
            let change = soon(changes.next()).await.unwrap().unwrap();
            assert_eq!(change, Change::Resource(format!("a:1/{number}")), "{era:?}");
        }
    }
}

/// No later notification could be routed.
#[tokio::test]
async fn a_malformed_acknowledgement_ends_the_stream_with_an_error() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let mut changes = client.changes(SubscriptionFilter::new().with_tools_list_changed(true));
    let request = server.until("subscriptions/listen").await;
    server.tell("notifications/subscriptions/acknowledged", json!({"_meta": of(&request["id"])})).await;
    let error = soon(changes.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(soon(changes.next()).await.is_none());
    assert_eq!(server.until("notifications/cancelled").await["params"]["requestId"], request["id"]);
}
