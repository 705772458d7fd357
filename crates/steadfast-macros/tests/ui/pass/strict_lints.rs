//! The generated code passes lints that a strict crate enables.
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use std::sync::Arc;
use steadfast::{IntoServer, server, tool};

/// Something with a tool.
#[derive(Debug)]
pub struct Thing;

/// A thing.
#[server]
impl Thing {
    /// Waits.
    #[tool(read_only)]
    async fn wait(&self, #[arg(default = 1)] seconds: u64) -> u64 {
        std::future::ready(seconds).await
    }
}

/// Counts.
#[tool]
#[must_use]
pub fn count(#[state] names: Arc<Vec<String>>) -> usize {
    names.len()
}

fn main() {
    Thing.into_server().add_tool(count(Arc::default()));
}
