//! Runtimes that are dropped while something runs in them, and clients that outlive them.

use std::sync::Arc;

use serde_json::json;
use steadfast::client::{NegotiationMode, ReconnectPolicy};
use steadfast::runtime::TokioRuntime;
use steadfast::transport::memory;
use steadfast::{ErrorKind, Outcome, Revision};
use tokio::runtime::{Builder, Runtime};

use crate::support::{RawPeer, tool_call};
use crate::*;

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client of 2026-07-28 whose server is the other end.
async fn pair() -> (Client, RawPeer) {
    let (here, there) = memory::pair(1 << 16);
    let mut raw = RawPeer::new(there);
    let greeting = async {
        let probe = raw.line().await.unwrap();
        let found =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
        raw.send(&json!({"jsonrpc": "2.0", "id": probe["id"], "result": found})).await;
    };
    let connecting = Client::connect(here).negotiation(NegotiationMode::Stateless).into_future();
    let (client, ()) = soon(async { tokio::join!(connecting, greeting) }).await;
    (client.unwrap(), raw)
}

/// L5, L10: the drivers do not need the runtime that is gone; a call from another one is answered, and times out.
#[test]
fn a_client_outlives_the_runtime_that_created_it() {
    let first = one_thread();
    let (client, mut raw) = first.block_on(pair());
    drop(first);
    one_thread().block_on(async {
        let answering = async {
            let request = raw.line().await.unwrap();
            let result = json!({"resultType": "complete", "content": []});
            raw.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
        };
        let call = client.call_tool("any", json!({})).into_future();
        let (answered, ()) = soon(async { tokio::join!(call, answering) }).await;
        answered.unwrap();
        let late = client.call_tool("any", json!({})).timeout(Duration::from_millis(20));
        let error = soon(late.into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
        // It would continue in a runtime that does not exist any more.
        let (_, underway) = client.call_tool("any", json!({})).start_with_progress();
        assert_eq!(soon(underway).await.unwrap_err().kind(), ErrorKind::Cancelled);
        soon(client.close()).await;
        soon(async { while raw.line().await.is_some() {} }).await;
    });
}

/// L10: reconnecting runs in the runtime that was dropped, and a call that waits for it ends with an error.
#[test]
fn waiting_for_a_reconnect_ends_when_the_runtime_is_dropped() {
    let first = one_thread();
    let client = first.block_on(async {
        let connecting = Client::connect(server([echo()])).reconnect(ReconnectPolicy::default());
        soon(connecting.into_future()).await.unwrap()
    });
    // The server goes too: it was in there.
    drop(first);
    one_thread().block_on(async {
        soon(client.closed()).await;
        for _ in 0..2 {
            let error = soon(client.call_tool("echo", json!({"text": ""})).into_future()).await.unwrap_err();
            assert_eq!(error.outcome(), Outcome::NotSent, "{error:?}");
        }
        soon(client.close()).await;
    });
}

/// L5: an opening goes with its runtime, wherever it is.
#[test]
fn dropping_the_runtime_during_a_connect_closes_the_connection() {
    for era in [NegotiationMode::Auto, NegotiationMode::Handshake(Revision::V2025_11_25)] {
        let (here, there) = memory::pair(1 << 16);
        let mut raw = RawPeer::new(there);
        let first = one_thread();
        first.block_on(async {
            tokio::spawn(Client::connect(here).negotiation(era).into_future());
            assert!(soon(raw.line()).await.is_some());
        });
        drop(first);
        one_thread().block_on(soon(async { while raw.line().await.is_some() {} }));
    }
}

/// A handler task that is dropped with its runtime reports nothing; its request has to be answered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_runtime_of_handlers_leaves_no_request_without_a_response() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = Arc::new(TokioRuntime::new(workers.handle().clone()));
    let (here, there) = memory::pair(4096);
    tokio::spawn(server([forever(&begun, &dropped), echo()]).serve(there).runtime(runtime).into_future());
    let mut peer = RawPeer::new(here);
    peer.open("2025-11-25").await;
    peer.send(&tool_call(1, "forever")).await;
    within(5, begun.wait()).await.unwrap();
    workers.shutdown_background();
    within(5, dropped.wait()).await.unwrap();
    let answer = within(5, peer.line()).await;
    assert!(answer.is_some(), "the handler is gone and its request has no answer");
    peer.send(&tool_call(2, "echo")).await;
    assert!(within(5, peer.line()).await.is_some(), "a request that could not be started has no answer");
}

/// A cooperative handler on a runtime without timers: the fence itself panics.
#[test]
fn a_runtime_without_timers_still_ends_cooperative_handlers() {
    let plain = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let timed = tokio::runtime::Runtime::new().unwrap();
    let (begun, done) = (Signal::default(), Signal::default());
    let signals = (begun.clone(), done.clone());
    let polite = ServerTool::new("polite").cooperative().handler(move |ctx: Context| {
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
