//! Notifications of a server as streams (progress, log messages, changes), and a response cache that they invalidate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use steadfast::client::{Change, ChangeStream, ResponseCache};
use steadfast::prelude::*;
use steadfast::{CacheHints, CacheScope, Error, LoggingLevel, ResourceContents, SubscriptionFilter};
use tokio::time::sleep;

const SHELF: &str = "bakery://shelf";

#[derive(Default)]
struct Bakery {
    loaves: AtomicU32,
    /// How often the resource was read.
    reads: AtomicU32,
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

    /// What is on the shelf. Clients may cache it for an hour, or until they are notified of a change.
    #[resource("bakery://shelf", cache = CacheHints::new(3_600_000, CacheScope::Public))]
    async fn shelf(&self) -> String {
        let read = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        let full = self.loaves.load(Ordering::Relaxed) > 0;
        format!("{}, read {read}", if full { "bread" } else { "nothing" })
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = Bakery::default().into_server();
    // Two clients of one server share a cache for its public responses.
    let cache = ResponseCache::new();
    let client = Client::connect(server.clone()).cache(cache.clone()).await?;
    let other = Client::connect(server).cache(cache.clone()).await?;

    // Changes are a stream. Its first item says which subscriptions are active: from there on no change is missed.
    let mut changes = client.changes(SubscriptionFilter::new().with_resource_subscriptions(vec![SHELF.to_owned()]));
    print_change(&mut changes).await?;
    println!("one client reads: {}", read(&client).await?);
    println!("the other uses the cache: {}, {} cached", read(&other).await?, cache.len());

    // So are log messages, from a level up.
    let mut logs = client.logs(LoggingLevel::Info);
    client.call_tool("bake", json!({ "loaves": 2 })).await?;
    if let Some(message) = logs.next().await {
        let message = message?;
        println!("log message, {}: {}", message.level, message.data);
    }

    // Baking has changed the shelf. The notification removes the cache entry, for all clients that share the cache.
    print_change(&mut changes).await?;
    println!("the other reads again: {}", read(&other).await?);

    // Progress is a stream next to the result. The canceller can be used in any task.
    let (mut progress, result) = client.call_tool("bake", json!({ "loaves": 1_000_000 })).start_with_progress();
    let canceller = result.canceller();
    while let Some(step) = progress.next().await {
        if step.progress >= 3.0 && !canceller.is_cancelled() {
            println!("cancelling after 3 of {}", step.total.unwrap_or_default());
            canceller.cancel();
        }
    }
    if let Err(error) = result.await {
        println!("{error}, outcome {:?}", error.outcome());
    }
    other.close().await;
    // Streams keep the connection open, so they are dropped first.
    drop((changes, logs));
    client.close().await;
    Ok(())
}

async fn print_change(changes: &mut ChangeStream) -> Result<(), Error> {
    match changes.next().await.transpose()? {
        Some(Change::Listening(_)) => println!("changes: listening"),
        Some(change) => println!("changes: {change:?}"),
        None => println!("changes: no more"),
    }
    Ok(())
}

async fn read(client: &Client) -> Result<String, Error> {
    let contents = client.read_resource(SHELF).await?.contents;
    Ok(contents.iter().find_map(ResourceContents::as_text).unwrap_or_default().to_owned())
}
