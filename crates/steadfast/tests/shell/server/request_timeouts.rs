//! A request to a client that does not respond times out, also with the default limits.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use steadfast::runtime::{Runtime, RuntimeTask, Timer, TokioRuntime};
use steadfast_proto::Moment;

use super::*;

/// How much faster its clock goes: ten minutes are 60 milliseconds.
const FASTER: u32 = 10_000;

/// Time in a hurry.
struct Fast(TokioRuntime);

struct FastTimer(Box<dyn Timer>);

impl Runtime for Fast {
    fn now(&self) -> Moment {
        Moment::after_origin(self.0.now().since(Moment::after_origin(Duration::ZERO)) * FASTER)
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(FastTimer(self.0.timer()))
    }

    fn spawn(&self, task: RuntimeTask) {
        self.0.spawn(task);
    }

    fn spawn_thread(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.spawn_thread(job);
    }
}

impl Timer for FastTimer {
    fn reset(&mut self, when: Option<Moment>) {
        let origin = Moment::after_origin(Duration::ZERO);
        self.0.reset(when.map(|when| Moment::after_origin(when.since(origin) / FASTER)));
    }

    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}

#[tokio::test]
async fn a_request_to_an_unresponsive_client_times_out_and_is_cancelled() {
    let tool = ServerTool::new("roots").handler(|ctx: Context| async move {
        let error = ctx.roots().await.unwrap_err();
        format!("{:?}", error.kind())
    });
    let server = server([tool]);
    let mut peer = Peer::handshake(&server, json!({"roots": {}})).await;
    let (here, there) = memory::pair(1 << 16);
    let runtime = Arc::new(Fast(TokioRuntime::current().unwrap()));
    tokio::spawn(server.serve(there).runtime(runtime).into_future());
    peer.raw = RawPeer::new(here);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
        "clientInfo": {"name": "peer", "version": "1"}});
    peer.ask("initialize", params).await;
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let answer = peer.call("roots", json!({})).await;
    assert_eq!(said(&answer), "TimedOut", "{answer}");
    let methods: Vec<&Value> = peer.before.iter().map(|line| &line["method"]).collect();
    assert_eq!(methods, ["roots/list", "notifications/cancelled"]);
    assert_eq!(peer.before[1]["params"]["requestId"], peer.before[0]["id"]);
}
