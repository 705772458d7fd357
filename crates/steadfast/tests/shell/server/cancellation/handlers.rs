//! Stopping handlers: by the peer, with the connection, at once or cooperatively; shields and cleanups.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use steadfast::{CancelReason, Limits};

use crate::{Signal, echo, forever, server, soon, text, within};

#[tokio::test]
async fn dropping_a_call_stops_its_handler_at_the_server() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let client = Client::connect(server([forever(&begun, &dropped), echo()])).await.unwrap();
    let call = client.call_tool("forever", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    soon(dropped.wait()).await;
    assert_eq!(text(&client.call_tool("echo", json!({"text": "on"})).await.unwrap()), "on");
}

#[tokio::test]
async fn a_call_past_its_timeout_stops_its_handler() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let client = Client::connect(server([forever(&begun, &dropped)])).await.unwrap();
    let error = client.call_tool("forever", json!({})).timeout(Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.outcome(), steadfast::Outcome::Unknown);
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn cleanups_run_after_the_drop_the_last_first() {
    let (begun, order) = (Signal::default(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
    let (started, log, done) = (begun.clone(), order.clone(), Signal::default());
    let finished = done.clone();
    let tool = ServerTool::new("tidy").handler(move |ctx: Context| {
        let (started, log, finished) = (started.clone(), log.clone(), finished.clone());
        async move {
            let (first, second) = (log.clone(), log.clone());
            ctx.on_cancel(async move {
                first.lock().unwrap().push("first");
                finished.set();
            });
            ctx.on_cancel(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                second.lock().unwrap().push("second");
            });
            started.set();
            std::future::pending::<()>().await;
        }
    });
    let client = Client::connect(server([tool])).await.unwrap();
    let call = client.call_tool("tidy", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    soon(done.wait()).await;
    assert_eq!(*order.lock().unwrap(), ["second", "first"]);
}

#[tokio::test]
async fn cleanups_do_not_run_when_the_handler_ends_by_itself() {
    let ran = Signal::default();
    let cleanup = ran.clone();
    let tool = ServerTool::new("fine").handler(move |ctx: Context| {
        let cleanup = cleanup.clone();
        async move { ctx.on_cancel(async move { cleanup.set() }) }
    });
    let client = Client::connect(server([tool])).await.unwrap();
    client.call_tool("fine", json!({})).await.unwrap();
    client.close().await;
    assert_eq!(ran.count(), 0);
}

#[tokio::test]
async fn a_shield_continues_when_its_handler_is_dropped() {
    let (begun, go, done) = (Signal::default(), Signal::default(), Signal::default());
    let signals = (begun.clone(), go.clone(), done.clone());
    let tool = ServerTool::new("commit").handler(move |ctx: Context| {
        let (begun, go, done) = signals.clone();
        async move {
            ctx.shield(async move {
                begun.set();
                go.wait().await;
                done.set();
            })
            .await;
        }
    });
    let client = Client::connect(server([tool])).await.unwrap();
    let call = client.call_tool("commit", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    go.set();
    soon(done.wait()).await;
}

#[tokio::test]
async fn a_shield_returns_its_value() {
    let tool = ServerTool::new("value").handler(|ctx: Context| async move { ctx.shield(async { 7 }).await });
    let client = Client::connect(server([tool])).await.unwrap();
    assert_eq!(text(&client.call_tool("value", json!({})).await.unwrap()), "7");
}

#[tokio::test]
async fn a_cooperative_handler_sees_the_cancellation_and_ends_by_itself() {
    let (begun, done) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), done.clone());
    let tool = ServerTool::new("polite").cooperative().handler(move |ctx: Context| {
        let (begun, done) = signals.clone();
        async move {
            begun.set();
            assert_eq!(ctx.cancelled().await, CancelReason::Peer);
            tokio::task::yield_now().await;
            done.set();
        }
    });
    let client = Client::connect(server([tool])).await.unwrap();
    let call = client.call_tool("polite", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    soon(done.wait()).await;
}

#[tokio::test]
async fn a_blocking_handler_sees_the_cancellation() {
    let (begun, done) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), done.clone());
    let tool = ServerTool::new("thread").blocking_handler(move |ctx: Context| {
        signals.0.set();
        while !ctx.is_cancelled() {
            std::thread::yield_now();
        }
        signals.1.set();
    });
    let client = Client::connect(server([tool])).await.unwrap();
    let call = client.call_tool("thread", json!({})).start();
    soon(begun.wait()).await;
    drop(call);
    soon(done.wait()).await;
}

#[tokio::test]
async fn the_end_of_the_connection_stops_handlers_and_runs_cleanups() {
    let (begun, cleaned, dropped) = (Signal::default(), Signal::default(), Signal::default());
    let signals = (begun.clone(), cleaned.clone(), dropped.clone());
    let tool = ServerTool::new("long").handler(move |ctx: Context| {
        let (begun, cleaned, dropped) = signals.clone();
        async move {
            let _dropped = dropped.on_drop();
            ctx.on_cancel(async move { cleaned.set() });
            begun.set();
            std::future::pending::<()>().await;
        }
    });
    let mut limits = Limits::default();
    limits.drain_window = Duration::from_millis(1);
    let server = Server::builder("test", "1").tool(tool).limits(limits).build();
    let client = Client::connect(server).await.unwrap();
    let call = client.call_tool("long", json!({})).start();
    soon(begun.wait()).await;
    // The pending call keeps the connection; closing it is meant.
    soon(client.close()).await;
    soon(dropped.wait()).await;
    soon(cleaned.wait()).await;
    assert!(soon(call).await.is_err());
}

#[tokio::test]
async fn a_shutdown_lets_running_calls_finish() {
    let (begun, go) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), go.clone());
    let tool = ServerTool::new("last").handler(move || {
        let (begun, go) = signals.clone();
        async move {
            begun.set();
            go.wait().await;
            "answered"
        }
    });
    let (here, there) = steadfast::transport::memory::pair(1024);
    let stop = Signal::default();
    let stopping = stop.clone();
    let serving = server([tool]).serve(there).shutdown_when(async move { stopping.wait().await });
    let served = tokio::spawn(serving.into_future());
    let client = Client::connect(here).await.unwrap();
    let call = client.call_tool("last", json!({})).start();
    soon(begun.wait()).await;
    stop.set();
    // A request that comes now is refused; the one that runs is answered.
    let refused = soon(async {
        loop {
            if let Err(error) = client.call_tool("nothing", json!({})).await
                && error.to_string().contains("shutting down")
            {
                return error;
            }
        }
    })
    .await;
    assert_eq!(refused.outcome(), steadfast::Outcome::Refused);
    go.set();
    assert_eq!(text(&soon(call).await.unwrap()), "answered");
    soon(served).await.unwrap().unwrap();
}

/// A cleanup that is registered after the end is neither run nor dropped.
#[tokio::test]
async fn a_cleanup_registered_after_the_end_is_dropped() {
    let kept = Arc::new(std::sync::Mutex::new(None::<Context>));
    let keeper = Arc::clone(&kept);
    let tool = ServerTool::new("keep").handler(move |ctx: Context| {
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

/// A waker that counts the clones of itself, and wakes nothing.
struct Counted;

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test]
async fn a_dropped_wait_for_cancellation_leaves_no_waker() {
    let tool = ServerTool::new("waits").handler(|ctx: Context| async move {
        let counted = Arc::new(Counted);
        for _ in 0..10 {
            let waker = std::task::Waker::from(Arc::clone(&counted));
            let mut first = std::pin::pin!(ctx.cancelled());
            let mut second = std::pin::pin!(ctx.cancelled());
            for _ in 0..2 {
                let mut cx = std::task::Context::from_waker(&waker);
                assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
            }
        }
        Arc::strong_count(&counted)
    });
    let client = Client::connect(server([tool])).await.unwrap();
    assert_eq!(text(&client.call_tool("waits", json!({})).await.unwrap()), "1");
}
