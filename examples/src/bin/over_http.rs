//! A server over Streamable HTTP, and a client that connects to its URL.

use std::net::TcpListener;

use serde_json::json;
use steadfast::prelude::*;

struct Clock;

/// Returns the time.
#[server]
impl Clock {
    /// Seconds since 1970.
    #[tool(read_only)]
    async fn now(&self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_secs())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `Clock.serve_http("127.0.0.1:3210").await` is enough for a program. This one takes a free port, and shuts down.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = Clock.serve_http_on(listener).shutdown_when(async move { drop(stopped.await) });
    let served = tokio::spawn(serving.run());

    let client = Client::connect(&*url).await?;
    let now = client.call_tool("now", json!({})).await?;
    println!("revision {}, {} seconds", client.revision(), now.content[0].as_text().unwrap_or_default());
    client.close().await;

    drop(stop);
    served.await??;
    Ok(())
}
