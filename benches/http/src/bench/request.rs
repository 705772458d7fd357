//! What is asked of a server: the heads and bodies themselves.
//!
//! It only makes bytes; it never reads or writes any.

use bench_kit::endpoint::PATH;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The stateless revision, which all calls are written in.
pub(crate) const MODERN: &str = "2026-07-28";
/// The newest revision with sessions.
pub(crate) const WITH_SESSIONS: &str = "2025-11-25";

/// A tool that every server has, but for the bare one, which has the first only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The one that is measured.
    Add,
    /// Answers with much text, which is measured too.
    Blob,
    /// Answers after a while, with JSON.
    Wait,
    /// Answers after the same while, and reports before: a stream of two events.
    Report,
}

/// How much text the blob has.
pub(crate) const BLOB_BYTES: usize = 65_536;

/// How long the slow tools take. A delayed acknowledgement takes eight times as long.
const MILLISECONDS: u64 = 5;

impl Tool {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Blob => "blob",
            Self::Wait => "wait",
            Self::Report => "report",
        }
    }

    fn arguments(self) -> Value {
        match self {
            Self::Add => json!({"a": 20, "b": 22}),
            Self::Blob => json!({"bytes": BLOB_BYTES}),
            Self::Wait | Self::Report => json!({"ms": MILLISECONDS}),
        }
    }

    /// Whether this text is the right answer.
    pub(crate) fn is_answered_by(self, text: &str) -> bool {
        match self {
            Self::Add => text == "42",
            Self::Blob => text.len() == BLOB_BYTES,
            Self::Wait => text == "waited",
            Self::Report => text == "reported",
        }
    }
}

/// A `tools/call` that is written again and again, each time under another id of the same length.
pub(crate) struct Call {
    bytes: Vec<u8>,
    /// Where the id stands.
    id: std::ops::Range<usize>,
}

/// The first id: all that follow have as many digits.
pub(crate) const FIRST_ID: u64 = 1_000_000_000;

impl Call {
    /// A stateless call.
    pub(crate) fn new(to: SocketAddr, tool: Tool) -> Self {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if tool == Tool::Report {
            meta["progressToken"] = json!("t");
        }
        let params = json!({"_meta": meta, "name": tool.name(), "arguments": tool.arguments()});
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool.name())];
        Self::with(to, &headers, &params)
    }

    /// A call in a session.
    pub(crate) fn in_session(to: SocketAddr, tool: Tool, session: &str) -> Self {
        let params = json!({"name": tool.name(), "arguments": tool.arguments()});
        Self::with(to, &[("MCP-Protocol-Version", WITH_SESSIONS), ("Mcp-Session-Id", session)], &params)
    }

    fn with(to: SocketAddr, headers: &[(&str, &str)], params: &Value) -> Self {
        let before = "{\"jsonrpc\":\"2.0\",\"id\":";
        let body = format!("{before}{FIRST_ID},\"method\":\"tools/call\",\"params\":{params}}}");
        let bytes = post(to, headers, &body);
        let start = bytes.len() - body.len() + before.len();
        Self { id: start..start + FIRST_ID.to_string().len(), bytes }
    }

    pub(crate) fn under(&mut self, id: u64) -> &[u8] {
        let mut rest = id;
        for digit in self.bytes[self.id.clone()].iter_mut().rev() {
            *digit = b"0123456789"[usize::try_from(rest % 10).unwrap_or(0)];
            rest /= 10;
        }
        &self.bytes
    }
}

/// Opens a session.
pub(crate) fn initialize(to: SocketAddr) -> Vec<u8> {
    let body = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": WITH_SESSIONS,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        },
    });
    post(to, &[], &body.to_string())
}

/// The client's part of the handshake is over.
pub(crate) fn initialized(to: SocketAddr, session: &str) -> Vec<u8> {
    let body = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    post(to, &[("MCP-Protocol-Version", WITH_SESSIONS), ("Mcp-Session-Id", session)], body)
}

/// Opens the stream of a session.
pub(crate) fn listen(to: SocketAddr, session: &str) -> Vec<u8> {
    format!(
        "GET {PATH} HTTP/1.1\r\nHost: {to}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: {WITH_SESSIONS}\r\n\
         Mcp-Session-Id: {session}\r\n\r\n"
    )
    .into_bytes()
}

fn post(to: SocketAddr, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    format!("{head}\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Call, FIRST_ID, Tool};
    use serde_json::Value;

    #[test]
    fn a_call_carries_its_id_and_says_how_long_it_is() {
        let mut call = Call::new(([127, 0, 0, 1], 80).into(), Tool::Add);
        let bytes = String::from_utf8_lossy(call.under(FIRST_ID + 234)).into_owned();
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap_or_default();
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let length = format!("Content-Length: {}\r\n", body.len());
        assert_eq!(
            (head.contains(&length), parsed.map(|call| call["id"].clone())),
            (true, Some(Value::from(FIRST_ID + 234)))
        );
    }
}
