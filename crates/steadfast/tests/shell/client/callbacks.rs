//! Callbacks and handlers that cancel, close or panic while their client runs them.

use std::panic::panic_any;
use std::sync::Mutex;

use serde_json::{Value, json};
use steadfast::client::{CallOutcome, NegotiationMode};
use steadfast::transport::memory;
use steadfast::{ErrorKind, ListRootsResult, Outcome, Revision};

use crate::support::RawPeer;
use crate::*;

/// A client of the older revisions, and its hand-written server.
async fn older(
    connecting: impl FnOnce(steadfast::client::ConnectBuilder) -> steadfast::client::ConnectBuilder,
) -> (Client, RawPeer) {
    let (here, there) = memory::pair(1 << 16);
    let mut raw = RawPeer::new(there);
    let connecting = connecting(Client::connect(here).negotiation(NegotiationMode::Handshake(Revision::V2025_11_25)));
    let greeting = async {
        let hello = raw.line().await.unwrap();
        let result = json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "raw", "version": "1"},
            "capabilities": {"tools": {}}});
        raw.send(&json!({"jsonrpc": "2.0", "id": hello["id"], "result": result})).await;
        assert_eq!(raw.line().await.unwrap()["method"], "notifications/initialized");
    };
    let (client, ()) = soon(async { tokio::join!(connecting.into_future(), greeting) }).await;
    (client.unwrap(), raw)
}

async fn ask_roots(raw: &mut RawPeer) {
    raw.send(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})).await;
}

/// L5: a handler that closes its own client is stopped with it, and close ends.
#[tokio::test]
async fn a_handler_may_close_its_own_client() {
    let own: Arc<Mutex<Option<Client>>> = Arc::default();
    let (inside, dropped) = (Arc::clone(&own), Signal::default());
    let stopped = dropped.clone();
    let (client, mut raw) = older(|connecting| {
        connecting.on_roots(move |_| {
            let (client, stopped) = (inside.lock().unwrap().take(), stopped.on_drop());
            async move {
                let _stopped = stopped;
                client.unwrap().close().await;
                Ok(ListRootsResult::default())
            }
        })
    })
    .await;
    *own.lock().unwrap() = Some(client.clone());
    ask_roots(&mut raw).await;
    soon(client.closed()).await;
    soon(dropped.wait()).await;
    soon(async { while raw.line().await.is_some() {} }).await;
}

/// L5: the last client is dropped inside its own handler.
#[tokio::test]
async fn a_handler_may_drop_the_last_of_its_clients() {
    let own: Arc<Mutex<Option<Client>>> = Arc::default();
    let inside = Arc::clone(&own);
    let (client, mut raw) = older(|connecting| {
        connecting.on_roots(move |_| {
            drop(inside.lock().unwrap().take());
            async { Ok(ListRootsResult::default()) }
        })
    })
    .await;
    *own.lock().unwrap() = Some(client);
    ask_roots(&mut raw).await;
    soon(async { while raw.line().await.is_some() {} }).await;
}

/// L2: a handler calls the server whose request it handles, and the server answers the inner call first.
#[tokio::test]
async fn a_handler_may_call_the_requesting_server() {
    let own: Arc<Mutex<Option<Client>>> = Arc::default();
    let inside = Arc::clone(&own);
    let (client, mut raw) = older(|connecting| {
        connecting.on_roots(move |_| {
            let client = inside.lock().unwrap().clone().unwrap();
            async move { client.call_tool("inner", json!({})).await.map(|_| ListRootsResult::default()) }
        })
    })
    .await;
    *own.lock().unwrap() = Some(client.clone());
    let outer = tokio::spawn(client.call_tool("outer", json!({})).into_future());
    let outer_request = soon(raw.line()).await.unwrap();
    ask_roots(&mut raw).await;
    let inner_request = soon(raw.line()).await.unwrap();
    assert_eq!(inner_request["params"]["name"], "inner");
    let result = json!({"content": []});
    raw.send(&json!({"jsonrpc": "2.0", "id": inner_request["id"], "result": result})).await;
    assert_eq!(soon(raw.line()).await.unwrap()["id"], "r");
    raw.send(&json!({"jsonrpc": "2.0", "id": outer_request["id"], "result": result})).await;
    soon(outer).await.unwrap().unwrap();
}

/// A call whose first progress has been sent when this returns.
async fn with_progress_told(raw: &mut RawPeer) -> Value {
    let request = soon(raw.line()).await.unwrap();
    let token = &request["params"]["_meta"]["progressToken"];
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1}}))
        .await;
    request
}

/// L3: a callback that panics cancels its own call and no other.
#[tokio::test]
async fn a_callback_that_panics_cancels_only_its_own_call() {
    let (client, mut raw) = older(|connecting| connecting).await;
    let call = client.call_tool("any", json!({})).on_progress(|_| panic!("as it does")).start();
    let call = tokio::spawn(call);
    let request = with_progress_told(&mut raw).await;
    assert!(soon(call).await.unwrap_err().is_panic());
    let cancelled = soon(raw.line()).await.unwrap();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &request["id"])
    );
    let other = tokio::spawn(client.call_tool("any", json!({})).into_future());
    let request = soon(raw.line()).await.unwrap();
    raw.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}})).await;
    soon(other).await.unwrap().unwrap();
}

/// L10: a call whose callback cancels it, or closes its client, ends with the true outcome.
#[tokio::test]
async fn a_callback_may_cancel_its_call_and_close_its_client() {
    let (client, mut raw) = older(|connecting| connecting).await;
    let canceller: Arc<Mutex<Option<steadfast::client::Canceller>>> = Arc::default();
    let (inside, closing) = (Arc::clone(&canceller), client.clone());
    let call = client.call_tool("any", json!({}));
    let call = call.on_progress(move |_| inside.lock().unwrap().as_ref().unwrap().cancel()).start();
    *canceller.lock().unwrap() = Some(call.canceller());
    let ((), settled) =
        soon(async { tokio::join!(async { drop(with_progress_told(&mut raw).await) }, call.outcome()) }).await;
    assert!(matches!(&settled, CallOutcome::Cancelled(error) if error.outcome() == Outcome::Unknown), "{settled:?}");
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/cancelled");
    // A second time, and after the end.
    canceller.lock().unwrap().take().unwrap().cancel();

    let call = client.call_tool("any", json!({})).on_progress(move |_| drop(tokio::spawn(closing.clone().close())));
    let ((), ended) =
        soon(async { tokio::join!(async { drop(with_progress_told(&mut raw).await) }, call.into_future()) }).await;
    let error = ended.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    assert!(soon(raw.line()).await.is_none(), "nothing is said of what was cancelled behind its end");
}

/// A callback that panics, with a payload that panics again, ends its call and not the connection.
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
    let steps = ServerTool::new("steps").handler(|ctx: Context| async move {
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
