//! Change streams.

use serde_json::json;
use steadfast::client::{Change, ChangeStream, NegotiationMode};
use steadfast::prelude::*;
use steadfast::server::ServerResource;
use steadfast::transport::memory;
use steadfast::{Revision, SubscriptionFilter};

use crate::{echo, soon};

const ERAS: [NegotiationMode; 2] = [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_11_25)];

fn offering() -> Server {
    let resource = |uri: &str| ServerResource::new(uri, "r").text("");
    Server::builder("changing", "1.0.0").tool(echo()).resource(resource("a:1")).resource(resource("a:2")).build()
}

fn wanted() -> SubscriptionFilter {
    SubscriptionFilter::new().with_tools_list_changed(true).with_resource_subscriptions(vec!["a:1".to_owned()])
}

async fn next(changes: &mut ChangeStream) -> Change {
    soon(changes.next()).await.expect("it goes on").expect("it is no error")
}

#[tokio::test]
async fn a_change_stream_gets_only_what_it_subscribed_to() {
    for era in ERAS {
        let server = offering();
        let client = Client::connect(server.clone()).negotiation(era).await.unwrap();
        let mut changes = client.changes(wanted());
        assert!(matches!(next(&mut changes).await, Change::Listening(_)), "{era:?}");
        server.resource_updated("a:2");
        server.resource_updated("a:1");
        assert_eq!(next(&mut changes).await, Change::Resource("a:1".to_owned()), "{era:?}");
        server.add_tool(ServerTool::new("new").handler(|| async {}));
        assert_eq!(next(&mut changes).await, Change::Tools, "{era:?}");
    }
}

#[tokio::test]
async fn several_change_streams_each_get_their_own_changes() {
    for era in ERAS {
        let server = offering();
        let client = Client::connect(server.clone()).negotiation(era).await.unwrap();
        let of = |uri: &str| SubscriptionFilter::new().with_resource_subscriptions(vec![uri.to_owned()]);
        let (mut one, mut two) = (client.changes(of("a:1")), client.changes(of("a:2")));
        next(&mut one).await;
        next(&mut two).await;
        server.resource_updated("a:2");
        server.resource_updated("a:1");
        assert_eq!(next(&mut one).await, Change::Resource("a:1".to_owned()), "{era:?}");
        assert_eq!(next(&mut two).await, Change::Resource("a:2".to_owned()), "{era:?}");
        drop(one);
        server.resource_updated("a:2");
        assert_eq!(next(&mut two).await, Change::Resource("a:2".to_owned()), "{era:?}");
        client.call_tool("echo", json!({"text": ""})).await.unwrap();
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_connection() {
    for era in ERAS {
        let (here, there) = memory::pair(1024);
        let served = tokio::spawn(offering().serve(there).into_future());
        let client = Client::connect(here).negotiation(era).await.unwrap();
        let mut changes = client.changes(wanted());
        next(&mut changes).await;
        served.abort();
        let end = soon(changes.next()).await;
        // A server of 2026-07-28 may have ended the stream before it closed. For older ones the stream ends with an error.
        assert!(end.map_or(era == NegotiationMode::Stateless, |end| end.is_err()), "{era:?}");
        assert!(soon(changes.next()).await.is_none(), "{era:?}");
    }
}

#[tokio::test]
async fn subscribing_to_a_server_without_notifications_is_an_error_of_the_stream() {
    let silent = Server::builder("silent", "1.0.0").tool(echo()).build();
    let client = Client::connect(silent).negotiation(ERAS[1]).await.unwrap();
    let mut changes = client.changes(wanted());
    assert!(soon(changes.next()).await.unwrap().is_err());
}

#[tokio::test]
async fn a_change_stream_on_a_closed_connection_ends_at_once() {
    for era in ERAS {
        let client = Client::connect(offering()).negotiation(era).await.unwrap();
        let other = client.clone();
        soon(client.close()).await;
        let mut changes = other.changes(SubscriptionFilter::new().with_tools_list_changed(true));
        soon(async { while let Some(Ok(_)) = changes.next().await {} }).await;
    }
}

#[tokio::test]
async fn dropping_a_change_stream_unsubscribes() {
    let (here, there) = memory::pair(1 << 16);
    let server = offering();
    let watched = server.clone();
    tokio::spawn(server.serve(there).into_future());
    let client = Client::connect(here).negotiation(ERAS[1]).await.unwrap();
    let (mut one, mut two) = (client.changes(wanted()), client.changes(wanted()));
    next(&mut one).await;
    next(&mut two).await;
    drop(one);
    // The other still wants it.
    client.ping().await.unwrap();
    watched.resource_updated("a:1");
    assert_eq!(next(&mut two).await, Change::Resource("a:1".to_owned()));
}
