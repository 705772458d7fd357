//! What a reviewer found: each test is a promise that was broken once.
#![allow(clippy::format_collect, clippy::format_push_string, reason = "plain is better than fast in a test")]

use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use steadfast::runtime::TokioRuntime;
use steadfast::transport::memory;
use steadfast::{JsonObject, Limits};

use crate::support::Raw;
use crate::{Signal, echo, forever, server, text};

/// What a broken promise would keep waiting for ever.
async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.ok()
}

fn call(id: usize, tool: &str) -> serde_json::Value {
    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":tool,"arguments":{}}})
}

fn served(server: Server, capacity: usize) -> Raw {
    let (here, there) = memory::pair(capacity);
    tokio::spawn(server.serve(there).into_future());
    Raw::new(here)
}

/// Whether this test has the process to itself, as a test has to that measures its memory. If not, it is run in one that it
/// has, and judged by that.
fn alone(test: &str) -> bool {
    const ALONE: &str = "STEADFAST_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let run =
        std::process::Command::new(program).args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&run.stderr));
    false
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn small_outbox() -> Limits {
    let mut limits = Limits::default();
    limits.outbox_bytes = 64 * 1024;
    limits.in_flight_bytes = 8 << 20;
    limits
}

/// F1: answers of an open batch fill the room that its other members wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_answers_beyond_the_outbox_is_answered() {
    let large = Tool::new("large").handler(|| async { "x".repeat(20_000) });
    let server = Server::builder("test", "1").tool(large).limits(small_outbox()).build();
    let mut peer = served(server, 4096);
    peer.open("2025-03-26").await;
    let batch: Vec<_> = (0..20).map(|id| call(id, "large")).collect();
    peer.send(&json!(batch)).await;
    let answers = within(5, peer.line()).await.expect("the batch was never answered").unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 20);
}

/// F1: a slow member of a batch delays only that array.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_a_slow_member_leaves_the_connection_alive() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let large = Tool::new("large").handler(|| async { "x".repeat(70_000) });
    let server =
        Server::builder("test", "1").tool(large).tool(forever(&begun, &dropped)).limits(small_outbox()).build();
    let mut peer = served(server, 4096);
    peer.open("2025-03-26").await;
    peer.send(&json!([call(1, "large"), call(2, "forever")])).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = within(5, async {
        peer.send(&json!({"jsonrpc":"2.0","id":"p","method":"ping"})).await;
        peer.line().await
    });
    assert!(answer.await.is_some(), "the connection is deaf");
}

/// F2: a client whose own calls fill its outbox stops reading; so does the server; both wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sides_with_much_to_write_do_not_wait_for_each_other() {
    let (here, there) = memory::pair(1024);
    let server = Server::builder("test", "1").tool(echo()).limits(small_outbox()).build();
    tokio::spawn(server.serve(there).into_future());
    let era = steadfast::client::Era::Handshake(steadfast::Revision::V2025_11_25);
    let client = Client::connect(here).era(era).limits(small_outbox()).await.unwrap();
    let pings = (0..8000).map(|_| client.call::<steadfast::request::Ping>(steadfast::EmptyParams::default()).start());
    let pings: Vec<_> = pings.collect();
    let all = async {
        for ping in pings {
            ping.await.unwrap();
        }
    };
    within(20, all).await.expect("both sides wait for each other to read");
}

/// F2: the same with the limits as they are, and calls that carry something.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_calls_with_large_answers_all_end() {
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

/// F3: plain functions do not wait for room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_plain_functions_are_bounded_too() {
    if !alone("review::answers_of_plain_functions_are_bounded_too") {
        return;
    }
    let grown = flood(Tool::new("large").blocking_handler(|| {
        std::thread::sleep(Duration::from_millis(200));
        "x".repeat(64 * 1024)
    }))
    .await;
    assert!(grown < 64 << 20, "{} MiB are held for a peer that reads nothing; the outbox has 64 KiB", grown >> 20);
}

/// F3: results of handlers that all began while there was room are parked, up to a bound.
#[tokio::test]
async fn results_that_wait_for_room_are_bounded_too() {
    if !alone("review::results_that_wait_for_room_are_bounded_too") {
        return;
    }
    let grown = flood(Tool::new("large").handler(|| async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        "x".repeat(64 * 1024)
    }))
    .await;
    assert!(grown < 64 << 20, "{} MiB are held for a peer that reads nothing; the outbox has 64 KiB", grown >> 20);
}

/// What 3,000 calls hold whose answers are not read.
async fn flood(tool: Tool) -> usize {
    let server = Server::builder("test", "1").tool(tool).limits(small_outbox()).build();
    let mut peer = served(server, 1 << 20);
    peer.open("2025-11-25").await;
    let before = resident();
    let calls: String = (0..3000).map(|id| format!("{}\n", call(id, "large"))).collect();
    let _ = within(3, peer.write(calls.as_bytes())).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    resident().saturating_sub(before)
}

/// F4: giving up a connect leaves the driver, and a child process, behind.
#[tokio::test]
async fn a_connect_that_is_dropped_closes_the_transport() {
    let (here, there) = memory::pair(4096);
    let connecting = Client::connect(here).into_future();
    assert!(tokio::time::timeout(Duration::from_millis(50), connecting).await.is_err());
    let mut peer = Raw::new(there);
    let end = async { while peer.line().await.is_some() {} };
    within(5, end).await.expect("the connection is still open although nobody has it");
}

/// F5: a fence that is dropped says nothing, so its request is never answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_goes_away_leaves_no_request_open() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = Arc::new(TokioRuntime::new(workers.handle().clone()));
    let (here, there) = memory::pair(4096);
    tokio::spawn(server([forever(&begun, &dropped), echo()]).serve(there).with_runtime(runtime).into_future());
    let mut peer = Raw::new(here);
    peer.open("2025-11-25").await;
    peer.send(&call(1, "forever")).await;
    within(5, begun.wait()).await.unwrap();
    workers.shutdown_background();
    within(5, dropped.wait()).await.unwrap();
    let answer = within(5, peer.line()).await;
    assert!(answer.is_some(), "the handler is gone and its request has no answer");
    peer.send(&call(2, "echo")).await;
    assert!(within(5, peer.line()).await.is_some(), "a request that could not be started has no answer");
}

/// F5: the same when the line about a panic panics.
#[tokio::test]
async fn a_log_subscriber_that_panics_does_not_cost_the_answer() {
    struct Bad;
    impl tracing::Subscriber for Bad {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::ERROR
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            panic_any("the subscriber");
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    let bad = Tool::new("bad").handler(|| async {
        if true {
            panic_any("on purpose");
        }
    });
    let client = Client::connect(server([bad, echo()])).await.unwrap();
    let _guard = tracing::subscriber::set_default(Bad);
    let answer = within(5, client.call_tool("bad", json!({})).into_future()).await;
    assert!(answer.expect("no answer").is_err());
}

/// F6: a callback that panics, with a payload that panics again, ends its call and not the connection.
#[tokio::test]
async fn a_progress_callback_cannot_end_the_connection() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic_any("again");
            }
        }
    }
    let steps = Tool::new("steps").handler(|ctx: Context| async move {
        ctx.progress(0.5, "half");
        tokio::time::sleep(Duration::from_millis(50)).await;
        "done"
    });
    let client = Client::connect(server([steps, echo()])).await.unwrap();
    let call = client.call_tool("steps", json!({})).on_progress(|_| panic_any(Bomb)).start();
    let caller = tokio::spawn(call);
    let ended = within(5, caller).await.expect("no end");
    // The payload, if it came here, is not to be dropped: it would take this test with it.
    std::mem::forget(ended);
    let after = within(5, client.call_tool("echo", json!({"text": "on"})).into_future()).await.expect("no answer");
    assert_eq!(text(&after.expect("the connection was ended by a callback")), "on");
}

/// F7: a cleanup that is registered after the end is neither run nor dropped.
#[tokio::test]
async fn a_cleanup_registered_after_the_end_is_dropped() {
    let kept = Arc::new(std::sync::Mutex::new(None::<Context>));
    let keeper = Arc::clone(&kept);
    let tool = Tool::new("keep").handler(move |ctx: Context| {
        let keeper = Arc::clone(&keeper);
        async move { *keeper.lock().unwrap() = Some(ctx) }
    });
    let client = Client::connect(server([tool])).await.unwrap();
    client.call_tool("keep", json!({})).await.unwrap();
    let ctx = kept.lock().unwrap().take().unwrap();
    let dropped = Signal::default();
    let (held, clone) = (dropped.on_drop(), ctx.clone());
    ctx.on_cancel(async move {
        let _held = held;
        clone.log(steadfast::LoggingLevel::Info, "a cleanup that has its context");
    });
    drop(ctx);
    client.close().await;
    within(3, dropped.wait()).await.expect("the cleanup is kept for ever, and with it its execution");
}

/// F9: a request that was cancelled while it waited for room leaves its waker, and its task, in the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_cancelled_while_they_wait_for_room_leave_nothing() {
    if !alone("review::requests_cancelled_while_they_wait_for_room_leave_nothing") {
        return;
    }
    let large = Tool::new("large").handler(|| async { "x".repeat(400_000) });
    let server = Server::builder("test", "1").tool(large).tool(echo()).limits(small_outbox()).build();
    let mut peer = served(server, 65536);
    peer.open("2025-11-25").await;
    peer.send(&call(0, "large")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = resident();
    for chunk in 0..50_usize {
        let mut lines = String::new();
        for id in 0..1000 {
            let id = 1000 + chunk * 1000 + id;
            lines += &format!("{}\n", call(id, "echo"));
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

/// F10: everything in one read is answered before anything is written, whatever it comes to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_reads_are_bounded() {
    if !alone("review::lists_that_nobody_reads_are_bounded") {
        return;
    }
    let tools = (0..200).map(|number| {
        Tool::new(format!("tool{number}")).description("d".repeat(1000)).handler(|_: JsonObject| async { "" })
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

/// F11: a cooperative handler on a runtime without timers: the fence itself panics.
#[test]
fn a_runtime_without_timers_still_ends_cooperative_handlers() {
    let plain = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let timed = tokio::runtime::Runtime::new().unwrap();
    let (begun, done) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), done.clone());
    let polite = Tool::new("polite").cooperative().handler(move |ctx: Context| {
        let (begun, done) = signals.clone();
        async move {
            begun.set();
            ctx.cancelled().await;
            done.set();
        }
    });
    let (here, there) = memory::pair(4096);
    plain.spawn(server([polite]).serve(there).into_future());
    timed.block_on(async {
        let client = Client::connect(here).await.unwrap();
        let call = client.call_tool("polite", json!({})).start();
        begun.wait().await;
        drop(call);
        within(5, done.wait()).await.expect("the handler was lost");
    });
}
