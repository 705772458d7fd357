//! Negotiation of every revision.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::transport::child::{Child, Command};
use steadfast::{ErrorKind, Revision};

use crate::{echo, server, soon, text};

#[tokio::test]
async fn the_newest_revision_is_negotiated_first() {
    let client = Client::connect(server([echo()])).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert_eq!(client.server().info.as_ref().unwrap().name, "test");
}

#[tokio::test]
async fn every_older_revision_can_be_requested() {
    for revision in Revision::ALL.iter().copied().filter(|revision| !revision.is_stateless()) {
        let client = Client::connect(server([echo()])).negotiation(NegotiationMode::Handshake(revision)).await.unwrap();
        assert_eq!(client.revision(), revision);
        assert_eq!(text(&client.call_tool("echo", json!({"text": "hi"})).await.unwrap()), "hi");
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_of_the_older_revisions_is_detected() {
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

/// As servers are that take nothing before the handshake, and end.
#[tokio::test]
async fn a_process_that_exits_on_the_probe_is_restarted_with_a_handshake() {
    let script = r#"
        read first
        case "$first" in *'"initialize"'*) ;; *) exit 1 ;; esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
        cat > /dev/null
    "#;
    let client = soon(Client::connect(Command::new("sh").arg("-c").arg(script)).into_future()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    soon(client.close()).await;
}

#[tokio::test]
async fn a_process_that_exits_on_the_handshake_too_is_not_restarted_again() {
    let starts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&starts);
    let connecting = Client::connect(move || {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Child::spawn(Command::new("sh").args(["-c", "read first"])))
    });
    let error = soon(connecting.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), starts.load(Ordering::SeqCst)), (ErrorKind::Closed, 2));
}

#[tokio::test]
async fn a_server_that_names_only_older_revisions_gets_their_handshake() {
    let script = r#"
        read probe; echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2024-11-05","2025-06-18"],"capabilities":{}}}'
        read init; echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
        cat > /dev/null
    "#;
    let server = || Command::new("sh").arg("-c").arg(script);
    let client = soon(Client::connect(server()).into_future()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    soon(client.close()).await;
    let error =
        soon(Client::connect(server()).negotiation(NegotiationMode::Stateless).into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("2025-06-18"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_a_server_is_an_error_and_not_a_hang() {
    let error = soon(Client::connect(Command::new("true")).into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(Client::connect(Command::new("/nowhere/at/all")).await.is_err());
}
