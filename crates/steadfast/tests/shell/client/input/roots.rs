//! Roots.

use steadfast::{ClientCapabilities, ErrorKind, ListRootsResult, Root};

use crate::client::*;

async fn with_roots(era: NegotiationMode, uri: &'static str) -> (Client, RecordingServer) {
    RecordingServer::connected(era, move |connecting| {
        connecting
            .capabilities(ClientCapabilities::new().with_roots(true))
            .on_roots(move |_| async move { Ok(ListRootsResult::new(vec![Root::new(uri)])) })
    })
    .await
}

#[tokio::test]
async fn roots_must_be_file_uris() {
    let (_client, mut server) = with_roots(OLDER, "file:///home/me").await;
    assert_eq!(server.ask("roots/list", json!({})).await["result"]["roots"], json!([{"uri": "file:///home/me"}]));
    for uri in ["https://example.org/", "/home/me", ""] {
        let (_client, mut server) = with_roots(OLDER, uri).await;
        let answer = server.ask("roots/list", json!({})).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let (client, mut server) = with_roots(NegotiationMode::Stateless, uri).await;
        let asking = async {
            let call = server.until("tools/call").await;
            let asked = json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
            server.answer(&call, asked).await;
        };
        let error = with(client.call_tool("t", json!({})).into_future(), asking).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unanswered, "{error:?}");
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn root_changes_are_notified_where_declared() {
    let (client, mut server) = with_roots(OLDER, "file:///a").await;
    client.roots_changed();
    let told = server.next().await.unwrap();
    assert_eq!((&told["method"], told.get("id")), (&json!("notifications/roots/list_changed"), None));
    // It was not declared, or there is no such notification.
    let undeclared = |connecting: ConnectBuilder| connecting.on_roots(|_| async { Ok(ListRootsResult::default()) });
    for (client, mut server) in
        [RecordingServer::connected(OLDER, undeclared).await, with_roots(NegotiationMode::Stateless, "file:///a").await]
    {
        client.roots_changed();
        server.is_quiet(&client).await;
    }
}

#[tokio::test]
async fn roots_without_a_handler_are_method_not_found_and_failures_internal_errors() {
    let (_client, mut server) = RecordingServer::connected(OLDER, |connecting| connecting).await;
    assert_eq!(server.ask("roots/list", json!({})).await["error"]["code"], -32601);
    let fails =
        |connecting: ConnectBuilder| connecting.on_roots(|_| async { Err(Error::internal("the disk is gone")) });
    let (_client, mut server) = RecordingServer::connected(OLDER, fails).await;
    assert_eq!(server.ask("roots/list", json!({})).await["error"]["code"], -32603);
    let panics = |connecting: ConnectBuilder| connecting.on_roots(|_| async { panic!("on purpose: a secret") });
    let (_client, mut server) = RecordingServer::connected(OLDER, panics).await;
    let answer = server.ask("roots/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32603);
    assert!(!answer.to_string().contains("secret"), "{answer}");
}

#[tokio::test]
async fn a_ping_gets_an_empty_result_while_a_handler_runs() {
    let waits = |connecting: ConnectBuilder| connecting.on_roots(|_| std::future::pending());
    let (_client, mut server) = RecordingServer::connected(OLDER, waits).await;
    server.raw.send(&json!({"jsonrpc": "2.0", "id": "slow", "method": "roots/list"})).await;
    assert_eq!(server.ask("ping", json!({})).await["result"], json!({}));
}
