//! Keeping up with a server: how far a call is, what the server writes to its log, what has changed, and what need not be asked
//! for again until it has.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use steadfast::client::{Change, Changes, ResponseCache};
use steadfast::prelude::*;
use steadfast::{Cache, CacheScope, Error, LoggingLevel, ResourceContents, SubscriptionFilter};
use tokio::time::sleep;

const SHELF: &str = "bakery://shelf";

#[derive(Default)]
struct Bakery {
    loaves: AtomicU32,
    /// How often somebody looked.
    looks: AtomicU32,
}

/// Bread.
#[server(name = "bakery")]
impl Bakery {
    /// Bakes loaves, one after the other.
    #[tool]
    async fn bake(&self, loaves: u32, ctx: Context) -> String {
        ctx.log(LoggingLevel::Debug, "flour, water, salt");
        ctx.log(LoggingLevel::Info, "the oven is hot");
        for loaf in 1..=loaves {
            sleep(Duration::from_millis(10)).await;
            self.loaves.fetch_add(1, Ordering::Relaxed);
            ctx.progress_of(loaf.into(), loaves.into());
        }
        ctx.resource_updated(SHELF);
        format!("{loaves} loaves")
    }

    /// What there is. For an hour nobody needs to look again, unless they are told of a change.
    #[resource("bakery://shelf", cache = Cache::new(3_600_000, CacheScope::Public))]
    async fn shelf(&self) -> String {
        let look = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let full = self.loaves.load(Ordering::Relaxed) > 0;
        format!("{}, at look {look}", if full { "bread" } else { "nothing" })
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = Bakery::default().into_server();
    // Two clients of one server share what it lets everyone keep.
    let cache = ResponseCache::new();
    let client = Client::connect(server.clone()).cache(cache.clone()).await?;
    let neighbour = Client::connect(server).cache(cache.clone()).await?;

    // What changes is a stream. It begins with what the server will tell of: from there on nothing is missed.
    let mut changes = client.changes(SubscriptionFilter::new().with_resource_subscriptions(vec![SHELF.to_owned()]));
    heard(&mut changes).await?;
    println!("one looks: {}", look(&client).await?);
    println!("the neighbour need not: {}, {} kept", look(&neighbour).await?, cache.len());

    // So is the log, from a severity on.
    let mut logs = client.logs(LoggingLevel::Info);
    client.call_tool("bake", json!({ "loaves": 2 })).await?;
    if let Some(message) = logs.next().await {
        let message = message?;
        println!("the log, {}: {}", message.level, message.data);
    }

    // Bread has changed the shelf. Whoever hears of it forgets what was kept, for all that share it.
    heard(&mut changes).await?;
    println!("the neighbour looks again: {}", look(&neighbour).await?);

    // Progress is a stream beside the result. The canceller may be anywhere, in any task.
    let (mut progress, result) = client.call_tool("bake", json!({ "loaves": 1_000_000 })).with_progress();
    let canceller = result.canceller();
    while let Some(step) = progress.next().await {
        if step.progress >= 3.0 && !canceller.is_cancelled() {
            println!("that is enough of {}", step.total.unwrap_or_default());
            canceller.cancel();
        }
    }
    if let Err(error) = result.await {
        println!("{error}, outcome {:?}", error.outcome());
    }
    neighbour.close().await;
    // Streams keep their client open; here nobody listens any more.
    drop((changes, logs));
    client.close().await;
    Ok(())
}

async fn heard(changes: &mut Changes) -> Result<(), Error> {
    match changes.next().await.transpose()? {
        Some(Change::Listening(_)) => println!("changes: listening"),
        Some(change) => println!("changes: {change:?}"),
        None => println!("changes: no more"),
    }
    Ok(())
}

async fn look(client: &Client) -> Result<String, Error> {
    let contents = client.read_resource(SHELF).await?.contents;
    Ok(contents.iter().find_map(ResourceContents::as_text).unwrap_or_default().to_owned())
}
