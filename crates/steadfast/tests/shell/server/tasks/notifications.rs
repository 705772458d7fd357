//! Subscriptions to tasks, over a byte stream.

use serde_json::{Value, json};
use steadfast::Limits;
use steadfast::prelude::*;
use steadfast::server::tasks::TaskMode;
use steadfast::transport::memory;

use crate::support::RawPeer;
use crate::{Signal, soon};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn served(server: Server) -> RawPeer {
    let (here, there) = memory::pair(65_536);
    tokio::spawn(server.serve(there).into_future());
    RawPeer::new(here)
}

/// A request of a client that knows tasks and forms.
fn request(id: i64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn listen(id: i64, notifications: &Value) -> Value {
    request(id, "subscriptions/listen", json!({"notifications": notifications}))
}

/// Reads on to a message.
async fn until(raw: &mut RawPeer, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = soon(raw.line()).await.expect("the stream has ended");
        if wanted(&message) {
            return message;
        }
    }
}

async fn begin(raw: &mut RawPeer, id: i64, tool: &str) -> String {
    raw.send(&request(id, "tools/call", json!({"name": tool}))).await;
    let created = until(raw, |message| message["id"] == id).await;
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

fn is_task(message: &Value, status: &str) -> bool {
    message["method"] == "notifications/tasks" && message["params"]["status"] == status
}

/// Asks for a name, and greets.
fn greeting() -> ServerTool {
    ServerTool::new("greeting").task(TaskMode::Required).handler(|ctx: Context| async move {
        let name: String = ctx.elicit("Who are you?").key("name").await?;
        Ok::<_, ToolError>(format!("Hello, {name}!"))
    })
}

fn waiting(go: &Signal) -> ServerTool {
    let go = go.clone();
    ServerTool::new("waiting").task(TaskMode::Optional).handler(move || {
        let go = go.clone();
        async move {
            go.wait().await;
            "done"
        }
    })
}

#[tokio::test]
async fn a_subscription_to_a_task_is_notified_of_its_status() {
    let mut raw = served(crate::server([greeting()]));
    let task = begin(&mut raw, 1, "greeting").await;
    raw.send(&listen(2, &json!({"taskIds": [task, "none", task]}))).await;
    let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"taskIds": [task]}, "_meta": {SUBSCRIPTION: 2}}});
    assert_eq!(soon(raw.line()).await.unwrap(), acknowledged);
    let asked = until(&mut raw, |message| is_task(message, "input_required")).await;
    assert_eq!(asked["params"]["inputRequests"]["name"]["method"], "elicitation/create", "{asked}");
    let answers = json!({"name": {"action": "accept", "content": {"answer": "Ada"}}});
    raw.send(&request(3, "tasks/update", json!({"taskId": task, "inputResponses": answers}))).await;
    let mut ended = until(&mut raw, |message| is_task(message, "completed")).await["params"].clone();
    assert_eq!(ended["_meta"], json!({SUBSCRIPTION: 2}));
    raw.send(&request(4, "tasks/get", json!({"taskId": task}))).await;
    let mut shown = until(&mut raw, |message| message["id"] == 4).await["result"].clone();
    ended.as_object_mut().unwrap().shift_remove("_meta");
    for added in ["_meta", "resultType"] {
        shown.as_object_mut().unwrap().shift_remove(added);
    }
    assert_eq!(ended, shown);
    assert_eq!(shown["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn subscribing_to_an_ended_task_notifies_its_status() {
    let go = Signal::default();
    let mut raw = served(crate::server([waiting(&go)]));
    let task = begin(&mut raw, 1, "waiting").await;
    raw.send(&request(2, "tasks/cancel", json!({"taskId": task}))).await;
    until(&mut raw, |message| message["id"] == 2).await;
    raw.send(&listen(3, &json!({"taskIds": [task]}))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    let told = soon(raw.line()).await.unwrap();
    assert!(is_task(&told, "cancelled") && told["params"]["_meta"][SUBSCRIPTION] == 3, "{told}");
}

#[tokio::test]
async fn progress_of_a_task_is_its_status_message() {
    let reporting = ServerTool::new("reporting").task(TaskMode::Required).handler(|ctx: Context| async move {
        ctx.progress(0.5, "half way");
        std::future::pending::<()>().await;
    });
    let mut raw = served(crate::server([reporting]));
    let task = begin(&mut raw, 1, "reporting").await;
    raw.send(&listen(2, &json!({"taskIds": [task]}))).await;
    let told = until(&mut raw, |message| {
        assert_ne!(message["method"], "notifications/progress");
        message["params"]["statusMessage"] == "half way"
    })
    .await;
    assert!(is_task(&told, "working"), "{told}");
}

#[tokio::test]
async fn a_subscription_is_not_notified_of_other_tasks() {
    let go = Signal::default();
    let mut raw = served(crate::server([waiting(&go)]));
    let (named, other) = (begin(&mut raw, 1, "waiting").await, begin(&mut raw, 2, "waiting").await);
    raw.send(&listen(3, &json!({"taskIds": [named]}))).await;
    raw.send(&listen(4, &json!({"toolsListChanged": true}))).await;
    raw.send(&request(5, "tasks/cancel", json!({"taskId": other}))).await;
    raw.send(&request(6, "tasks/cancel", json!({"taskId": named}))).await;
    let told = until(&mut raw, |message| {
        assert_ne!(message["params"]["taskId"], json!(other));
        is_task(message, "cancelled")
    })
    .await;
    assert_eq!((&told["params"]["taskId"], &told["params"]["_meta"][SUBSCRIPTION]), (&json!(named), &json!(3)));
}

#[tokio::test]
async fn a_client_without_the_tasks_extension_cannot_subscribe_to_tasks() {
    let mut raw = served(crate::server([greeting()]));
    let mut ignorant = listen(1, &json!({"toolsListChanged": true, "taskIds": ["any"]}));
    ignorant["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    raw.send(&ignorant).await;
    let error = soon(raw.line()).await.unwrap()["error"].clone();
    let needed = &error["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!((&error["code"], needed), (&json!(-32021), &json!({})), "{error}");
    ignorant["params"]["notifications"]["taskIds"] = json!([]);
    raw.send(&ignorant).await;
    let acknowledged = soon(raw.line()).await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
}

#[tokio::test]
async fn subscriptions_to_resources_and_tasks_share_a_limit() {
    let mut limits = Limits::default();
    limits.subscribed = 2;
    let mut raw = served(Server::builder("test", "1").tool(greeting()).limits(limits).build());
    raw.send(&listen(1, &json!({"resourceSubscriptions": ["a:1"], "taskIds": ["1", "2"]}))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["error"]["code"], -32602);
    raw.send(&listen(2, &json!({"resourceSubscriptions": ["a:1"], "taskIds": ["1"]}))).await;
    assert_eq!(soon(raw.line()).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
}

#[tokio::test]
async fn a_subscription_to_tasks_ends_with_its_result() {
    let (here, there) = memory::pair(65_536);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = crate::server([greeting()]).serve(there).shutdown_when(async { _ = stopped.await });
    let served = tokio::spawn(serving.into_future());
    let mut raw = RawPeer::new(here);
    raw.send(&listen(1, &json!({"taskIds": ["none"]}))).await;
    let acknowledged = soon(raw.line()).await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    stop.send(()).unwrap();
    let result = soon(raw.line()).await.unwrap();
    assert_eq!((&result["id"], &result["result"]["_meta"][SUBSCRIPTION]), (&json!(1), &json!(1)));
    soon(served).await.unwrap().unwrap();
}
