//! One request never delays another: blocked threads, blocked workers, floods.

use std::sync::{Arc, Barrier};

use serde_json::json;
use steadfast::Limits;
use steadfast::prelude::*;

use crate::{Signal, echo, server, soon, text};

/// Blocks its thread until it is released.
fn blocker(begun: &Signal, release: &Arc<Barrier>, on_worker: bool) -> ServerTool {
    let (begun, release) = (begun.clone(), Arc::clone(release));
    let block = move || {
        begun.set();
        release.wait();
    };
    if on_worker {
        ServerTool::new("block").handler(move || {
            let block = block.clone();
            async move { block() }
        })
    } else {
        ServerTool::new("block").blocking_handler(block)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_worker_does_not_delay_other_responses() {
    let (begun, release) = (Signal::default(), Arc::new(Barrier::new(2)));
    let timed = ServerTool::new("timed").handler(|| async {
        // Served by the runtime's timer, which the blocked worker may have held.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        "woke"
    });
    let client = Client::connect(server([blocker(&begun, &release, true), echo(), timed])).await.unwrap();
    let blocked = client.call_tool("block", json!({})).start();
    soon(begun.wait()).await;
    for _ in 0..10 {
        assert_eq!(text(&soon(client.call_tool("echo", json!({"text": "on"})).into_future()).await.unwrap()), "on");
        assert_eq!(text(&soon(client.call_tool("timed", json!({})).into_future()).await.unwrap()), "woke");
    }
    release.wait();
    soon(blocked).await.unwrap();
}

#[tokio::test]
async fn blocked_threads_do_not_delay_other_responses() {
    let (begun, release) = (Signal::default(), Arc::new(Barrier::new(65)));
    let client = Client::connect(server([blocker(&begun, &release, false), echo()])).await.unwrap();
    let blocked: Vec<_> = (0..64).map(|_| client.call_tool("block", json!({})).start()).collect();
    assert_eq!(text(&soon(client.call_tool("echo", json!({"text": "on"})).into_future()).await.unwrap()), "on");
    release.wait();
    for call in blocked {
        soon(call).await.unwrap();
    }
}

#[tokio::test]
async fn past_the_limit_requests_are_refused_and_running_ones_continue() {
    let mut limits = Limits::default();
    limits.in_flight = 4;
    let (begun, release) = (Signal::default(), Arc::new(Barrier::new(5)));
    let server =
        Server::builder("test", "1").tool(blocker(&begun, &release, false)).tool(echo()).limits(limits).build();
    let client = Client::connect(server).await.unwrap();
    let blocked: Vec<_> = (0..4).map(|_| client.call_tool("block", json!({})).start()).collect();
    let error = soon(client.call_tool("echo", json!({"text": "no"})).into_future()).await.unwrap_err();
    assert!(error.to_string().contains("limit"), "{error}");
    release.wait();
    for call in blocked {
        soon(call).await.unwrap();
    }
    // The places are free again once the executions have really ended.
    soon(async { while client.call_tool("echo", json!({"text": "yes"})).await.is_err() {} }).await;
}

#[tokio::test]
async fn more_responses_than_the_outbox_holds_all_arrive() {
    let mut limits = Limits::default();
    limits.outbox_bytes = 64 * 1024;
    let large = ServerTool::new("large").handler(|| async { "x".repeat(40_000) });
    let server = Server::builder("test", "1").tool(large).limits(limits).build();
    let client = Client::connect(server).await.unwrap();
    let calls: Vec<_> = (0..200).map(|_| client.call_tool("large", json!({})).start()).collect();
    for call in calls {
        assert_eq!(text(&soon(call).await.unwrap()).len(), 40_000);
    }
}
