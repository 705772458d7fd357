//! A client and its server in one process: how to test a server without a child process or a socket.
//!
//! Also the outcome of an error: whether the server may have executed the call.

use std::time::Duration;

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::{Outcome, Revision};

struct Shop;

/// A small shop.
#[server(name = "shop")]
impl Shop {
    /// Price of a thing.
    #[tool(read_only)]
    async fn price(&self, thing: String) -> steadfast::ToolResult<u32> {
        match thing.as_str() {
            "rope" => Ok(12),
            _ => Err(ToolError::new(format!("there is no {thing} here"))),
        }
    }

    /// Asks the owner, and never returns.
    #[tool]
    async fn ask_the_owner(&self) {
        std::future::pending::<()>().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    // The newest revision that both support; the same server supports the older ones too.
    let client = Client::connect(Shop).await?;
    println!("newest: {}", client.revision());
    let older = Client::connect(Shop).negotiation(NegotiationMode::Handshake(Revision::V2025_06_18)).await?;
    println!("older: {}", older.revision());

    // Success and failure of a tool are both results, for the model to read.
    for thing in ["rope", "gold"] {
        let result = client.call_tool("price", json!({ "thing": thing })).await?;
        println!("{thing}: {:?}, failed: {}", result.content.first().and_then(Content::as_text), result.is_error());
    }

    // Everything else is an error, whose outcome says what is known of the call.
    let unknown_tool = client.call_tool("steal", json!({})).await;
    let too_slow = client.call_tool("ask_the_owner", json!({})).timeout(Duration::from_millis(200)).await;
    for error in [unknown_tool, too_slow].into_iter().filter_map(Result::err) {
        let advice = match error.outcome() {
            Outcome::NotSent => "it was not sent: safe to retry",
            Outcome::Refused => "the server rejected it",
            Outcome::Answered => "the server executed it, and its response cannot be used",
            Outcome::Unknown => "it may have been executed: check before retrying",
        };
        println!("{error}: {advice}");
    }
    older.close().await;
    client.close().await;
    Ok(())
}
