//! Every revision, negotiated and spoken.

use serde_json::json;
use steadfast::client::Era;
use steadfast::prelude::*;
use steadfast::transport::child::Command;
use steadfast::{ErrorKind, Revision};

use super::{echo, server, soon, text};

#[tokio::test]
async fn the_newest_revision_is_found_first() {
    let client = Client::connect(server([echo()])).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert_eq!(client.server().info.as_ref().unwrap().name, "test");
}

#[tokio::test]
async fn every_older_revision_can_be_asked_for() {
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
        let client = Client::connect(server([echo()])).era(Era::Handshake(revision)).await.unwrap();
        assert_eq!(client.revision(), revision);
        assert_eq!(text(&client.call_tool("echo", json!({"text": "hi"})).await.unwrap()), "hi");
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_of_the_older_revisions_is_found_too() {
    // Refuses what it does not know, answers initialize, and then calls nothing by its name.
    let script = r#"
        read probe; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
        read init; echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}'
        read initialized
        read list; echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}'
        cat > /dev/null
    "#;
    let client = soon(Client::connect(Command::new("sh").arg("-c").arg(script)).into_future()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_03_26);
    assert_eq!(client.list_tools().await.unwrap().len(), 0);
    soon(client.close()).await;
}

#[tokio::test]
async fn a_program_that_is_no_server_is_an_error_and_not_a_hang() {
    let error = soon(Client::connect(Command::new("true")).into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(Client::connect(Command::new("/nowhere/at/all")).await.is_err());
}
