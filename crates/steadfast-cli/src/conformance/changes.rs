//! Tools that change the lists of the server, so that subscribers are notified.
//!
//! The test tools replace a tool or a prompt by itself, so that the server's lists stay the same for concurrent
//! readers.

use steadfast::prelude::*;
use steadfast::tool;

pub(super) fn tools() -> [ServerTool; 2] {
    [test_trigger_tool_change(), test_trigger_prompt_change()]
}

/// Changes the list of tools.
#[tool]
async fn test_trigger_tool_change(ctx: Context) -> &'static str {
    if let Some(server) = ctx.server()
        && let Some(tool) = server.tool("test_simple_text")
    {
        server.add_tool(tool);
    }
    "The list of tools has changed"
}

/// Changes the list of prompts.
#[tool]
async fn test_trigger_prompt_change(ctx: Context) -> &'static str {
    if let Some(server) = ctx.server()
        && let Some(prompt) = server.prompt("test_simple_prompt")
    {
        server.add_prompt(prompt);
    }
    "The list of prompts has changed"
}
