//! Tools that tell the client something while they run.

use std::time::Duration;

use steadfast::LoggingLevel;
use steadfast::prelude::*;

use super::Reference;

#[server(part = reports)]
impl Reference {
    /// Reports progress in steps.
    #[tool]
    async fn progress(
        &self,
        /// How many steps
        steps: u32,
        /// How long each takes
        #[arg(default = 10)]
        ms: u64,
        ctx: Context,
    ) -> String {
        for step in 1..=steps {
            ctx.progress_of(f64::from(step), f64::from(steps));
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        format!("{steps} steps")
    }

    /// Sends the text as log messages, from debug to error. The client sees those of the level that it asked for.
    #[tool(read_only)]
    async fn log(&self, text: String, ctx: Context) -> &'static str {
        for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Error] {
            ctx.log(level, text.as_str());
        }
        "logged"
    }

    /// Lets the client's connection go and answers when it has come back (HTTP in 2025-11-25; elsewhere it just answers).
    #[tool(read_only)]
    async fn let_go(&self, #[arg(default = 100)] ms: u64, ctx: Context) -> &'static str {
        ctx.release_connection();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "welcome back"
    }
}
