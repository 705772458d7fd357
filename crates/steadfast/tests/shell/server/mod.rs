//! Servers, with clients that are scripted by hand or those of the library.

mod backpressure;
mod cancellation;
mod handlers;
mod input;
mod list_changes;
mod lists;
mod ping;
mod progress;
mod prompts;
mod request_timeouts;
mod resources;
mod results;
mod subscriptions;
mod tasks;
mod tools;
mod vendor_methods;
mod vendor_notifications;

use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::transport::memory;

use crate::support::{LogLines, RawPeer};
use crate::*;

/// A scripted client of either era.
struct Peer {
    raw: RawPeer,
    /// The metadata of every request; `None` after a handshake.
    meta: Option<Value>,
    /// The answer to the handshake.
    opened: Value,
    next: u64,
    /// What came before the last answer.
    before: Vec<Value>,
}

impl Peer {
    /// A client of 2026-07-28 with these capabilities.
    fn modern(server: &Server, capabilities: Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        Self { raw: served(server), meta: Some(meta), opened: Value::Null, next: 0, before: Vec::new() }
    }

    /// A client of 2025-11-25 with these capabilities, after its handshake.
    async fn handshake(server: &Server, capabilities: Value) -> Self {
        let mut peer = Self { raw: served(server), meta: None, opened: Value::Null, next: 0, before: Vec::new() };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "peer", "version": "1"}});
        peer.opened = peer.ask("initialize", params).await["result"].clone();
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        // An answer shows that the notification was taken in.
        peer.ask("ping", json!({})).await;
        peer
    }

    /// One of each era, with the same capabilities.
    async fn of_both_eras(server: &Server, capabilities: Value) -> [Self; 2] {
        [Self::handshake(server, capabilities.clone()).await, Self::modern(server, capabilities)]
    }

    async fn send(&mut self, message: &Value) {
        self.raw.send(message).await;
    }

    /// Sends a request, and gives its id.
    async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(Value::Object(meta)) = &self.meta {
            for (key, value) in meta {
                if params["_meta"].get(key).is_none() {
                    params["_meta"][key] = value.clone();
                }
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&message).await;
        self.next
    }

    /// The next message.
    async fn line(&mut self) -> Value {
        soon(self.raw.line()).await.unwrap_or_default()
    }

    /// Reads up to the answer of a request.
    async fn answer(&mut self, id: u64) -> Value {
        self.before.clear();
        loop {
            let line = self.line().await;
            assert!(!line.is_null(), "the server closed the connection");
            if line["id"] == id && line.get("method").is_none() {
                return line;
            }
            self.before.push(line);
        }
    }

    /// Sends a request and reads its answer.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool.
    async fn call(&mut self, tool: &str, more: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": {}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("tools/call", params).await
    }

    /// The capabilities that the server declares.
    async fn declared(&mut self) -> Value {
        if self.meta.is_none() {
            return self.opened["capabilities"].clone();
        }
        self.ask("server/discover", json!({})).await["result"]["capabilities"].clone()
    }
}

fn served(server: &Server) -> RawPeer {
    let (here, there) = memory::pair(1 << 16);
    tokio::spawn(server.clone().serve(there).into_future());
    RawPeer::new(here)
}

/// The text of the first piece of a result.
fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
