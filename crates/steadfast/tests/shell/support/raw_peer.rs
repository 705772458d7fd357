//! A peer that writes and reads lines by hand.

use serde_json::json;
use steadfast::transport::Transport;
use steadfast::transport::memory::MemoryTransport;

/// A peer that writes and reads lines by hand.
pub(crate) struct RawPeer {
    end: MemoryTransport,
    held: Vec<u8>,
}

impl RawPeer {
    pub(crate) fn new(end: MemoryTransport) -> Self {
        Self { end, held: Vec::new() }
    }

    pub(crate) async fn send(&mut self, message: &serde_json::Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = std::future::poll_fn(|cx| self.end.poll_write(cx, bytes)).await.unwrap();
            bytes = &bytes[count..];
        }
    }

    /// The next line; `None` at the end of the stream.
    pub(crate) async fn line(&mut self) -> Option<serde_json::Value> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            let mut buffer = vec![0; 65536];
            let count = std::future::poll_fn(|cx| self.end.poll_read(cx, &mut buffer)).await.unwrap_or(0);
            if count == 0 {
                return None;
            }
            self.held.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads more bytes into the buffer, without returning a line.
    pub(crate) async fn read_some(&mut self) {
        let mut buffer = vec![0; 65536];
        let count = std::future::poll_fn(|cx| self.end.poll_read(cx, &mut buffer)).await.unwrap_or(0);
        self.held.extend_from_slice(&buffer[..count]);
    }

    /// Closes its output, and may still read.
    pub(crate) async fn end_output(&mut self) {
        std::future::poll_fn(|cx| self.end.poll_close(cx)).await.unwrap();
    }

    pub(crate) async fn open(&mut self, revision: &str) {
        self.send(&json!({"jsonrpc":"2.0","id":"init","method":"initialize","params":{
            "protocolVersion":revision,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}))
            .await;
        self.line().await.unwrap();
        self.send(&json!({"jsonrpc":"2.0","method":"notifications/initialized"})).await;
    }
}

/// A request that calls a tool without arguments.
pub(crate) fn tool_call(id: usize, tool: &str) -> serde_json::Value {
    json!({"jsonrpc":"2.0","id":id,"method":"tools/call","params":{"name":tool,"arguments":{}}})
}
