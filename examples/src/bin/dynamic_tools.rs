//! A server without macros: tools built by hand, added and removed while clients are connected.
//!
//! The arguments of a tool with a hand-written schema are validated before the handler runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::json;
use steadfast::prelude::*;
use steadfast::{Error, JsonObject};

#[derive(Deserialize)]
struct Roll {
    sides: u64,
}

/// Builds the tool `roll_NAME`, like a program that reads its tools from a file or a database.
fn die(name: &str, rolls: &Arc<AtomicU64>) -> ServerTool {
    let rolls = Arc::clone(rolls);
    ServerTool::new(format!("roll_{name}"))
        .description(format!("Rolls the {name} die."))
        .input_schema(json!({
            "type": "object",
            "properties": { "sides": { "type": "integer", "minimum": 2, "maximum": 100 } },
            "required": ["sides"],
        }))
        // The handler may take a deserializable type, a `JsonObject`, a `Context`, both, or nothing.
        .handler(move |Roll { sides }: Roll| {
            let number = rolls.fetch_add(1, Ordering::Relaxed);
            async move { number.wrapping_mul(7) % sides + 1 }
        })
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let rolls = Arc::default();
    let server = Server::builder("dice", "1.0.0")
        .instructions("Dice that are added and removed.")
        .tool(die("red", &rolls))
        .tool(ServerTool::new("count").handler(|arguments: JsonObject| async move { arguments.len() }))
        .build();
    let client = Client::connect(server.clone()).await?;

    // Clones of a server share its state: connected clients see the change.
    server.add_tool(die("blue", &rolls));
    server.remove_tool("count");
    let names: Vec<String> = client.list_tools().await?.into_iter().map(|tool| tool.name).collect();
    println!("tools: {}", names.join(", "));

    for sides in [6, 1] {
        let result = client.call_tool("roll_blue", json!({ "sides": sides })).await?;
        println!("{sides} sides: {}", result.content.first().and_then(Content::as_text).unwrap_or_default());
    }
    client.close().await;
    Ok(())
}
