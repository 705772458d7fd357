//! Calls that become tasks: the caller gets the result as if there had been no task.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::client::{CallResultFuture, ConnectBuilder, NegotiationMode};
use steadfast::prelude::*;
use steadfast::server::tasks::{MemoryTaskStore, TaskMode, TaskSettings};
use steadfast::transport::memory;
use steadfast::{
    ClientCapabilities, ElicitResult, ErrorKind, JsonObject, ListRootsResult, Outcome,
    model::{TASKS_EXTENSION, request},
};

use crate::support::RawPeer;
use crate::support::scripted;
use crate::{Signal, soon};

fn server(tool: ServerTool) -> Server {
    let tasks = TaskSettings::new(MemoryTaskStore::default()).poll_interval(Duration::from_millis(20));
    Server::builder("tasks", "1.0.0").tool(tool).tasks(tasks).build()
}

fn capabilities() -> ClientCapabilities {
    ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new()).with_elicitation_form()
}

async fn connect(tool: ServerTool) -> Client {
    Client::connect(server(tool)).negotiation(NegotiationMode::Stateless).capabilities(capabilities()).await.unwrap()
}

#[tokio::test]
async fn the_caller_gets_the_result_and_not_the_task() {
    let tool = ServerTool::new("slow").task(TaskMode::Required).handler(|| async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        "done"
    });
    let result = soon(connect(tool).await.call_tool("slow", json!({})).into_future()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("done"));
}

#[tokio::test]
async fn input_requests_of_a_task_are_answered_by_the_handlers() {
    let tool = ServerTool::new("ask").task(TaskMode::Required).handler(|ctx: Context| async move {
        let first: String = ctx.elicit("First?").await?;
        let second: String = ctx.elicit("Second?").await?;
        Ok::<_, ToolError>(format!("{first}, {second}"))
    });
    let client = Client::connect(server(tool))
        .negotiation(NegotiationMode::Stateless)
        .capabilities(capabilities())
        .on_elicit(|params, _| async move {
            let answer = params.message().to_lowercase();
            Ok(ElicitResult::accept(json!({ "answer": answer }).as_object().cloned().unwrap()))
        })
        .await
        .unwrap();
    let result = soon(client.call_tool("ask", json!({})).into_future()).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("first?, second?"));
}

/// A server whose calls all become one task, with this status.
fn one_task(task: Value) -> (ConnectBuilder, Arc<Mutex<Vec<Value>>>) {
    scripted(move |round, _| {
        let mut shown = json!({
            "taskId": "one", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1,
        });
        let more = if round == 0 { json!({"resultType": "task"}) } else { task.clone() };
        shown.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        shown
    })
}

async fn until_it_was_asked(requests: &Mutex<Vec<Value>>, method: &str) {
    let asked = || requests.lock().unwrap().iter().any(|request| request["method"] == method);
    soon(async {
        while !asked() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A call that is followed as a task, and its client.
async fn followed() -> (Client, Pin<Box<CallResultFuture<request::CallTool>>>, Arc<Mutex<Vec<Value>>>) {
    let (connecting, requests) = one_task(json!({"resultType": "complete"}));
    let client = connecting.capabilities(capabilities()).await.unwrap();
    let mut call = Box::pin(client.call_tool("any", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = until_it_was_asked(&requests, "tasks/get") => {}
    }
    (client, call, requests)
}

fn cancellations(requests: &Mutex<Vec<Value>>) -> usize {
    requests.lock().unwrap().iter().filter(|request| request["method"] == "tasks/cancel").count()
}

#[tokio::test]
async fn dropping_a_call_cancels_its_task() {
    let (_client, call, requests) = followed().await;
    drop(call);
    until_it_was_asked(&requests, "tasks/cancel").await;
    let requests = requests.lock().unwrap();
    assert_eq!(requests.last().unwrap()["params"]["taskId"], "one");
}

#[tokio::test]
async fn closing_a_client_cancels_its_running_tasks() {
    let (client, call, requests) = followed().await;
    soon(client.close()).await;
    assert_eq!(cancellations(&requests), 1);
    let error = soon(call).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    assert_eq!(cancellations(&requests), 1, "nobody cancels it again");
}

#[tokio::test]
async fn close_waits_for_the_cancellation_of_a_task_dropped_earlier() {
    let (client, call, requests) = followed().await;
    drop(call);
    soon(client.close()).await;
    assert_eq!(cancellations(&requests), 1);
}

async fn answer(server: &mut RawPeer, request: &Value, result: Value) {
    server.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
}

#[tokio::test]
async fn a_task_of_a_dropped_call_is_cancelled_in_any_round() {
    for rounds in 0..3 {
        let (here, there) = memory::pair(1 << 16);
        let mut server = RawPeer::new(there);
        let roots = |_| async { Ok(ListRootsResult::default()) };
        let connecting =
            Client::connect(here).negotiation(NegotiationMode::Stateless).tasks().on_roots(roots).into_future();
        let opening = async {
            let probe = server.line().await.unwrap();
            let capabilities = json!({"tools": {}, "extensions": {TASKS_EXTENSION: {}}});
            let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities});
            answer(&mut server, &probe, found).await;
        };
        let (client, ()) = soon(async { tokio::join!(connecting, opening) }).await;
        let client = client.unwrap();
        let mut call = client.call_tool("any", json!({})).start();
        let asking_back = async {
            let asks = json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
            let mut request = server.line().await.unwrap();
            for _ in 0..rounds {
                answer(&mut server, &request, asks.clone()).await;
                request = server.line().await.unwrap();
            }
            request
        };
        let last = tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            last = soon(asking_back) => last,
        };
        let task = json!({"resultType": "task", "taskId": "one", "status": "working", "ttlMs": null,
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"});
        answer(&mut server, &last, task).await;
        // A later response shows that this one has arrived.
        let listing = async {
            let list = server.line().await.unwrap();
            answer(&mut server, &list, json!({"resultType": "complete", "tools": []})).await;
        };
        let (listed, ()) = soon(async { tokio::join!(client.list_tools(), listing) }).await;
        listed.unwrap();
        drop(call);
        let cancel = soon(server.line()).await.unwrap();
        assert_eq!((&cancel["method"], &cancel["params"]["taskId"]), (&json!("tasks/cancel"), &json!("one")));
    }
}

#[tokio::test]
async fn polling_a_task_ends_with_the_connection() {
    let (here, there) = memory::pair(1 << 10);
    let mut server = RawPeer::new(there);
    let connecting = Client::connect(here).negotiation(NegotiationMode::Stateless).tasks().into_future();
    let opening = async {
        let probe = server.line().await.unwrap();
        let capabilities = json!({"tools": {}, "extensions": {TASKS_EXTENSION: {}}});
        let found =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities});
        answer(&mut server, &probe, found).await;
    };
    let (client, ()) = soon(async { tokio::join!(connecting, opening) }).await;
    let client = client.unwrap();
    let mut call = Box::pin(client.call_tool("any", json!({})).start());
    let becoming = async {
        let request = server.line().await.unwrap();
        let task = json!({"resultType": "task", "taskId": "one", "status": "working", "ttlMs": null,
            "pollIntervalMs": 60_000, "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"});
        answer(&mut server, &request, task).await;
        // A later response shows that this one has arrived.
        let listing = async {
            let list = server.line().await.unwrap();
            answer(&mut server, &list, json!({"resultType": "complete", "tools": []})).await;
        };
        let (listed, ()) = tokio::join!(client.list_tools(), listing);
        listed.unwrap();
    };
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(becoming) => {}
    }
    // More than the server reads.
    let _long = client.call_tool("long", json!({"text": "x".repeat(1 << 16)})).start();
    soon(server.read_some()).await;
    soon(server.end_output()).await;
    let error = tokio::select! {
        biased;
        () = client.closed() => panic!("the call waits for as long as there is something to be written"),
        ended = soon(call) => ended.unwrap_err(),
    };
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
}

#[tokio::test]
async fn a_task_with_an_unanswerable_input_request_is_cancelled() {
    let asks = json!({"status": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
    let (connecting, requests) = one_task(asks);
    let client = connecting.capabilities(capabilities()).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    until_it_was_asked(&requests, "tasks/cancel").await;
}

#[tokio::test]
async fn an_input_request_that_is_repeated_is_answered_once() {
    let asks = json!({"status": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
    let (connecting, requests) = one_task(asks);
    let client = connecting
        .capabilities(capabilities())
        .on_roots(|_| async { Ok(steadfast::ListRootsResult::default()) })
        .await
        .unwrap();
    let mut call = Box::pin(client.call_tool("any", json!({})).start());
    let several = async {
        let looks = || requests.lock().unwrap().iter().filter(|request| request["method"] == "tasks/get").count();
        while looks() < 5 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(several) => {}
    }
    let requests = requests.lock().unwrap();
    let updates: Vec<_> = requests.iter().filter(|request| request["method"] == "tasks/update").collect();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["params"]["inputResponses"], json!({"r": {"roots": []}}));
}

#[tokio::test]
async fn the_number_of_input_requests_of_a_task_is_bounded() {
    let asked = Arc::new(AtomicUsize::new(0));
    let looks = Arc::clone(&asked);
    let (connecting, requests) = scripted(move |round, params| {
        let mut shown = json!({
            "taskId": "one", "status": "input_required", "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 20,
        });
        let first = looks.fetch_add(50, Ordering::SeqCst);
        let questions = (first..first + 50).map(|key| (key.to_string(), json!({"method": "roots/list"})));
        shown["inputRequests"] = Value::Object(questions.collect());
        match round {
            0 => shown["resultType"] = json!("task"),
            _ if params.get("inputResponses").is_some() => shown = json!({"resultType": "complete"}),
            _ => shown["resultType"] = json!("complete"),
        }
        shown
    });
    let roots = |_| async { Ok(ListRootsResult::default()) };
    let client = connecting.capabilities(capabilities()).on_roots(roots).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    assert!(error.to_string().contains("1000 input requests"), "{error}");
    until_it_was_asked(&requests, "tasks/cancel").await;
    let requests = requests.lock().unwrap();
    let updates = requests.iter().filter(|request| request["method"] == "tasks/update");
    let answers = updates.map(|update| update["params"]["inputResponses"].as_object().map_or(0, serde_json::Map::len));
    assert_eq!(answers.sum::<usize>(), 1_000);
}

#[tokio::test]
async fn remembered_input_keys_of_a_task_are_bounded_in_bytes() {
    let key = "k".repeat((1 << 20) + 1);
    let asks = json!({"status": "input_required", "inputRequests": {key: {"method": "roots/list"}}});
    let (connecting, requests) = one_task(asks);
    let roots = |_| async { Ok(ListRootsResult::default()) };
    let client = connecting.capabilities(capabilities()).on_roots(roots).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    until_it_was_asked(&requests, "tasks/cancel").await;
}

#[tokio::test]
async fn a_task_that_the_server_cancels_has_an_unknown_outcome() {
    let (connecting, _) = one_task(json!({"resultType": "complete", "status": "cancelled"}));
    let client = connecting.capabilities(capabilities()).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Cancelled, Outcome::Unknown));
}

#[tokio::test]
async fn a_task_that_times_out_has_an_unknown_outcome_and_is_cancelled() {
    let dropped = Signal::default();
    let gone = dropped.clone();
    let tool = ServerTool::new("forever").task(TaskMode::Required).handler(move || {
        let guard = gone.on_drop();
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }
    });
    let client = connect(tool).await;
    let call = client.call_tool("forever", json!({})).total_timeout(Duration::from_millis(80));
    let error = soon(call.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn a_protocol_error_of_a_task_is_the_error_of_the_call() {
    let tool = ServerTool::new("no")
        .task(TaskMode::Required)
        .handler(|| async { Err::<String, _>(ToolError::from(steadfast::Error::invalid_params("no such thing"))) });
    let error = soon(connect(tool).await.call_tool("no", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, Outcome::Refused));
    assert_eq!(error.refusal().unwrap().message, "no such thing");
}
