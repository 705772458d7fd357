//! A server on sockets: each accepted connection is a separate MCP session with the same server.
//!
//! There is no encryption and no authorization, so bind to loopback, or to a Unix socket that only its owner may open.

use serde_json::json;
use steadfast::prelude::*;
use steadfast::transport::stream::StreamTransport;
use tokio::net::{TcpListener, TcpStream};

/// Returns the text.
#[tool(read_only)]
async fn echo(text: String, ctx: Context) -> String {
    format!("{text} (to request {})", ctx.request_id())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("echo", "1.0.0").tool(echo()).build();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let accepting = tokio::spawn(accept(server.clone(), listener));
    call_echo("over TCP", StreamTransport::from(TcpStream::connect(address).await?)).await?;
    // Accepted connections continue; no new ones are accepted.
    accepting.abort();

    // A Unix socket, or any other reader and writer, is served in the same way.
    #[cfg(unix)]
    {
        let (here, there) = tokio::net::UnixStream::pair()?;
        let serving = tokio::spawn(server.clone().serve(StreamTransport::from(there)).into_future());
        call_echo("over a Unix socket", StreamTransport::from(here)).await?;
        serving.await??;
    }
    let (here, there) = tokio::io::duplex(4096);
    let serving = tokio::spawn(server.serve(StreamTransport::duplex(there)).into_future());
    call_echo("over any reader and writer", StreamTransport::duplex(here)).await?;
    serving.await??;
    Ok(())
}

async fn accept(server: Server, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(server.clone().serve(StreamTransport::from(stream)).into_future());
    }
}

async fn call_echo(text: &str, stream: StreamTransport) -> Result<(), steadfast::Error> {
    let client = Client::connect(stream).await?;
    let result = client.call_tool("echo", json!({ "text": text })).await?;
    println!("{}", result.content.first().and_then(Content::as_text).unwrap_or_default());
    client.close().await;
    Ok(())
}
