//! Tools that send notifications while they run (progress, log messages), and one that makes its client reconnect.

use std::time::Duration;

use steadfast::prelude::*;
use steadfast::{LoggingLevel, tool};

/// The pause of a test tool between two progress notifications: long enough that they are not merged.
const BETWEEN: Duration = Duration::from_millis(50);

pub(super) fn tools() -> [ServerTool; 4] {
    [test_tool_with_progress(), test_tool_with_logging(), test_logging_tool(), test_reconnection()]
}

/// Reports progress in three steps.
#[tool(read_only)]
async fn test_tool_with_progress(ctx: Context) -> &'static str {
    ctx.progress_of(0.0, 100.0);
    for done in [50.0, 100.0] {
        tokio::time::sleep(BETWEEN).await;
        ctx.progress_of(done, 100.0);
    }
    "Tool with progress executed successfully"
}

/// Writes three log messages.
#[tool(read_only)]
async fn test_tool_with_logging(ctx: Context) -> &'static str {
    ctx.log(LoggingLevel::Info, "Tool execution started");
    for message in ["Tool processing data", "Tool execution completed"] {
        tokio::time::sleep(BETWEEN).await;
        ctx.log(LoggingLevel::Info, message);
    }
    "Tool with logging executed successfully"
}

/// Writes a log message, which only clients that set a log level may get.
#[tool(read_only)]
async fn test_logging_tool(ctx: Context) -> &'static str {
    ctx.log(LoggingLevel::Error, "Sent only to clients that set a log level");
    "Logged"
}

/// Closes the SSE stream of the response, and returns after the client has reconnected.
#[tool(read_only)]
async fn test_reconnection(ctx: Context) -> &'static str {
    ctx.release_connection();
    tokio::time::sleep(BETWEEN * 2).await;
    "Reconnection test completed successfully"
}
