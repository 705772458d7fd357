//! Input of tasks, and what the handler of a task knows of its call.

use std::time::Duration;

use serde_json::json;
use steadfast::prelude::*;
use steadfast::server::StateKeys;
use steadfast::server::tasks::TaskMode;

use super::calls::{Peer, server};

async fn name(ctx: Context) -> Result<String, ToolError> {
    Ok(ctx.elicit::<String>("Who are you?").key("name").await?)
}

fn answer() -> serde_json::Value {
    json!({ "name": { "action": "accept", "content": { "answer": "Ada" } } })
}

#[tokio::test]
async fn the_answer_to_a_task_is_not_too_late_when_a_sealed_state_would_have_expired() {
    let greeting = ServerTool::new("greeting")
        .task(TaskMode::Required)
        .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("Hello, {}!", name(ctx).await?)) });
    let keys = StateKeys::new([1; 32]).lifetime(Duration::ZERO);
    let mut peer = Peer::of(Server::builder("test", "1").tool(greeting).state_keys(keys).build());
    peer.capabilities["elicitation"] = json!({});
    let task = peer.begin("greeting", json!({})).await;
    assert_eq!(peer.after(&task, "working").await["status"], "input_required");
    peer.ask("tasks/update", json!({ "taskId": task, "inputResponses": answer() })).await;
    let shown = peer.after(&task, "working").await;
    assert_eq!(shown["result"]["content"][0]["text"], "Hello, Ada!", "{shown}");
}

#[tokio::test]
async fn a_call_with_unknown_members_becomes_a_task_that_knows_its_first_input() {
    let greeting = ServerTool::new("greeting")
        .task(TaskMode::Required)
        .ask_first(|ctx: Context| async move { name(ctx).await.map(drop) })
        .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("Hello, {}!", name(ctx).await?)) });
    let mut peer = Peer::of(server([greeting]));
    peer.capabilities["elicitation"] = json!({});
    let first = peer.ask("tools/call", json!({ "name": "greeting", "vendor": 7 })).await;
    let state = &first["result"]["requestState"];
    let again = json!({ "name": "greeting", "vendor": 7, "requestState": state, "inputResponses": answer() });
    let created = peer.ask("tools/call", again).await;
    let shown = peer.after(created["result"]["taskId"].as_str().unwrap(), "working").await;
    assert_eq!(shown["result"]["content"][0]["text"], "Hello, Ada!", "{shown}");
}

#[tokio::test]
async fn a_state_of_another_request_is_refused_before_a_task_is_created() {
    let tool = ServerTool::new("t").task(TaskMode::Required).handler(|| async {});
    let mut peer = Peer::of(server([tool]));
    let refused = peer.ask("tools/call", json!({ "name": "t", "requestState": "forged" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn the_handler_of_a_task_knows_the_name_of_the_client() {
    let who = ServerTool::new("who").task(TaskMode::Required).handler(|ctx: Context| async move {
        ctx.client().info().map_or_else(|| "nobody".to_owned(), |client| client.name.clone())
    });
    let mut peer = Peer::of(server([who]));
    let task = peer.begin("who", json!({})).await;
    let shown = peer.after(&task, "working").await;
    assert_eq!(shown["result"]["content"][0]["text"], "hand", "{shown}");
}
