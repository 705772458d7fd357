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

#[test]
fn a_shield_that_blocks_its_worker_does_not_delay_other_responses() {
    // The test is not on the workers that the shield stalls, and neither are its timeouts.
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // A test that fails drops the sender, and so releases the worker.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begun, released) = (Signal::default(), Arc::new(std::sync::Mutex::new(released)));
    let slow = ServerTool::new("slow").on_workers().handler(|| async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        "woke"
    });
    let shielded = {
        let (begun, released) = (begun.clone(), Arc::clone(&released));
        ServerTool::new("shielded").on_workers().handler(move |ctx: Context| {
            let (begun, released) = (begun.clone(), Arc::clone(&released));
            async move {
                let shield = async move {
                    // Woken by the worker that serves the timers, and so on it.
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    begun.set();
                    let _ = released.lock().unwrap().recv();
                };
                ctx.shield(shield).await;
            }
        })
    };
    let (near, far) = steadfast::transport::memory::pair(1 << 16);
    workers.spawn(server([slow, shielded]).serve(far).into_future());
    here.block_on(async {
        let client = soon(Client::connect(near).into_future()).await.unwrap();
        let waiting = client.call_tool("slow", json!({})).start();
        let blocked = client.call_tool("shielded", json!({})).start();
        soon(begun.wait()).await;
        assert_eq!(text(&soon(waiting).await.unwrap()), "woke");
        release.send(()).unwrap();
        soon(blocked).await.unwrap();
    });
    workers.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_puts_into_a_server_is_not_dropped_on_an_io_loop() {
    struct Probe(Arc<std::sync::Mutex<Option<String>>>);
    impl Drop for Probe {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = std::thread::current().name().map(str::to_owned);
        }
    }
    let dropped_on = Arc::default();
    let probe = Probe(Arc::clone(&dropped_on));
    let tool = ServerTool::new("probe").handler(move || {
        let _ = &probe;
        async {}
    });
    let (near, far) = steadfast::transport::memory::pair(1 << 16);
    let serving = tokio::spawn(server([tool]).serve(far).into_future());
    drop(near);
    soon(serving).await.unwrap().unwrap();
    let thread = dropped_on.lock().unwrap().clone();
    assert!(thread.as_ref().is_some_and(|thread| !thread.starts_with("steadfast")), "{thread:?}");
}
