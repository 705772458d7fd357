//! Tools that send notifications while they run: progress and log messages.

use std::time::Duration;

use steadfast::LoggingLevel;
use steadfast::prelude::*;

use super::CliReferenceServer;

#[server(part = reports)]
impl CliReferenceServer {
    /// Sends a progress notification per step.
    #[tool]
    async fn progress(
        &self,
        /// Number of steps
        steps: u32,
        /// Duration of a step in milliseconds
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

    /// Sends the text as log messages of the levels debug, info, warning and error. The client's log level decides which of the
    /// log messages arrive.
    #[tool(read_only)]
    async fn log(&self, text: String, ctx: Context) -> &'static str {
        for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Warning, LoggingLevel::Error] {
            ctx.log(level, text.as_str());
        }
        "logged"
    }

    /// Closes the SSE stream of the response, so that the client has to reconnect to get the result (only over HTTP in revision
    /// 2025-11-25).
    #[tool(read_only)]
    async fn release_connection(&self, #[arg(default = 100)] ms: u64, ctx: Context) -> &'static str {
        ctx.release_connection();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "welcome back"
    }
}
