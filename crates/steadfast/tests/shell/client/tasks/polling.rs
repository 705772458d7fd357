//! Tasks of both kinds on the wire: polling, cancellation, results.

use steadfast::{
    ClientCapabilities, ErrorKind, JsonObject, Outcome,
    model::{CallToolParams, TASKS_EXTENSION, TaskMetadata, request},
};

use crate::client::*;

fn taking_tasks(connecting: ConnectBuilder) -> ConnectBuilder {
    connecting.capabilities(ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new()))
}

fn task(more: Value) -> Value {
    let mut task = json!({"taskId": "one", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1, "resultType": "complete"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

#[tokio::test]
async fn a_task_in_response_to_another_method_is_an_error() {
    // A request that cannot become a task, and a client that did not declare tasks.
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let answering = async {
        let list = server.until("tools/list").await;
        server.answer(&list, task(json!({"resultType": "task"}))).await;
    };
    assert_eq!(with(client.list_tools(), answering).await.unwrap_err().kind(), ErrorKind::Decode);
    server.is_quiet(&client).await;
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let answering = async {
        let call = server.until("tools/call").await;
        server.answer(&call, task(json!({"resultType": "task"}))).await;
    };
    let called = with(client.call_tool("t", json!({})).into_future(), answering).await;
    assert_eq!(called.unwrap_err().kind(), ErrorKind::Decode);
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn a_call_accepts_a_task_or_a_result() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    server.is_quiet(&client).await;
    let answering = async {
        let call = server.until("tools/call").await;
        server.answer(&call, task(json!({"resultType": "task"}))).await;
        for status in ["working", "working", "completed"] {
            let get = server.until("tasks/get").await;
            assert_eq!(get["params"]["taskId"], "one");
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            server.answer(&get, task(json!({"status": status, "result": result}))).await;
        }
    };
    let result = with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
    assert_eq!(text(&result), "done");
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn a_task_is_cancelled_with_tasks_cancel() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let mut call = Box::pin(client.call_tool("t", json!({})).start());
    let answering = async {
        let call = server.until("tools/call").await;
        server.answer(&call, task(json!({"resultType": "task"}))).await;
        let get = server.until("tasks/get").await;
        server.answer(&get, task(json!({}))).await;
        server.until("tasks/get").await
    };
    let get = tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        get = soon(answering) => get,
    };
    drop(call);
    let cancel = server.until("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "one");
    server.answer(&cancel, json!({"resultType": "complete"})).await;
    // A request about the task may time out as any other; the call itself got its response.
    for message in server.received.iter().filter(|message| message["method"] == "notifications/cancelled") {
        assert_eq!(message["params"]["requestId"], get["id"], "{message}");
    }
}

/// A server may have sent a response before it reads the cancellation.
#[tokio::test]
async fn a_task_that_arrives_after_its_call_was_dropped_is_cancelled() {
    for way in ["dropped", "cancelled", "too late"] {
        let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
        let timeout = Duration::from_millis(if way == "too late" { 1 } else { 60_000 });
        let call = client.call_tool("t", json!({})).timeout(timeout).start();
        let asked = server.until("tools/call").await;
        match way {
            "dropped" => drop(call),
            "cancelled" => {
                call.canceller().cancel();
                assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::Cancelled);
            }
            _ => assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::TimedOut),
        }
        assert_eq!(server.until("notifications/cancelled").await["params"]["requestId"], asked["id"]);
        server.answer(&asked, task(json!({"resultType": "task"}))).await;
        let cancel = server.until("tasks/cancel").await;
        assert_eq!(cancel["params"]["taskId"], "one", "{way}");
        assert!(cancel["params"]["_meta"].is_object(), "{cancel}");
        // A second response to the same request is ignored.
        server.answer(&asked, task(json!({"resultType": "task"}))).await;
        server.is_quiet(&client).await;
    }
}

/// It is cancelled in the instant between its answer and the first look at it.
#[tokio::test]
async fn a_task_whose_call_was_never_polled_is_cancelled_with_it() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let call = client.call_tool("t", json!({})).start();
    let asked = server.until("tools/call").await;
    server.answer(&asked, task(json!({"resultType": "task"}))).await;
    // Sent after it, so it has arrived.
    server.is_quiet(&client).await;
    call.canceller().cancel();
    let error = soon(call).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Unknown));
    assert_eq!(server.until("tasks/cancel").await["params"]["taskId"], "one");
}

#[tokio::test]
async fn tasks_of_2025_are_neither_declared_nor_requested_by_default() {
    let (client, mut server) = RecordingServer::connected(OLDER, taking_tasks).await;
    server.is_quiet(&client).await;
    assert!(server.received[0]["params"]["capabilities"].get("tasks").is_none(), "{:?}", server.received[0]);
    assert!(server.received.iter().all(|message| message["params"].get("task").is_none()), "{:?}", server.received);
}

#[tokio::test]
async fn a_task_is_polled_no_more_often_than_the_server_says() {
    const PACE: Duration = Duration::from_millis(300);
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let answering = async {
        let call = server.until("tools/call").await;
        let mut said = std::time::Instant::now();
        server.answer(&call, task(json!({"resultType": "task", "pollIntervalMs": 300}))).await;
        for status in ["working", "completed"] {
            let get = server.until("tasks/get").await;
            assert!(said.elapsed() >= PACE, "{:?}", said.elapsed());
            said = std::time::Instant::now();
            let result = json!({"content": []});
            server.answer(&get, task(json!({"status": status, "result": result, "pollIntervalMs": 300}))).await;
        }
    };
    with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
}

#[tokio::test]
async fn the_call_timeout_covers_requests_about_its_task() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let answering = async {
        let call = server.until("tools/call").await;
        server.answer(&call, task(json!({"resultType": "task"}))).await;
        server.until("tasks/get").await;
        server.until("tasks/cancel").await;
    };
    let call = client.call_tool("t", json!({})).timeout(Duration::from_millis(500));
    let error = with(call.into_future(), answering).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
}

#[tokio::test]
async fn the_result_of_a_completed_task_is_fetched_at_once() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let answering = async {
        let call = server.until("tools/call").await;
        let over = json!({"resultType": "task", "status": "completed", "pollIntervalMs": 60_000});
        server.answer(&call, task(over)).await;
        let get = server.until("tasks/get").await;
        server.answer(&get, task(json!({"status": "completed", "result": {"content": []}}))).await;
    };
    with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
}

#[tokio::test]
async fn a_status_of_another_task_is_not_a_response() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let answering = async {
        let call = server.until("tools/call").await;
        server.answer(&call, task(json!({"resultType": "task"}))).await;
        let get = server.until("tasks/get").await;
        let theirs = json!({"taskId": "two", "status": "completed", "result": {"content": []}});
        server.answer(&get, task(theirs)).await;
        assert_eq!(server.until("tasks/cancel").await["params"]["taskId"], "one");
    };
    let error = with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Decode, Outcome::Unknown));
}

/// A client of 2025-11-25, and a server with these tasks, whose tools it has listed: each is called after how it runs as one.
async fn of_2025(tasks: Value) -> (Client, RecordingServer) {
    let (connecting, mut server) = RecordingServer::new();
    let opening = async {
        let initialize = server.until("initialize").await;
        let mut opened = initialized(&json!("2025-11-25"));
        opened["capabilities"]["tasks"] = tasks;
        server.answer(&initialize, opened).await;
        server.until("notifications/initialized").await;
    };
    let (client, ()) = tokio::join!(connecting.negotiation(OLDER).into_future(), opening);
    let client = client.unwrap();
    let listing = async {
        let list = server.until("tools/list").await;
        let tool =
            |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": name}});
        let tools = ["required", "optional", "forbidden"].map(tool);
        server.answer(&list, json!({"tools": tools})).await;
    };
    with(client.list_tools(), listing).await.unwrap();
    (client, server)
}

/// The server runs calls of tools as tasks.
fn runs_calls() -> Value {
    json!({"cancel": {}, "requests": {"tools": {"call": {}}}})
}

/// The task of 2025-11-25 that a call became.
fn older_task(status: &str) -> Value {
    json!({"taskId": "one", "status": status, "createdAt": "2025-11-25T00:00:00Z",
        "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": 1000, "pollInterval": 1})
}

impl RecordingServer {
    /// Responds to a call with a task, and to each poll with this status.
    async fn run_as_task(&mut self, said: &[&str]) {
        let call = self.until("tools/call").await;
        assert!(call["params"]["task"].is_object(), "{call}");
        self.answer(&call, json!({"task": older_task("working")})).await;
        for status in said {
            let get = self.until("tasks/get").await;
            assert_eq!(get["params"]["taskId"], "one");
            self.answer(&get, older_task(status)).await;
        }
    }
}

#[tokio::test]
async fn a_tool_of_2025_that_runs_only_as_a_task_is_called_as_one_and_its_result_fetched() {
    let (client, mut server) = of_2025(runs_calls()).await;
    let answering = async {
        server.run_as_task(&["working", "completed"]).await;
        let fetch = server.until("tasks/result").await;
        assert_eq!(fetch["params"]["taskId"], "one");
        server.answer(&fetch, json!({"content": [{"type": "text", "text": "done"}]})).await;
    };
    let result = with(client.call_tool("required", json!({})).into_future(), answering).await.unwrap();
    assert_eq!(text(&result), "done");
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn a_tool_of_2025_that_may_run_as_a_task_does_if_its_caller_wants_it() {
    let (client, mut server) = of_2025(runs_calls()).await;
    let params = CallToolParams::new("optional").with_task(TaskMetadata::default().with_ttl(5_000_u64));
    let answering = async {
        server.run_as_task(&["completed"]).await;
        assert_eq!(
            server.received.iter().rev().find_map(|heard| heard["params"].get("task")),
            Some(&json!({"ttl": 5_000}))
        );
        let fetch = server.until("tasks/result").await;
        server.answer(&fetch, json!({"content": [{"type": "text", "text": "done"}]})).await;
    };
    let result = with(client.call::<request::CallTool>(params).into_future(), answering).await.unwrap();
    assert_eq!(text(&result), "done");
}

#[tokio::test]
async fn a_call_of_2025_is_no_task_unless_server_and_tool_support_tasks() {
    for (tasks, tool) in [
        (json!({"cancel": {}}), "required"),
        (json!({"requests": {"sampling": {"createMessage": {}}}}), "required"),
        (runs_calls(), "optional"),
        (runs_calls(), "forbidden"),
        (runs_calls(), "unlisted"),
    ] {
        let (client, mut server) = of_2025(tasks).await;
        let answering = async {
            let call = server.until("tools/call").await;
            assert!(call["params"].get("task").is_none(), "{call}");
            server.answer(&call, json!({"content": []})).await;
        };
        with(client.call_tool(tool, json!({})).into_future(), answering).await.unwrap();
    }
    // With task metadata in its parameters the call is an error, and nothing is sent.
    let (client, mut server) = of_2025(runs_calls()).await;
    let params = CallToolParams::new("forbidden").with_task(TaskMetadata::default());
    let error = client.call::<request::CallTool>(params).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsupported, Outcome::NotSent));
    server.is_quiet(&client).await;
}

#[tokio::test]
async fn input_requests_of_a_2025_task_arrive_while_its_result_is_awaited() {
    let (client, mut server) = of_2025(runs_calls()).await;
    let answering = async {
        server.run_as_task(&["input_required"]).await;
        let fetch = server.until("tasks/result").await;
        let related = json!({"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "one"}}});
        assert_eq!(server.ask("ping", related).await["result"], json!({}));
        server.answer(&fetch, json!({"content": [{"type": "text", "text": "done"}]})).await;
    };
    let result = with(client.call_tool("required", json!({})).into_future(), answering).await.unwrap();
    assert_eq!(text(&result), "done");
}

#[tokio::test]
async fn a_task_of_2025_that_failed_is_refused_with_the_error_of_its_call() {
    let (client, mut server) = of_2025(runs_calls()).await;
    let answering = async {
        server.run_as_task(&["failed"]).await;
        let fetch = server.until("tasks/result").await;
        server.refuse(&fetch, -32_007, json!("of the call")).await;
    };
    let error = with(client.call_tool("required", json!({})).into_future(), answering).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, Outcome::Refused));
    assert!(error.to_string().contains("tools/call"), "{error}");
}

#[tokio::test]
async fn a_task_of_2025_without_a_result_has_an_unknown_outcome() {
    let (client, mut server) = of_2025(runs_calls()).await;
    let answering = async {
        server.run_as_task(&["completed"]).await;
        let fetch = server.until("tasks/result").await;
        server.refuse(&fetch, -32_602, json!("expired")).await;
    };
    let error = with(client.call_tool("required", json!({})).into_future(), answering).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn dropping_a_call_of_2025_cancels_its_task_if_supported() {
    for cancellable in [true, false] {
        let mut tasks = runs_calls();
        if !cancellable {
            tasks.as_object_mut().unwrap().remove("cancel");
        }
        let (client, mut server) = of_2025(tasks).await;
        let mut call = Box::pin(client.call_tool("required", json!({})).start());
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = soon(server.run_as_task(&["working"])) => {}
        }
        drop(call);
        if cancellable {
            assert_eq!(server.until("tasks/cancel").await["params"]["taskId"], "one");
        } else {
            client.close().await;
            server.read_to_the_end().await;
            assert!(server.received.iter().all(|heard| heard["method"] != "tasks/cancel"), "{:?}", server.received);
        }
    }
}

/// In 2025-11-25 a call that becomes a task is cancelled as a task, and not otherwise.
#[tokio::test]
async fn a_call_of_2025_that_is_dropped_before_its_task_is_known_is_cancelled_as_a_task() {
    for way in ["dropped", "too late"] {
        let (client, mut server) = of_2025(runs_calls()).await;
        let timeout = Duration::from_millis(if way == "too late" { 1 } else { 60_000 });
        let call = client.call_tool("required", json!({})).timeout(timeout).start();
        let asked = server.until("tools/call").await;
        match way {
            "dropped" => drop(call),
            _ => assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::TimedOut),
        }
        server.is_quiet(&client).await;
        server.answer(&asked, json!({"task": older_task("working")})).await;
        assert_eq!(server.until("tasks/cancel").await["params"]["taskId"], "one", "{way}");
        assert!(
            server.received.iter().all(|heard| heard["method"] != "notifications/cancelled"),
            "{:?}",
            server.received
        );
    }
}
