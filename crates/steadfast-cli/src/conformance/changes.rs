//! Tools that change what the server offers, so that whoever listens is told.
//!
//! What is put back is what was there: the lists stay the same, for whoever reads them meanwhile.

use steadfast::prelude::*;
use steadfast::tool;

/// Adds the tools to the server that they change. They hold it, so that it lives as long as the process.
pub(super) fn add_to(server: &Server) {
    server.add_tool(test_trigger_tool_change(server.clone()));
    server.add_tool(test_trigger_prompt_change(server.clone()));
}

/// Changes the list of tools.
#[tool]
async fn test_trigger_tool_change(#[state] server: Server) -> &'static str {
    if let Some(tool) = server.tool("test_simple_text") {
        server.add_tool(tool);
    }
    "The list of tools has changed"
}

/// Changes the list of prompts.
#[tool]
async fn test_trigger_prompt_change(#[state] server: Server) -> &'static str {
    if let Some(prompt) = server.prompt("test_simple_prompt") {
        server.add_prompt(prompt);
    }
    "The list of prompts has changed"
}
