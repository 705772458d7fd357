//! Floods of notifications that are not in the specification, and peers that do not read them.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::model::Notification;
use steadfast::prelude::*;
use steadfast::transport::memory;
use steadfast::{Limits, Method, Revision};
use tokio::sync::mpsc;

use crate::support::RawPeer;
use crate::support::{alone, resident};
use crate::{echo, soon, within};

enum Announce {}
impl Notification for Announce {
    const METHOD: Method = Method::vendor_notification("notifications/acme/number");
    type Params = Blob;
}
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Blob {
    text: String,
}
fn blob(bytes: usize) -> Blob {
    Blob { text: "x".repeat(bytes) }
}
fn note() -> String {
    json!({"jsonrpc":"2.0","method":"notifications/acme/number","params":{"text":""}}).to_string() + "\n"
}

#[tokio::test]
async fn a_burst_is_not_lost_although_the_server_reads() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let server = Server::builder("s", "1")
        .on_notification::<Announce>(move |_, _| {
            sender.send(()).unwrap();
            async {}
        })
        .build();
    let client = Client::connect(server).await.unwrap();
    let accepted = (0..500).filter(|_| client.notify::<Announce>(&blob(1)).is_ok()).count();
    let mut seen = 0;
    while seen < accepted && within(2, received.recv()).await.is_some() {
        seen += 1;
    }
    assert_eq!(seen, accepted, "notify said Ok");
}

#[tokio::test]
async fn a_client_reads_although_its_notifications_are_not_read() {
    let (here, there) = memory::pair(1024);
    let mut peer = RawPeer::new(there);
    let mut limits = Limits::default();
    limits.outbox_bytes = 16 << 10;
    let connecting =
        Client::connect(here).limits(limits).negotiation(NegotiationMode::Handshake(Revision::V2025_11_25));
    let connecting = tokio::spawn(connecting.into_future());
    let init = soon(peer.line()).await.unwrap();
    peer.send(&json!({"jsonrpc":"2.0","id":init["id"],"result":{"protocolVersion":"2025-11-25","capabilities":{},
        "serverInfo":{"name":"s","version":"1"}}}))
        .await;
    soon(peer.line()).await.unwrap();
    let client = soon(connecting).await.unwrap().unwrap();
    for _ in 0..4 {
        client.notify::<Announce>(&blob(64 << 10)).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let flood = note().repeat(1_000);
    assert!(within(5, peer.write(flood.as_bytes())).await.is_some(), "the client has stopped reading");
}

#[tokio::test]
async fn a_flood_of_notifications_does_not_delay_a_request() {
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let server = Server::builder("s", "1")
        .tool(echo())
        .on_notification::<Announce>(move |_, _| {
            let count = Arc::clone(&count);
            async move {
                std::thread::sleep(Duration::from_millis(2));
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build();
    let (here, there) = memory::pair(1 << 20);
    tokio::spawn(server.serve(there).into_future());
    let mut peer = RawPeer::new(here);
    peer.open("2025-11-25").await;
    let call = json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}});
    peer.write(format!("{}{call}\n", note().repeat(800)).as_bytes()).await;
    soon(peer.line()).await.unwrap();
    let before = handled.load(Ordering::SeqCst);
    assert!(before < 400, "{before} notifications were handled before the request was answered");
}

#[tokio::test]
async fn waiting_notifications_do_not_copy_the_name_of_the_client() {
    if !alone("server::vendor_notifications::waiting_notifications_do_not_copy_the_name_of_the_client") {
        return;
    }
    let server = Server::builder("s", "1").on_notification::<Announce>(|_, _| std::future::pending()).build();
    let (here, there) = memory::pair(1 << 20);
    tokio::spawn(server.serve(there).into_future());
    let mut peer = RawPeer::new(here);
    peer.send(&json!({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"c".repeat(512 << 10),"version":"1"}}}))
        .await;
    soon(peer.line()).await.unwrap();
    peer.send(&json!({"jsonrpc":"2.0","method":"notifications/initialized"})).await;
    let before = resident();
    peer.write(note().repeat(1_000).as_bytes()).await;
    peer.send(&json!({"jsonrpc":"2.0","id":2,"method":"ping"})).await;
    soon(peer.line()).await.unwrap();
    let grown = resident().saturating_sub(before) >> 20;
    assert!(grown < 32, "{grown} MiB for 80 kB of notifications");
}
