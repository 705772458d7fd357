//! What is asked of a server over HTTP: the heads and bodies themselves.
//!
//! It only makes bytes; it never reads or writes any.

use bench_kit::endpoint::PATH;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The stateless revision.
const STATELESS: &str = "2026-07-28";
/// The newest revision with sessions.
const WITH_SESSIONS: &str = "2025-11-25";

/// The resource that `touch` changes.
pub(crate) const RESOURCE: &str = "growth://one";

/// A tool, its arguments, and the text of its right answer.
#[derive(Clone, Copy)]
pub(crate) enum Tool {
    /// Says a short text back.
    Echo,
    /// Changes the resource.
    Touch,
}

/// What `echo` is asked to say, unless the length matters.
pub(crate) const SHORT_TEXT: &str = "The quick brown fox jumps over the lazy dog";

impl Tool {
    const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Touch => "touch",
        }
    }

    fn arguments(self) -> Value {
        match self {
            Self::Echo => json!({"text": SHORT_TEXT}),
            Self::Touch => json!({}),
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Echo => SHORT_TEXT,
            Self::Touch => "touched",
        }
    }
}

/// A stateless call.
pub(crate) fn call(to: SocketAddr, tool: Tool, id: u64) -> Vec<u8> {
    let params = json!({"_meta": meta(), "name": tool.name(), "arguments": tool.arguments()});
    let headers = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool.name())];
    post(to, &headers, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Opens a stream of changes of the resource.
pub(crate) fn listen(to: SocketAddr, id: u64) -> Vec<u8> {
    let params = json!({"_meta": meta(), "notifications": {"resourceSubscriptions": [RESOURCE]}});
    let headers = [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", "subscriptions/listen")];
    post(to, &headers, &json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}))
}

/// Opens a session.
pub(crate) fn initialize(to: SocketAddr) -> Vec<u8> {
    let params = json!({
        "protocolVersion": WITH_SESSIONS,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"},
    });
    post(to, &[], &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
}

/// The end of the handshake of a session.
pub(crate) fn initialized(to: SocketAddr, session: &str) -> Vec<u8> {
    post(to, &of_session(session), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

/// A call in a session.
pub(crate) fn session_call(to: SocketAddr, session: &str, tool: Tool, id: u64) -> Vec<u8> {
    let params = json!({"name": tool.name(), "arguments": tool.arguments()});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    post(to, &of_session(session), &call)
}

/// Ends a session.
pub(crate) fn delete(to: SocketAddr, session: &str) -> Vec<u8> {
    format!("DELETE {PATH} HTTP/1.1\r\nHost: {to}\r\n{}\r\n", lines(&of_session(session))).into_bytes()
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn of_session(session: &str) -> [(&str, &str); 2] {
    [("MCP-Protocol-Version", WITH_SESSIONS), ("Mcp-Session-Id", session)]
}

fn post(to: SocketAddr, headers: &[(&str, &str)], body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{}\r\n{body}",
        body.len(),
        lines(headers)
    )
    .into_bytes()
}

fn lines(headers: &[(&str, &str)]) -> String {
    headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Tool, call};
    use serde_json::Value;

    #[test]
    fn a_call_carries_its_id_and_says_how_long_it_is() {
        let bytes = String::from_utf8_lossy(&call(([127, 0, 0, 1], 80).into(), Tool::Echo, 234)).into_owned();
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap_or_default();
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let length = format!("Content-Length: {}\r\n", body.len());
        assert_eq!((head.contains(&length), parsed.map(|call| call["id"].clone())), (true, Some(Value::from(234))));
    }
}
