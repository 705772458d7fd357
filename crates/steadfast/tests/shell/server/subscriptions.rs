//! Subscriptions (2026-07-28): their first message and their last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listening() -> Value {
    json!({"notifications": {"toolsListChanged": true}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_acknowledgement_is_the_first_message_of_a_subscription() {
    let server = server([]);
    let stop = Arc::new(AtomicBool::new(false));
    let changing = {
        let (server, stop) = (server.clone(), stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                server.add_tool(echo());
                server.remove_tool("echo");
            }
        })
    };
    let mut peer = Peer::modern(&server, json!({}));
    for _ in 0..50 {
        let id = peer.begin("subscriptions/listen", listening()).await;
        // Other subscriptions are notified all the time; this one is acknowledged first.
        let first = loop {
            let line = peer.line().await;
            if line["params"]["_meta"][SUBSCRIPTION] == id {
                break line;
            }
        };
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    }
    stop.store(true, Ordering::SeqCst);
    changing.join().unwrap();
}

#[tokio::test]
async fn a_shutdown_ends_every_stream_with_its_result_first() {
    let server = server([]);
    let (here, there) = memory::pair(1 << 16);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(server.clone().serve(there).shutdown_when(async { _ = stopped.await }).into_future());
    let mut peer = Peer::modern(&server, json!({}));
    peer.raw = RawPeer::new(here);
    for _ in 0..2 {
        peer.begin("subscriptions/listen", listening()).await;
        peer.line().await;
    }
    stop.send(()).unwrap();
    let mut ended = Vec::new();
    let mut cancelled = Vec::new();
    loop {
        let line = peer.line().await;
        if line.is_null() {
            break;
        }
        if line["method"] == "notifications/cancelled" {
            assert!(ended.contains(&line["params"]["requestId"]), "{line} before its result");
            cancelled.push(line["params"]["requestId"].clone());
        } else {
            assert_eq!(line["result"]["resultType"], "complete", "{line}");
            assert_eq!(line["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test", "{line}");
            ended.push(line["id"].clone());
        }
    }
    ended.sort_by_key(Value::as_u64);
    cancelled.sort_by_key(Value::as_u64);
    assert_eq!((ended, cancelled), (vec![json!(1), json!(2)], vec![json!(1), json!(2)]));
}
