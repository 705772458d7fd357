//! Clients, with servers that are scripted by hand or those of the library.

mod cache;
mod callbacks;
mod calls;
mod connecting;
mod input;
mod lists;
mod manual_server;
mod notifications;
mod pagination;
mod ping;
mod reconnecting;
mod tasks;

use serde_json::{Value, json};
use steadfast::client::{ConnectBuilder, NegotiationMode};
use steadfast::transport::memory;
use steadfast::{Error, Revision};

use crate::support::RawPeer;
use crate::*;

const OLDER: NegotiationMode = NegotiationMode::Handshake(Revision::V2025_11_25);
pub(crate) const ERAS: [NegotiationMode; 2] = [NegotiationMode::Stateless, OLDER];

/// A hand-written server that records what it receives.
pub(super) struct RecordingServer {
    raw: RawPeer,
    /// Every message of the client's, in order.
    pub(super) received: Vec<Value>,
}

impl RecordingServer {
    /// A client that has not sent anything yet, and its server.
    pub(super) fn new() -> (ConnectBuilder, Self) {
        let (here, there) = memory::pair(1 << 16);
        (Client::connect(here), Self { raw: RawPeer::new(there), received: Vec::new() })
    }

    /// A client that speaks that era, as `prepare` wants it, and its server.
    pub(super) async fn connected(
        era: NegotiationMode,
        prepare: impl FnOnce(ConnectBuilder) -> ConnectBuilder,
    ) -> (Client, Self) {
        let (connecting, mut server) = Self::new();
        let (client, ()) = tokio::join!(prepare(connecting).negotiation(era).into_future(), server.open(era));
        (client.unwrap(), server)
    }

    /// Answers what a client of that era begins with.
    async fn open(&mut self, era: NegotiationMode) {
        if era == NegotiationMode::Stateless {
            let probe = self.until("server/discover").await;
            self.answer(&probe, discovered()).await;
            return;
        }
        let initialize = self.until("initialize").await;
        let chosen = initialize["params"]["protocolVersion"].clone();
        self.answer(&initialize, initialized(&chosen)).await;
        self.until("notifications/initialized").await;
    }

    /// The next message of the client's; `None` when it has closed the connection.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let line = soon(self.raw.line()).await?;
        self.received.push(line.clone());
        Some(line)
    }

    /// Reads up to the next message of that method.
    pub(super) async fn until(&mut self, method: &str) -> Value {
        loop {
            let line = self.next().await.unwrap_or_else(|| panic!("no {method} came: {:?}", self.received));
            if line["method"] == method {
                return line;
            }
        }
    }

    /// Reads to the end of the connection.
    pub(super) async fn read_to_the_end(&mut self) {
        while self.next().await.is_some() {}
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.raw.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn refuse(&mut self, request: &Value, code: i64, data: Value) {
        let error = json!({"code": code, "message": "no", "data": data});
        self.raw.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    async fn tell(&mut self, method: &str, params: Value) {
        self.raw.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Asks the client something, and reads its answer: nothing else may come before.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.raw.send(&json!({"jsonrpc": "2.0", "id": "asked", "method": method, "params": params})).await;
        let answer = self.next().await.expect("an answer");
        assert_eq!((&answer["id"], answer.get("method")), (&json!("asked"), None), "{answer}");
        answer
    }

    /// Checks that the client has processed everything, and has sent nothing but the call that shows it.
    pub(super) async fn is_quiet(&mut self, client: &Client) {
        let answered = async {
            let call = self.next().await.expect("a call");
            assert_eq!(call["method"], "tools/call", "{call}");
            self.answer(&call, json!({"resultType": "complete", "content": []})).await;
        };
        let (called, ()) = tokio::join!(client.call_tool("probe", json!({})).into_future(), answered);
        called.unwrap();
    }
}

fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

pub(crate) fn discovered() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities()})
}

fn initialized(chosen: &Value) -> Value {
    json!({"protocolVersion": chosen, "capabilities": capabilities(), "serverInfo": {"name": "host", "version": "1"}})
}

/// The result of a call, while `answering` plays the server.
pub(super) async fn with<T>(
    call: impl Future<Output = Result<T, Error>>,
    answering: impl Future<Output = ()>,
) -> Result<T, Error> {
    soon(async { tokio::join!(call, answering).0 }).await
}
