//! Pings that a server sends, with a manual clock.

use super::*;
use crate::support::{EVERY, ManualClock};

/// A server that sends pings, driven by a manual clock.
fn pinging() -> (RawPeer, ManualClock) {
    let clock = ManualClock::new();
    let (here, there) = memory::pair(1 << 16);
    let serving = server([echo()]).serve(there).ping_interval(EVERY).runtime(Arc::new(clock.clone()));
    tokio::spawn(serving.into_future());
    (RawPeer::new(here), clock)
}

#[tokio::test]
async fn a_client_is_pinged_at_the_interval_and_dropped_without_a_response() {
    let heard = LogLines::default();
    let _guard = tracing::subscriber::set_default(heard.clone());
    let (mut raw, clock) = pinging();
    soon(raw.open("2025-11-25")).await;
    // A result or an error: both are signs of life.
    for answer in [json!({"result": {}}), json!({"error": {"code": -32601, "message": "no"}}), json!({"result": {}})] {
        clock.beat(false).await;
        let ping = soon(raw.line()).await.expect("the connection goes on while pings are answered");
        assert_eq!(ping["method"], "ping", "{ping}");
        let mut message = json!({"jsonrpc": "2.0", "id": ping["id"]});
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        raw.send(&message).await;
    }
    clock.beat(false).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "ping");
    assert!(!heard.text().contains("ping"), "{}", heard.text());
    // This one is not answered.
    clock.beat(true).await;
    while soon(raw.line()).await.is_some() {}
    assert!(heard.text().contains("ping timed out"), "{}", heard.text());
}

#[tokio::test]
async fn no_ping_is_sent_in_a_revision_without_pings() {
    let (raw, clock) = pinging();
    let mut peer = Peer::modern(&server([]), json!({}));
    peer.raw = raw;
    for _ in 0..5 {
        clock.beat(false).await;
        peer.ask("tools/list", json!({})).await;
        assert!(peer.before.is_empty(), "{:?}", peer.before);
    }
}
