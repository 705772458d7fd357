//! What is asked of a server: the tools, and the lines themselves.
//!
//! It only makes bytes; it never reads or writes any.

use bench_kit::era::Era;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

/// The request that opens the connection, under id 0.
pub(crate) fn opening(era: Era) -> String {
    let request = match era {
        Era::Initialize => json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": era.revision(),
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "0"},
            },
        }),
        Era::Stateless => json!({
            "jsonrpc": "2.0", "id": 0, "method": "server/discover",
            "params": {"_meta": meta(era)},
        }),
    };
    format!("{request}\n")
}

/// What follows the answer to the opening.
pub(crate) const fn opened(era: Era) -> &'static str {
    match era {
        Era::Initialize => "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
        Era::Stateless => "",
    }
}

fn meta(era: Era) -> serde_json::Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": era.revision(),
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A tool that every server has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tool {
    Echo,
    Add,
    Blob,
}

impl Tool {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Add => "add",
            Self::Blob => "blob",
        }
    }

    fn arguments(self) -> serde_json::Value {
        match self {
            Self::Echo => json!({"text": ECHOED}),
            Self::Add => json!({"a": 20, "b": 22}),
            Self::Blob => json!({"bytes": BLOB_BYTES}),
        }
    }

    /// The text that the right answer has, as a unit and how often it is repeated: what the bare server is told to say.
    pub(crate) const fn text(self) -> (&'static str, usize) {
        match self {
            Self::Echo => (ECHOED, 1),
            Self::Add => ("42", 1),
            Self::Blob => ("x", BLOB_BYTES),
        }
    }

    /// Whether this text is the right answer. What letters a blob is made of is the server's choice, as long as they
    /// are ASCII that JSON does not escape: anything else would change the work.
    pub(crate) fn is_answered_by(self, text: &str) -> bool {
        match self {
            Self::Blob => {
                text.len() == BLOB_BYTES
                    && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\')
            }
            Self::Echo | Self::Add => text == self.text().0,
        }
    }
}

/// A call of a tool that answers after ten minutes.
pub(crate) fn slow_call(id: u64) -> String {
    let params = json!({"name": "sleep", "arguments": {"ms": 600_000}});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n")
}

/// The cancellation of a call.
pub(crate) fn cancellation(id: u64) -> String {
    let params = json!({"requestId": id});
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}\n")
}

const ECHOED: &str = "The quick brown fox jumps over the lazy dog";
const BLOB_BYTES: usize = 65_536;

/// A `tools/call` that is written again and again, each time under another id.
pub(crate) struct Call {
    tail: Vec<u8>,
}

impl Call {
    pub(crate) fn new(era: Era, tool: Tool) -> Self {
        let params = match era {
            Era::Initialize => json!({"name": tool.name(), "arguments": tool.arguments()}),
            Era::Stateless => {
                json!({"_meta": meta(era), "name": tool.name(), "arguments": tool.arguments()})
            }
        };
        Self { tail: format!(",\"method\":\"tools/call\",\"params\":{params}}}\n").into_bytes() }
    }

    pub(crate) fn write_under(&self, id: u64, to: &mut Vec<u8>) {
        to.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        write_decimal(id, to);
        to.extend_from_slice(&self.tail);
    }
}

fn write_decimal(mut number: u64, to: &mut Vec<u8>) {
    let start = to.len();
    loop {
        to.push(b"0123456789"[usize::try_from(number % 10).unwrap_or(0)]);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    to[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::{Call, Tool};
    use bench_kit::era::Era;
    use serde_json::Value;

    #[test]
    fn a_call_is_one_line_of_json_under_its_id() {
        for (era, id) in [(Era::Initialize, 0), (Era::Stateless, 1_234_567_890_123)] {
            let mut line = Vec::new();
            Call::new(era, Tool::Echo).write_under(id, &mut line);
            let end = line.pop();
            let parsed: Option<Value> = serde_json::from_slice(&line).ok();
            assert_eq!((end, parsed.map(|call| call["id"].clone())), (Some(b'\n'), Some(Value::from(id))));
        }
    }
}
