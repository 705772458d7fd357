//! A tool that requests input from the client while it runs: here, the roots that the client works in.
//!
//! Up to 2025-11-25 the server sends a request to the client, which ends with the call that it belongs to: if that is cancelled, or
//! the connection closes, the tool is notified at once. Since 2026-07-28 the response to the call is an input request, and the tool
//! runs again when the client repeats the call with the input. The code of the tool is the same.

use serde_json::json;
use steadfast::client::NegotiationMode;
use steadfast::prelude::*;
use steadfast::{ClientCapabilities, ListRootsResult, Revision, Root};

/// Counts the roots of the client.
#[tool(read_only)]
async fn count_folders(ctx: Context) -> steadfast::ToolResult<usize> {
    Ok(ctx.roots().await?.roots.len())
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let server = Server::builder("folders", "1.0.0").tool(count_folders()).build();
    let client = Client::connect(server.clone())
        .negotiation(NegotiationMode::Handshake(Revision::V2025_11_25))
        .capabilities(ClientCapabilities::new().with_roots(false))
        .on_roots(|_| async {
            Ok(ListRootsResult::new(vec![Root::new("file:///home/me/letters"), Root::new("file:///home/me/maps")]))
        })
        .await?;
    let result = client.call_tool("count_folders", json!({})).await?;
    println!("folders: {}", result.content.first().and_then(Content::as_text).unwrap_or_default());
    client.close().await;

    // A client without the capability gets no request: the call fails at once.
    let client = Client::connect(server).negotiation(NegotiationMode::Handshake(Revision::V2025_11_25)).await?;
    if let Err(error) = client.call_tool("count_folders", json!({})).await {
        println!("without roots: {error}");
    }
    client.close().await;
    Ok(())
}
