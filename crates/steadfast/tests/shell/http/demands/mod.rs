//! What the specification demands of Streamable HTTP, where no other test shows it.

mod headers;
mod modern;
mod principals;
mod sessions;

use super::*;

impl Sent {
    /// A call of 2026-07-28 of a client with these capabilities.
    fn capable(name: &str, capabilities: Value, meta: Value) -> Self {
        let sent = Self::modern(1, "tools/call", json!({"name": name, "arguments": {}, "_meta": meta}));
        sent.changed(|message| {
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        })
    }

    /// With another body and the same headers.
    fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut message = serde_json::from_slice(&self.body).unwrap();
        change(&mut message);
        self.body = message.to_string().into_bytes();
        self
    }

    fn with_body(mut self, body: &str) -> Self {
        self.body = body.into();
        self
    }
}

/// Says who is calling in progress and in the log, and waits to be let go.
fn talker(gate: &Signal) -> Tool {
    let gate = gate.clone();
    Tool::new("talk").handler(move |arguments: JsonObject, ctx: Context| {
        let gate = gate.clone();
        async move {
            let who = arguments["who"].as_str().unwrap_or_default().to_owned();
            ctx.progress(0.5, who.clone());
            ctx.log(steadfast::LoggingLevel::Error, who.clone());
            gate.wait().await;
            who
        }
    })
}

/// Who a message is about.
fn about(message: &Value) -> &str {
    let places = ["/params/message", "/params/data", "/result/content/0/text"];
    places.iter().find_map(|place| message.pointer(place)?.as_str()).unwrap_or_default()
}
