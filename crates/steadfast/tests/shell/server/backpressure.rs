//! Output that the peer does not read: it is bounded, and neither side waits for the other for ever.
#![allow(clippy::format_collect, clippy::format_push_string, reason = "plain is better than fast in a test")]

use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use steadfast::transport::memory;
use steadfast::{JsonObject, Limits};

use crate::support::{RawPeer, alone, resident, tool_call};
use crate::{Signal, echo, forever, server, text, within};

fn served(server: Server, capacity: usize) -> RawPeer {
    let (here, there) = memory::pair(capacity);
    tokio::spawn(server.serve(there).into_future());
    RawPeer::new(here)
}

fn small_outbox() -> Limits {
    let mut limits = Limits::default();
    limits.outbox_bytes = 64 * 1024;
    limits.in_flight_bytes = 8 << 20;
    limits
}

/// Answers of an open batch fill the room that its other members wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_responses_larger_than_the_outbox_is_answered() {
    let large = ServerTool::new("large").handler(|| async { "x".repeat(20_000) });
    let server = Server::builder("test", "1").tool(large).limits(small_outbox()).build();
    let mut peer = served(server, 4096);
    peer.open("2025-03-26").await;
    let batch: Vec<_> = (0..20).map(|id| tool_call(id, "large")).collect();
    peer.send(&json!(batch)).await;
    let answers = within(5, peer.line()).await.expect("the batch was never answered").unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 20);
}

/// A slow member of a batch delays only that array.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_slow_member_leaves_the_connection_alive() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let large = ServerTool::new("large").handler(|| async { "x".repeat(70_000) });
    let server =
        Server::builder("test", "1").tool(large).tool(forever(&begun, &dropped)).limits(small_outbox()).build();
    let mut peer = served(server, 4096);
    peer.open("2025-03-26").await;
    peer.send(&json!([tool_call(1, "large"), tool_call(2, "forever")])).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = within(5, async {
        peer.send(&json!({"jsonrpc":"2.0","id":"p","method":"ping"})).await;
        peer.line().await
    });
    assert!(answer.await.is_some(), "the connection is deaf");
}

/// A client whose own calls fill its outbox stops reading; so does the server; both wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sides_with_full_outboxes_do_not_deadlock() {
    let (here, there) = memory::pair(1024);
    let server = Server::builder("test", "1").tool(echo()).limits(small_outbox()).build();
    tokio::spawn(server.serve(there).into_future());
    let era = steadfast::client::NegotiationMode::Handshake(steadfast::Revision::V2025_11_25);
    let client = Client::connect(here).negotiation(era).limits(small_outbox()).await.unwrap();
    let pings = (0..8000)
        .map(|_| client.call::<steadfast::model::request::Ping>(steadfast::model::EmptyParams::default()).start());
    let pings: Vec<_> = pings.collect();
    let all = async {
        for ping in pings {
            ping.await.unwrap();
        }
    };
    within(20, all).await.expect("both sides wait for each other to read");
}

/// The same with the limits as they are, and calls that carry something.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_calls_with_large_results_all_end() {
    let (here, there) = memory::pair(65536);
    tokio::spawn(server([echo()]).serve(there).into_future());
    let client = Client::connect(here).await.unwrap();
    let long = "x".repeat(200_000);
    let calls: Vec<_> = (0..300).map(|_| client.call_tool("echo", json!({ "text": long })).start()).collect();
    let all = async {
        for call in calls {
            assert_eq!(text(&call.await.unwrap()).len(), 200_000);
        }
    };
    within(40, all).await.expect("both sides wait for each other to read");
}

/// Plain functions do not wait for room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_blocking_handlers_are_bounded() {
    if !alone("server::backpressure::results_of_blocking_handlers_are_bounded") {
        return;
    }
    let grown = flood(ServerTool::new("large").blocking_handler(|| {
        std::thread::sleep(Duration::from_millis(200));
        "x".repeat(64 * 1024)
    }))
    .await;
    assert!(grown < 64 << 20, "{} MiB are held for a peer that reads nothing; the outbox has 64 KiB", grown >> 20);
}

/// Results of handlers that all began while there was room are parked, up to a bound.
#[tokio::test]
async fn results_that_wait_for_the_outbox_are_bounded() {
    if !alone("server::backpressure::results_that_wait_for_the_outbox_are_bounded") {
        return;
    }
    let grown = flood(ServerTool::new("large").handler(|| async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        "x".repeat(64 * 1024)
    }))
    .await;
    assert!(grown < 64 << 20, "{} MiB are held for a peer that reads nothing; the outbox has 64 KiB", grown >> 20);
}

/// What 3,000 calls hold whose answers are not read.
async fn flood(tool: ServerTool) -> usize {
    let server = Server::builder("test", "1").tool(tool).limits(small_outbox()).build();
    let mut peer = served(server, 1 << 20);
    peer.open("2025-11-25").await;
    let before = resident();
    let calls: String = (0..3000).map(|id| format!("{}\n", tool_call(id, "large"))).collect();
    let _ = within(3, peer.write(calls.as_bytes())).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    resident().saturating_sub(before)
}

/// A request that was cancelled while it waited for room leaves its waker, and its task, in the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_cancelled_while_they_wait_for_the_outbox_leave_nothing() {
    if !alone("server::backpressure::requests_cancelled_while_they_wait_for_the_outbox_leave_nothing") {
        return;
    }
    let large = ServerTool::new("large").handler(|| async { "x".repeat(400_000) });
    let server = Server::builder("test", "1").tool(large).tool(echo()).limits(small_outbox()).build();
    let mut peer = served(server, 65536);
    peer.open("2025-11-25").await;
    peer.send(&tool_call(0, "large")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = resident();
    for chunk in 0..50_usize {
        let mut lines = String::new();
        for id in 0..1000 {
            let id = 1000 + chunk * 1000 + id;
            lines += &format!("{}\n", tool_call(id, "echo"));
            lines += &format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
            );
        }
        if within(10, peer.write(lines.as_bytes())).await.is_none() {
            // Input is not read while output waits: that bounds it too.
            return;
        }
    }
    // What they held goes when the workers have seen to it, which takes a busy machine a while.
    let grown = || resident().saturating_sub(before);
    let gone = within(60, async {
        while grown() >= 32 << 20 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(gone.await.is_some(), "100,000 cancelled requests hold {} MiB", grown() >> 20);
}

/// All requests of one read are answered before anything is written, whatever the size of the responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_lists_are_bounded() {
    if !alone("server::backpressure::unread_lists_are_bounded") {
        return;
    }
    let tools = (0..200).map(|number| {
        ServerTool::new(format!("tool{number}")).description("d".repeat(1000)).handler(|_: JsonObject| async { "" })
    });
    let server = Server::builder("test", "1").tools(tools).build();
    let mut peer = served(server, 1 << 20);
    peer.open("2025-11-25").await;
    let before = resident();
    let lines: String =
        (0..1200).map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n")).collect();
    peer.write(lines.as_bytes()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} KiB of requests hold {} MiB; the outbox has 16", lines.len() >> 10, grown >> 20);
}
