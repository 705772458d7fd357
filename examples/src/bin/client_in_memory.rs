//! A client beside its server, in one process: how to test a server without starting anything.
//!
//! Also what a failure says: whether the server may have acted on the call.

use std::time::Duration;

use serde_json::json;
use steadfast::client::Era;
use steadfast::prelude::*;
use steadfast::{Outcome, Revision};

struct Shop;

/// A shop with few things.
#[server(name = "shop")]
impl Shop {
    /// Price of a thing.
    #[tool(read_only)]
    async fn price(&self, thing: String) -> steadfast::Result<u32> {
        match thing.as_str() {
            "rope" => Ok(12),
            _ => Err(ToolError::new(format!("there is no {thing} here"))),
        }
    }

    /// Asks the owner, who is out.
    #[tool]
    async fn ask_the_owner(&self) {
        std::future::pending::<()>().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    // The newest revision that both speak; the same server speaks the older ones too.
    let client = Client::connect(Shop).await?;
    println!("newest: {}", client.revision());
    let older = Client::connect(Shop).era(Era::Handshake(Revision::V2025_06_18)).await?;
    println!("older: {}", older.revision());

    // The tool did it, and the tool failed: both are answers, and a model reads them.
    for thing in ["rope", "gold"] {
        let result = client.call_tool("price", json!({ "thing": thing })).await?;
        println!("{thing}: {:?}, failed: {}", result.content.first().and_then(Content::as_text), result.is_error());
    }

    // Everything else is an error that says what is known of the call.
    let unknown_tool = client.call_tool("steal", json!({})).await;
    let too_slow = client.call_tool("ask_the_owner", json!({})).timeout(Duration::from_millis(200)).await;
    for error in [unknown_tool, too_slow].into_iter().filter_map(Result::err) {
        let advice = match error.outcome() {
            Outcome::NotSent => "the server never saw it: call again",
            Outcome::Refused => "the server said no",
            Outcome::Answered => "the server did it, and its answer cannot be used",
            Outcome::Unknown => "it may have been done: look before calling again",
        };
        println!("{error}: {advice}");
    }
    older.close().await;
    client.close().await;
    Ok(())
}
