//! A long call: progress, cancellation by the client, and cleanup in the server.
//!
//! When a call is cancelled, its handler is dropped at its next `.await`. Cleanup goes into `ctx.on_cancel`, and work that must
//! not be interrupted into `ctx.shield`.

use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

struct Builder {
    /// What happened; printed by `main`.
    journal: UnboundedSender<String>,
}

/// Builds things, slowly.
#[server]
impl Builder {
    /// Lays bricks until there is a house.
    #[tool]
    async fn build(&self, bricks: u32, ctx: Context) -> String {
        let journal = self.journal.clone();
        ctx.on_cancel(async move {
            _ = journal.send("cleanup: the scaffold is taken down".to_owned());
        });
        for brick in 1..=bricks {
            ctx.progress(f64::from(brick) / f64::from(bricks), format!("brick {brick}"));
            let journal = self.journal.clone();
            // A cancellation does not interrupt this: the brick is laid completely.
            ctx.shield(async move {
                sleep(Duration::from_millis(50)).await;
                _ = journal.send(format!("brick {brick} is in its place"));
            })
            .await;
        }
        format!("a house of {bricks} bricks")
    }

    /// Cooperative: a cancellation does not drop the handler, which finishes its sentence first.
    #[tool(cancel = cooperative)]
    async fn speak(&self, ctx: Context) -> &'static str {
        _ = self.journal.send("speaker: good evening".to_owned());
        let why = ctx.cancelled().await;
        _ = self.journal.send(format!("speaker: {why}, so good night"));
        "this result is discarded"
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let (journal, mut entries) = unbounded_channel();
    let client = Client::connect(Builder { journal }).await?;

    // A call that completes.
    let house = client.call_tool("build", json!({ "bricks": 3 })).on_progress(|progress| {
        println!("progress {:.2}: {}", progress.progress, progress.message.unwrap_or_default());
    });
    println!("{}", house.await?.content.first().and_then(Content::as_text).unwrap_or_default());

    // A call that times out. It is cancelled at the server, which may have executed a part of it: the outcome is unknown.
    let castle = client.call_tool("build", json!({ "bricks": 1_000_000 })).timeout(Duration::from_millis(220)).await;
    if let Err(error) = castle {
        println!("the castle: {error}, outcome {:?}", error.outcome());
    }
    // The current brick is completed, and then the cleanup runs.
    while let Some(entry) = entries.recv().await {
        println!("{entry}");
        if entry.starts_with("cleanup") {
            break;
        }
    }

    // A call that is dropped: it is cancelled too, without an error.
    let mut speech = Some(client.call_tool("speak", json!({})).start());
    while let Some(entry) = entries.recv().await {
        println!("{entry}");
        match entry.as_str() {
            "speaker: good evening" => drop(speech.take()),
            entry if entry.ends_with("good night") => break,
            _ => {}
        }
    }
    client.close().await;
    Ok(())
}
