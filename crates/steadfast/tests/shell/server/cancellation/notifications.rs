//! Notifications about the end of requests.

use crate::server::*;

#[tokio::test]
async fn in_2026_a_server_sends_no_cancellation() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let panics =
        ServerTool::new("panics").handler(|| async { std::panic::resume_unwind(Box::new("on purpose")) as () });
    let fails = ServerTool::new("fails").handler(|| async { Err::<(), _>(ToolError::new("no")) });
    let asks = ServerTool::new("asks").handler(|ctx: Context| async move { ctx.elicit::<bool>("?").await.map(drop) });
    let mut limits = steadfast::Limits::default();
    limits.handler_deadline = Some(Duration::from_millis(50));
    let tools = [forever(&begun, &dropped), panics, fails, asks, echo()];
    let server = Server::builder("test", "1").tools(tools).limits(limits).build();
    let (here, there) = memory::pair(1 << 16);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(server.clone().serve(there).shutdown_when(async { _ = stopped.await }).into_future());
    let mut peer = Peer::modern(&server, json!({"elicitation": {}}));
    peer.raw = RawPeer::new(here);
    // By the client, by the deadline, by a panic, by a failure, with a question, and well.
    let cancelled = peer.begin("tools/call", json!({"name": "forever"})).await;
    soon(begun.wait()).await;
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}}))
        .await;
    soon(dropped.wait()).await;
    let mut seen = Vec::new();
    for tool in ["forever", "panics", "fails", "asks", "echo"] {
        peer.call(tool, json!({})).await;
        seen.append(&mut peer.before);
    }
    // And by the end of the server.
    peer.begin("tools/call", json!({"name": "forever"})).await;
    soon(begun.wait()).await;
    stop.send(()).unwrap();
    loop {
        match peer.line().await {
            Value::Null => break,
            line => seen.push(line),
        }
    }
    assert!(seen.iter().all(|line| line["method"] != "notifications/cancelled"), "{seen:?}");
}
