//! A resource that changes, and the tool that changes it.

use std::sync::atomic::{AtomicU64, Ordering};

use steadfast::prelude::*;

use super::CliReferenceServer;

const COUNTER: &str = "steadfast://counter";

/// The number of calls of the tool `count` so far, by all clients together.
#[derive(Default)]
pub(super) struct ReferenceServerCounter(AtomicU64);

#[server(part = counter)]
impl CliReferenceServer {
    /// Increments the counter steadfast://counter and notifies its subscribers.
    #[tool]
    async fn count(&self, ctx: Context) -> String {
        let count = self.counter.0.fetch_add(1, Ordering::Relaxed) + 1;
        ctx.resource_updated(COUNTER);
        count.to_string()
    }

    /// The number of calls of the tool `count`.
    #[resource("steadfast://counter", mime_type = "text/plain")]
    async fn counter(&self) -> String {
        self.counter.0.load(Ordering::Relaxed).to_string()
    }
}
