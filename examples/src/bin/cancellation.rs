//! A long call: progress on the way, a client that loses interest, and what is done about the half-finished work.
//!
//! When a call is cancelled, its handler is dropped at its next `.await`. What has to be undone goes into `ctx.on_cancel`,
//! what must not be left half done goes through `ctx.shield`.

use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

struct Builder {
    /// What happened, for `main` to print.
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
            // Whoever cancels now still finds this brick laid whole.
            ctx.shield(async move {
                sleep(Duration::from_millis(50)).await;
                _ = journal.send(format!("brick {brick} is in its place"));
            })
            .await;
        }
        format!("a house of {bricks} bricks")
    }

    /// Stops when it likes: a cancellation is a request, and this one finishes its sentence first.
    #[tool(cancel = cooperative)]
    async fn speak(&self, ctx: Context) -> &'static str {
        _ = self.journal.send("speaker: good evening".to_owned());
        let why = ctx.cancelled().await;
        _ = self.journal.send(format!("speaker: {why}, so good night"));
        "nobody hears this"
    }
}

#[tokio::main]
async fn main() -> Result<(), steadfast::Error> {
    let (journal, mut entries) = unbounded_channel();
    let client = Client::connect(Builder { journal }).await?;

    // A call that is waited for.
    let house = client.call_tool("build", json!({ "bricks": 3 })).on_progress(|progress| {
        println!("progress {:.2}: {}", progress.progress, progress.message.unwrap_or_default());
    });
    println!("{}", house.await?.content.first().and_then(Content::as_text).unwrap_or_default());

    // A call that takes too long. The server is told, and nobody knows how far it came: the outcome says so.
    let castle = client.call_tool("build", json!({ "bricks": 1_000_000 })).timeout(Duration::from_millis(220)).await;
    if let Err(error) = castle {
        println!("the castle: {error}, outcome {:?}", error.outcome());
    }
    // The brick that is being laid is laid, and then the scaffold comes down.
    while let Some(entry) = entries.recv().await {
        println!("{entry}");
        if entry.starts_with("cleanup") {
            break;
        }
    }

    // A call that is dropped: the same, without a word.
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
