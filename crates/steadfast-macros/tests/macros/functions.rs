//! `#[tool]` on functions.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use steadfast::{Context, Server, ToolError, tool};

use crate::{called, complaint};

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Writes to a file.
#[tool(destructive)]
pub(crate) fn write(path: String, _content: String) -> std::io::Result<usize> {
    Ok(std::fs::read(path)?.len())
}

#[tool(name = "find")]
async fn look_up(ctx: Context, #[state] words: Arc<Vec<String>>, word: String, #[state] shout: bool) -> String {
    drop(ctx);
    let found = words.contains(&word).to_string();
    if shout { found.to_uppercase() } else { found }
}

#[tool]
async fn show<T>(#[state] value: T) -> String
where
    T: fmt::Display + Clone + Send + Sync + 'static,
{
    value.to_string()
}

#[tool]
async fn odd(r#type: String, mut text: String, #[arg(rename = "class")] kind: u8) -> String {
    text.push_str(&r#type);
    format!("{text}{kind}")
}

#[tool]
async fn factorial(of: u64) -> Result<u64, ToolError> {
    // Inside, the name is the function itself; outside, it is the function that builds the tool.
    match of {
        0 => Ok(1),
        n => Ok(n.checked_mul(Box::pin(factorial(n - 1)).await?).ok_or("too large")?),
    }
}

/// Its state parameter has the name of the function.
#[tool]
async fn words(#[state] words: Arc<Vec<String>>, #[state] r#loop: u8) -> usize {
    words.len() + usize::from(r#loop)
}

async fn may_it(ctx: Context) -> Result<(), ToolError> {
    ctx.elicit::<bool>("May it take long?").await?;
    Ok(())
}

#[tool(task = required, ask_first = may_it)]
async fn long(ctx: Context) -> Result<&'static str, ToolError> {
    may_it(ctx).await?;
    Ok("done")
}

#[tool]
fn nothing() {}

#[tokio::test]
async fn a_function_becomes_the_maker_of_a_tool() {
    let tool = add();
    assert_eq!(tool.name(), "add");
    assert_eq!(tool.definition().description.as_deref(), Some("Adds two numbers."));
    assert_eq!(called(&tool, json!({ "a": 2, "b": 3 })).await, "5");
    assert_eq!(complaint(&tool, json!({ "a": 2 })).await, "Bad arguments: `b` is missing");
}

#[tokio::test]
async fn any_error_can_be_returned() {
    let tool = write();
    assert!(complaint(&tool, json!({ "path": "/no/such/file", "content": "" })).await.contains("No such file"));
    assert_eq!(complaint(&factorial(), json!({ "of": 100 })).await, "too large");
    assert_eq!(called(&factorial(), json!({ "of": 5 })).await, "120");
}

#[tokio::test]
async fn state_is_given_when_the_tool_is_made() {
    let words = Arc::new(vec!["steadfast".to_owned()]);
    let tool = look_up(words, true);
    assert_eq!(called(&tool, json!({ "word": "steadfast" })).await, "TRUE");
    assert_eq!(called(&tool, json!({ "word": "broken" })).await, "FALSE");
    assert_eq!(called(&show(7), json!({})).await, "7");
}

#[tokio::test]
async fn state_may_be_named_as_the_function_is() {
    let tool = words(Arc::new(vec!["one".to_owned()]), 2);
    assert_eq!(called(&tool, json!({})).await, "3");
}

#[test]
fn what_is_asked_first_makes_the_tool_no_other() {
    assert_eq!(long().task_mode(), steadfast::server::tasks::TaskMode::Required);
    assert_eq!(long().problem(), None);
}

#[tokio::test]
async fn names_are_what_a_client_would_write() {
    let tool = odd();
    let schema = &tool.definition().input_schema;
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["type", "text", "class"]);
    assert_eq!(called(&tool, json!({ "type": "b", "text": "a", "class": 1 })).await, "ab1");
    assert!(write().definition().input_schema["properties"]["content"].is_object());
}

#[tokio::test]
async fn tools_of_functions_make_a_server() {
    let server = Server::builder("functions", "1").tools([add(), nothing(), show("x")]).build();
    assert_eq!(called(&server.tool("nothing").unwrap(), json!({ "ignored": 1 })).await, "");
}
