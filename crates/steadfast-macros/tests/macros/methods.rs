//! `#[server]` on `impl` blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use steadfast::server::RequiredClientCapability;
use steadfast::{Context, Error, IntoServer, Structured, server};

use crate::{called, complaint};

struct Counter {
    count: AtomicU32,
    step: u32,
}

/// Counts things
/// one by one.
///
/// Never forgets.
#[server(parts(admin, strange))]
impl Counter {
    /// Counts up.
    #[tool(title = "Up", needs = elicitation_url, needs(sampling, roots), idempotent = false, destructive = false)]
    async fn up(&self, by: Option<u32>) -> u32 {
        self.count.fetch_add(by.unwrap_or(self.step), Ordering::Relaxed)
    }

    /// Reads the count.
    ///
    /// More about it.
    #[tool(read_only)]
    fn read(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    #[tool(name = "count.divide", cancel = cooperative, icon = "https://example.com/a.png", icon = "data:,")]
    async fn divide(&self, ctx: Context, by: u32) -> Result<u32, String> {
        let _ = ctx;
        self.read().checked_div(by).ok_or_else(|| "by zero".to_owned())
    }

    fn not_a_tool(&self) -> u32 {
        self.read()
    }
}

/// A part may be in another module, and so in another file.
mod administration {
    use super::*;

    #[server(part = admin)]
    impl Counter {
        /// Sets the count.
        #[tool]
        async fn reset(&self, #[arg(default)] to: u32) -> steadfast::ToolResult<()> {
            if to > 100 {
                return Err(Error::invalid_params("at most 100").into());
            }
            self.count.store(to, Ordering::Relaxed);
            Ok(())
        }
    }
}

#[server(part = strange)]
impl Counter {
    #[tool]
    async fn shared(self: Arc<Self>) -> usize {
        Arc::strong_count(&self)
    }

    #[tool]
    async fn borrowed(self: &Arc<Self>, ctx: &Context) -> bool {
        let _ = ctx.clone();
        Arc::strong_count(self) > 0
    }

    #[cfg(any())]
    #[tool]
    async fn compiled_out(&self, missing: ThereIsNoSuchType) {}
}

fn counter() -> Counter {
    Counter { count: AtomicU32::new(40), step: 2 }
}

#[test]
fn the_server_is_named_and_described_by_its_block() {
    let server = counter().into_server();
    assert_eq!(server.info().name, "Counter");
    assert_eq!(server.info().version, env!("CARGO_PKG_VERSION"));
    assert_eq!(server.info().description.as_deref(), Some("Counts things one by one."));
    assert_eq!(server.instructions(), Some("Counts things\none by one.\n\nNever forgets."));
    let names: Vec<String> = server.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["up", "read", "count.divide", "reset", "shared", "borrowed"]);
}

#[tokio::test]
async fn tools_share_the_value() {
    let counter = Arc::new(counter());
    let server = Arc::clone(&counter).into_server();
    called(&server.tool("up").unwrap(), json!({})).await;
    assert_eq!(counter.not_a_tool(), 42);
    assert_eq!(called(&server.tool("up").unwrap(), json!({ "by": 8 })).await, "42");
    assert_eq!(called(&server.tool("read").unwrap(), json!({})).await, "50");
    assert_eq!(called(&server.tool("borrowed").unwrap(), json!({})).await, "true");
    assert_ne!(called(&server.tool("shared").unwrap(), json!({})).await, "0");
}

#[tokio::test]
async fn errors_are_sorted_by_who_reads_them() {
    let server = counter().into_server();
    assert_eq!(complaint(&server.tool("count.divide").unwrap(), json!({ "by": 0 })).await, "by zero");
    let error = server.tool("reset").unwrap().call(json!({ "to": 101 })).await.unwrap_err();
    assert_eq!(error.object().code, steadfast::model::code::INVALID_PARAMS);
}

#[test]
fn options_reach_the_description() {
    let server = counter().into_server();
    let up = server.tool("up").unwrap();
    assert_eq!(up.definition().title.as_deref(), Some("Up"));
    assert_eq!(up.definition().description.as_deref(), Some("Counts up."));
    let hints = up.definition().annotations.clone().unwrap();
    assert_eq!((hints.idempotent_hint, hints.destructive_hint, hints.read_only_hint), (Some(false), Some(false), None));
    assert_eq!(
        up.needs(),
        [RequiredClientCapability::ElicitationUrl, RequiredClientCapability::Sampling, RequiredClientCapability::Roots]
    );
    let divide = server.tool("count.divide").unwrap();
    assert!(divide.is_cooperative() && !up.is_cooperative());
    assert_eq!(divide.definition().icons.len(), 2);
    assert_eq!(divide.definition().description, None);
    let read = server.tool("read").unwrap();
    assert_eq!(read.definition().description.as_deref(), Some("Reads the count.\n\nMore about it."));
}

trait Store: Send + Sync + 'static {
    type Key: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static;
    fn find(&self, key: &Self::Key) -> Option<String>;
}

struct Shelf<S, const N: usize>
where
    S: Store,
{
    store: S,
}

#[server(name = "shelf", version = "9", title = "Shelf", instructions = "Find.", website = "https://example.com")]
impl<S, const N: usize> Shelf<S, N>
where
    S: Store,
{
    #[tool]
    async fn find(&self, key: S::Key, #[arg(default = N)] depth: usize) -> Option<String> {
        self.store.find(&key).map(|found| format!("{found} at {depth}"))
    }

    #[tool]
    async fn pair(&self, other: (u8, String)) -> Structured<(u8, String)> {
        Structured(other)
    }
}

struct Tens;

impl Store for Tens {
    type Key = u8;
    fn find(&self, key: &u8) -> Option<String> {
        key.is_multiple_of(10).then(|| format!("ten times {}", key / 10))
    }
}

#[tokio::test]
async fn a_generic_block_is_a_server() {
    let server = Shelf::<_, 3> { store: Tens }.into_server();
    assert_eq!(server.info().name, "shelf");
    assert_eq!(server.info().version, "9");
    assert_eq!(server.instructions(), Some("Find."));
    let find = server.tool("find").unwrap();
    assert_eq!(find.definition().input_schema["properties"]["depth"]["default"], 3);
    assert_eq!(called(&find, json!({ "key": 20 })).await, "ten times 2 at 3");
    assert_eq!(called(&find, json!({ "key": 21 })).await, "");
    assert!(complaint(&find, json!({ "key": "x" })).await.starts_with("Bad argument `key`"));
}

struct Growing;

#[server(expect_prompts, expect_resources = false)]
impl Growing {
    #[tool]
    async fn grow(&self) {}
}

#[tokio::test]
async fn a_block_may_expect_what_comes_at_run_time() {
    let client = steadfast::Client::connect(Growing.into_server()).await.unwrap();
    let declared = &client.server().server_capabilities;
    assert!(declared.prompts.is_some());
    assert!(declared.resources.is_none());
}
