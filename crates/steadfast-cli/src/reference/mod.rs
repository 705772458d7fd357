//! The reference server: every feature of the protocol by its smallest example, and tools to try the laws by hand.

mod asks;
mod counter;
mod laws;
mod reports;
mod trouble;

use steadfast::prelude::*;

use counter::Counter;

/// What the handlers of the server share.
#[derive(Default)]
pub(crate) struct Reference {
    counter: Counter,
}

/// A server to try things with. Some of its tools answer, report, ask the client or change a resource, as tools do. Others
/// block, panic, print or are slow to stop, to show that nobody else notices.
#[server(name = "steadfast", title = "Steadfast reference server", parts(reports, asks, counter, laws, trouble))]
impl Reference {
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

    /// Returns that much text.
    #[tool(read_only, idempotent)]
    async fn blob(
        &self,
        /// How many bytes
        #[arg(default = 65_536)]
        bytes: usize,
    ) -> steadfast::Result<String> {
        const MOST: usize = 64 << 20;
        if bytes > MOST {
            return Err(ToolError::new(format!("at most {MOST} bytes")));
        }
        Ok("x".repeat(bytes))
    }
}
