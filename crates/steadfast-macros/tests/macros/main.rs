//! The generated definitions, and the errors for mistakes.

mod functions;
mod methods;
mod prompts;
mod resources;
mod schemas;

use serde_json::Value;
use steadfast::{Content, ServerTool};

/// Calls a tool that succeeds.
async fn called(tool: &ServerTool, arguments: Value) -> String {
    let result = tool.call(arguments).await.unwrap();
    let text: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
    assert!(!result.is_error(), "{text:?}");
    text.join("\n")
}

/// Calls a tool that fails.
async fn complaint(tool: &ServerTool, arguments: Value) -> String {
    let result = tool.call(arguments).await.unwrap();
    let text: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
    assert!(result.is_error(), "{text:?}");
    text.join("\n")
}

#[test]
fn mistakes_are_explained_where_they_are() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
