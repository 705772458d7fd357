//! Pings that a server sends by itself.

use super::*;

fn pinged(every: Duration) -> Raw {
    let (here, there) = memory::pair(1 << 16);
    tokio::spawn(server([echo()]).serve(there).ping_every(every).into_future());
    Raw::new(here)
}

#[tokio::test]
async fn a_peer_is_pinged_at_the_interval_that_was_set_and_given_up_when_it_does_not_answer() {
    let heard = Heard::default();
    let _guard = tracing::subscriber::set_default(heard.clone());
    let mut raw = pinged(Duration::from_millis(20));
    soon(raw.open("2025-11-25")).await;
    for _ in 0..3 {
        let ping = soon(raw.line()).await.expect("the connection goes on while pings are answered");
        assert_eq!(ping["method"], "ping", "{ping}");
        raw.send(&json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}})).await;
    }
    // An error is a sign of life too.
    let ping = soon(raw.line()).await.unwrap();
    raw.send(&json!({"jsonrpc": "2.0", "id": ping["id"], "error": {"code": -32601, "message": "no"}})).await;
    assert!(!heard.text().contains("ping"), "{}", heard.text());
    // This one is not answered.
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "ping");
    while soon(raw.line()).await.is_some() {}
    assert!(heard.text().contains("a ping was not answered"), "{}", heard.text());
}

#[tokio::test]
async fn peers_of_a_revision_without_pings_are_not_pinged() {
    let mut peer = Peer::modern(&server([]), json!({}));
    peer.raw = pinged(Duration::from_millis(1));
    for _ in 0..200 {
        peer.ask("tools/list", json!({})).await;
        assert!(peer.before.is_empty(), "{:?}", peer.before);
    }
}
