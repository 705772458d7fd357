//! Graceful shutdown of a server: calls in flight may respond within the drain window, then they are cancelled and clean up.
//!
//! `serve_stdio` does this when its input closes and on SIGTERM and SIGINT. For other transports, `shutdown_when` takes any future.

use std::time::{Duration, Instant};

use serde_json::json;
use steadfast::prelude::*;
use steadfast::{Limits, transport::memory};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Works for the given time. If it is cancelled, it prints the reason.
#[tool]
async fn work(#[state] begun: UnboundedSender<()>, ms: u64, ctx: Context) -> String {
    _ = begun.send(());
    let handle = ctx.clone();
    ctx.on_cancel(async move {
        let why = handle.cancel_reason().map(|why| why.to_string());
        println!("cleanup of the call of {ms} ms: {}", why.unwrap_or_default());
    });
    sleep(Duration::from_millis(ms)).await;
    format!("worked {ms} ms")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut limits = Limits::default();
    limits.drain_window = Duration::from_millis(500);
    limits.drain_deadline = Duration::from_secs(1);
    let (begin, mut begun) = unbounded_channel();
    let server = Server::builder("worker", "1.0.0").tool(work(begin)).limits(limits).build();

    let (here, there) = memory::pair(64 * 1024);
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.serve(there).shutdown_when(async move {
        // In a real program: `tokio::signal::ctrl_c().await`, for example.
        _ = stopped.await;
    });
    let served = tokio::spawn(serving.run());
    let client = Client::connect(here).await?;

    let quick = client.call_tool("work", json!({ "ms": 100 })).start();
    let slow = client.call_tool("work", json!({ "ms": 60_000 })).start();
    // Both are running now.
    _ = (begun.recv().await, begun.recv().await);
    let stopping = Instant::now();
    _ = stop.send(());

    println!("quick: {:?}", quick.await?.content.first().and_then(Content::as_text));
    if let Err(error) = slow.await {
        println!("slow: {error}");
    }
    let ended = served.await??;
    let within = if stopping.elapsed() < Duration::from_secs(5) { "within its deadline" } else { "late" };
    println!("ended {within}: {}; {} handlers were abandoned", ended.cause, ended.abandoned);
    Ok(())
}
