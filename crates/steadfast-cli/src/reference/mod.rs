//! The reference server: a minimal example of each feature of MCP, and tools that misbehave, to test by hand what the library
//! promises.

mod asks;
mod counter;
mod laws;
mod reports;
mod trouble;

use steadfast::prelude::*;

use counter::ReferenceServerCounter;

/// The state that all handlers of the reference server share.
#[derive(Default)]
pub(crate) struct CliReferenceServer {
    counter: ReferenceServerCounter,
}

/// A server for tests and demonstrations. Some tools show features of MCP: results, progress, log messages, input from the
/// client, resource updates. The other tools misbehave on purpose: they block, panic, print, or stop slowly.
#[server(name = "steadfast", title = "Steadfast reference server", parts(reports, asks, counter, laws, trouble))]
impl CliReferenceServer {
    /// Returns the text.
    #[tool(read_only, idempotent)]
    async fn echo(&self, text: String) -> String {
        text
    }

    /// Adds two numbers.
    #[tool(read_only, idempotent)]
    async fn add(&self, a: f64, b: f64) -> String {
        (a + b).to_string()
    }

    /// Returns a text of the given length.
    #[tool(read_only, idempotent)]
    async fn blob(
        &self,
        /// Length of the text in bytes
        #[arg(default = 65_536)]
        bytes: usize,
    ) -> steadfast::ToolResult<String> {
        const MAX_BYTES: usize = 64 << 20;
        if bytes > MAX_BYTES {
            return Err(ToolError::new(format!(
                "the argument `bytes` is {bytes}, but this tool returns at most {MAX_BYTES} bytes"
            )));
        }
        Ok("x".repeat(bytes))
    }
}
