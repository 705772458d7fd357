//! Calls that run as tasks.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast::prelude::*;
use steadfast::server::tasks::{MemoryTaskStore, TaskMode, TaskRecord, TaskSettings, TaskStore, TaskStoreFuture};
use steadfast::transport::Transport;
use steadfast::transport::memory::{self, MemoryTransport};

use crate::{Signal, echo, forever, soon};

/// A client of 2026-07-28 that writes and reads lines by hand.
pub(super) struct Peer {
    end: MemoryTransport,
    held: Vec<u8>,
    next: u64,
    pub(super) capabilities: Value,
}

impl Peer {
    pub(super) fn of(server: Server) -> Self {
        let (here, there) = memory::pair(65536);
        tokio::spawn(server.serve(there).into_future());
        let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        Self { end: here, held: Vec::new(), next: 0, capabilities }
    }

    /// Asks, and gives the answer.
    pub(super) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "hand", "version": "1" },
        });
        self.tell(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })).await;
        soon(self.answer()).await
    }

    async fn tell(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let mut bytes = line.as_bytes();
        while !bytes.is_empty() {
            let count = std::future::poll_fn(|cx| self.end.poll_write(cx, bytes)).await.unwrap();
            bytes = &bytes[count..];
        }
    }

    async fn answer(&mut self) -> Value {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                let message: Value = serde_json::from_slice(&line).unwrap();
                if message["id"] == json!(self.next) {
                    return message;
                }
                continue;
            }
            let mut buffer = vec![0; 65536];
            let count = std::future::poll_fn(|cx| self.end.poll_read(cx, &mut buffer)).await.unwrap();
            self.held.extend_from_slice(&buffer[..count]);
        }
    }

    /// Calls a tool that becomes a task, and gives its name.
    pub(super) async fn begin(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        answer["result"]["taskId"].as_str().unwrap().to_owned()
    }

    async fn look(&mut self, task: &str) -> Value {
        let answer = self.ask("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"].clone()
    }

    /// Asks after a task until it has another status.
    pub(super) async fn after(&mut self, task: &str, status: &str) -> Value {
        soon(async {
            loop {
                let shown = self.look(task).await;
                if shown["status"] != status {
                    return shown;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
    }
}

/// A tool as a task.
fn task(tool: steadfast::server::ServerToolBuilder) -> steadfast::server::ServerToolBuilder {
    tool.task(TaskMode::Optional)
}

pub(super) fn server(tools: impl IntoIterator<Item = ServerTool>) -> Server {
    Server::builder("test", "1").tools(tools).build()
}

#[tokio::test]
async fn a_call_becomes_a_task_that_has_its_result() {
    let (begun, go) = (Signal::default(), Signal::default());
    let waits = {
        let (begun, go) = (begun.clone(), go.clone());
        task(ServerTool::new("waits")).handler(move || {
            let (begun, go) = (begun.clone(), go.clone());
            async move {
                begun.set();
                go.wait().await;
                "done"
            }
        })
    };
    let mut peer = Peer::of(server([waits]));
    let id = peer.begin("waits", json!({})).await;
    soon(begun.wait()).await;
    assert_eq!(peer.look(&id).await["status"], "working");
    go.set();
    let shown = peer.after(&id, "working").await;
    assert_eq!((&shown["status"], &shown["result"]["content"][0]["text"]), (&json!("completed"), &json!("done")));
    assert!(shown["ttlMs"].as_u64().unwrap() > 0 && shown["createdAt"].is_string());
}

#[tokio::test]
async fn a_tool_that_fails_completes_and_a_protocol_error_fails() {
    let failing = task(ServerTool::new("failing")).handler(|| async { Err::<(), _>(ToolError::new("no luck")) });
    let broken =
        task(ServerTool::new("broken")).handler(|| async { std::panic::resume_unwind(Box::new("on purpose")) as () });
    let mut peer = Peer::of(server([failing, broken]));
    let id = peer.begin("failing", json!({})).await;
    let shown = peer.after(&id, "working").await;
    assert_eq!((&shown["status"], &shown["result"]["isError"]), (&json!("completed"), &json!(true)));
    let id = peer.begin("broken", json!({})).await;
    let shown = peer.after(&id, "working").await;
    assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("failed"), &json!(-32603)));
    assert!(shown.get("result").is_none());
}

#[tokio::test]
async fn a_cancelled_task_stops_its_handler_and_stays_cancelled() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let definition = forever(&begun, &dropped).definition().clone();
    let tool = {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        task(ServerTool::from_definition(definition)).handler(move || {
            let (begun, dropped) = (begun.clone(), dropped.clone());
            async move {
                let _dropped = dropped.on_drop();
                begun.set();
                std::future::pending::<()>().await;
            }
        })
    };
    let mut peer = Peer::of(server([tool]));
    let id = peer.begin("forever", json!({})).await;
    soon(begun.wait()).await;
    for _ in 0..2 {
        let answer = peer.ask("tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(answer["result"]["resultType"], "complete");
        assert!(answer["result"].get("taskId").is_none());
    }
    soon(dropped.wait()).await;
    assert_eq!(peer.look(&id).await["status"], "cancelled");
}

#[tokio::test]
async fn a_task_outlives_the_connection_that_created_it() {
    let go = Signal::default();
    let waits = {
        let go = go.clone();
        task(ServerTool::new("waits")).handler(move || {
            let go = go.clone();
            async move {
                go.wait().await;
                "done"
            }
        })
    };
    let server = server([waits]);
    let mut first = Peer::of(server.clone());
    let id = first.begin("waits", json!({})).await;
    drop(first);
    let mut second = Peer::of(server);
    go.set();
    assert_eq!(second.after(&id, "working").await["status"], "completed");
}

#[tokio::test]
async fn a_task_that_expires_is_stopped_and_forgotten() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let tool = {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        task(ServerTool::new("forever")).handler(move || {
            let (begun, dropped) = (begun.clone(), dropped.clone());
            async move {
                let _dropped = dropped.on_drop();
                begun.set();
                std::future::pending::<()>().await;
            }
        })
    };
    let settings = TaskSettings::new(MemoryTaskStore::new(1)).time_to_live(Duration::from_millis(200));
    let mut peer = Peer::of(Server::builder("test", "1").tool(tool).tasks(settings).build());
    let id = peer.begin("forever", json!({})).await;
    soon(dropped.wait()).await;
    let answer = peer.ask("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(answer["error"]["code"], -32602);
    // There was room for one, and there is again.
    peer.begin("forever", json!({})).await;
}

#[tokio::test]
async fn a_client_without_the_tasks_extension_gets_the_result_or_a_missing_capability_error() {
    let optional = task(ServerTool::new("optional")).handler(|| async { "at once" });
    let required = ServerTool::new("required").task(TaskMode::Required).handler(|| async { "never" });
    let mut peer = Peer::of(server([optional, required]));
    peer.capabilities = json!({});
    let answer = peer.ask("tools/call", json!({ "name": "optional" })).await;
    assert_eq!(answer["result"]["content"][0]["text"], "at once");
    for (method, params) in [("tools/call", json!({ "name": "required" })), ("tasks/get", json!({ "taskId": "x" }))] {
        let error = peer.ask(method, params).await["error"].clone();
        let needed = &error["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
        assert_eq!((&error["code"], needed), (&json!(-32021), &json!({})), "{method}");
    }
}

#[tokio::test]
async fn unknown_tasks_and_tasks_methods_of_2025_are_refused() {
    let mut peer = Peer::of(server([task(ServerTool::new("t")).handler(|| async {})]));
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(peer.ask(method, json!({ "taskId": "none" })).await["error"]["code"], -32602, "{method}");
    }
    let update = json!({ "taskId": "none", "inputResponses": {} });
    assert_eq!(peer.ask("tasks/update", update).await["error"]["code"], -32602);
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(peer.ask(method, json!({ "taskId": "none" })).await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn tasks_are_declared_if_there_is_a_tool_for_them() {
    let extension = |answer: Value| answer["result"]["capabilities"]["extensions"].clone();
    let mut with = Peer::of(server([task(ServerTool::new("t")).handler(|| async {})]));
    let declared = extension(with.ask("server/discover", json!({})).await);
    assert_eq!(declared, json!({ "io.modelcontextprotocol/tasks": {} }));
    let mut without = Peer::of(server([echo()]));
    assert_eq!(extension(without.ask("server/discover", json!({})).await), Value::Null);
}

#[tokio::test]
async fn input_before_a_task_starts_is_known_to_it() {
    async fn name(ctx: Context) -> Result<String, ToolError> {
        Ok(ctx.elicit::<String>("Who are you?").key("name").await?)
    }
    let greeting = ServerTool::new("greeting")
        .task(TaskMode::Required)
        .ask_first(|ctx: Context| async move { name(ctx).await.map(drop) })
        .handler(|ctx: Context| async move { Ok::<_, ToolError>(format!("Hello, {}!", name(ctx).await?)) });
    let mut peer = Peer::of(server([greeting]));
    peer.capabilities["elicitation"] = json!({});
    let first = peer.ask("tools/call", json!({ "name": "greeting" })).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert!(first["result"].get("taskId").is_none());
    let mut again = json!({ "name": "greeting", "requestState": first["result"]["requestState"] });
    again["inputResponses"]["name"] = json!({ "action": "decline" });
    let declined = peer.ask("tools/call", again.clone()).await;
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    again["inputResponses"]["name"] = json!({ "action": "accept", "content": { "answer": "Ada" } });
    let created = peer.ask("tools/call", again).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let shown = peer.after(created["result"]["taskId"].as_str().unwrap(), "working").await;
    assert_eq!(shown["result"]["content"][0]["text"], "Hello, Ada!", "{shown}");
}

/// A store that saves a task at once, and returns only when the test lets it.
struct Slow {
    kept: std::sync::Arc<MemoryTaskStore>,
    name: std::sync::Arc<std::sync::Mutex<Option<String>>>,
    inserted: Signal,
    go: Signal,
}

impl TaskStore for Slow {
    fn insert(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        Box::pin(async move {
            *self.name.lock().unwrap() = Some(record.id().to_owned());
            self.kept.insert(record).await?;
            self.inserted.set();
            self.go.wait().await;
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> TaskStoreFuture<'a, Option<TaskRecord>> {
        self.kept.load(id)
    }

    fn replace(&self, record: TaskRecord) -> TaskStoreFuture<'_, ()> {
        self.kept.replace(record)
    }
}

/// A client that disconnects before it gets the id of its task cannot cancel it, so the server has to.
#[tokio::test]
async fn a_task_is_cancelled_when_the_client_disconnects_before_it_is_sent() {
    let (inserted, go) = (Signal::default(), Signal::default());
    let (kept, name) = (std::sync::Arc::new(MemoryTaskStore::default()), std::sync::Arc::default());
    let store = Slow {
        kept: std::sync::Arc::clone(&kept),
        name: std::sync::Arc::clone(&name),
        inserted: inserted.clone(),
        go: go.clone(),
    };
    let tool = task(ServerTool::new("never")).handler(|| async { std::future::pending::<()>().await });
    let server = Server::builder("test", "1").tools([tool]).tasks(TaskSettings::new(store)).build();
    let mut peer = Peer::of(server);
    {
        let mut asking = std::pin::pin!(peer.ask("tools/call", json!({ "name": "never" })));
        soon(async {
            tokio::select! {
                biased;
                _ = &mut asking => panic!("it was answered"),
                () = inserted.wait() => {}
            }
        })
        .await;
    }
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    peer.tell(&cancelled).await;
    // A response to a later request shows that the cancellation was processed.
    peer.ask("tools/list", json!({})).await;
    go.set();
    let name = name.lock().unwrap().clone().unwrap();
    let ended = soon(async {
        loop {
            let record = kept.load(&name).await.unwrap().unwrap();
            if record.task.task.status != steadfast::model::TaskStatus::Working {
                return record.task.task.status;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert_eq!(ended.await, steadfast::model::TaskStatus::Cancelled);
}
