//! Servers and clients together, in memory, over sockets and over child processes.

mod auto_traits;
mod client;
#[cfg(feature = "http")]
mod http;
mod runtime;
mod server;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use steadfast::prelude::*;
use steadfast::{CallToolResult, JsonObject};
use tokio::sync::Notify;

/// Something that happened, for a test to wait for.
#[derive(Clone, Default)]
struct Signal {
    notify: Arc<Notify>,
    count: Arc<AtomicUsize>,
}

impl Signal {
    fn set(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_one();
    }

    async fn wait(&self) {
        self.notify.notified().await;
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// A value whose drop is the signal.
    fn on_drop(&self) -> impl Drop + Send + use<> {
        struct OnDrop(Signal);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        OnDrop(self.clone())
    }
}

fn server(tools: impl IntoIterator<Item = ServerTool>) -> Server {
    Server::builder("test", "1.0.0").tools(tools).build()
}

fn echo() -> ServerTool {
    ServerTool::new("echo")
        .handler(|arguments: JsonObject| async move { arguments["text"].as_str().unwrap_or_default().to_owned() })
}

/// Starts, sets `begun`, and then waits for ever.
fn forever(begun: &Signal, dropped: &Signal) -> ServerTool {
    let (begun, dropped) = (begun.clone(), dropped.clone());
    ServerTool::new("forever").handler(move || {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        async move {
            let _dropped = dropped.on_drop();
            begun.set();
            std::future::pending::<()>().await;
        }
    })
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(Content::as_text).unwrap_or_default()
}

/// For what would hang if it were broken: a test that fails is better than one that does not end.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("this did not happen")
}

/// The output of a future, unless it takes longer than that.
async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.ok()
}
