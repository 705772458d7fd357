//! Calls that become tasks.

use steadfast::{ClientCapabilities, ErrorKind, JsonObject, TASKS_EXTENSION};

use super::*;

fn taking_tasks(connecting: Connecting) -> Connecting {
    connecting.capabilities(ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new()))
}

fn task(more: Value) -> Value {
    let mut task = json!({"taskId": "one", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1, "resultType": "complete"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

#[tokio::test]
async fn a_task_where_none_may_be_is_no_answer() {
    // A request that cannot become one, and a client that did not say that it takes them.
    let (client, mut host) = Host::connected(Era::Modern, taking_tasks).await;
    let answering = async {
        let list = host.until("tools/list").await;
        host.answer(&list, task(json!({"resultType": "task"}))).await;
    };
    assert_eq!(with(client.list_tools(), answering).await.unwrap_err().kind(), ErrorKind::Decode);
    host.is_quiet(&client).await;
    let (client, mut host) = Host::connected(Era::Modern, |connecting| connecting).await;
    let answering = async {
        let call = host.until("tools/call").await;
        host.answer(&call, task(json!({"resultType": "task"}))).await;
    };
    let called = with(client.call_tool("t", json!({})).into_future(), answering).await;
    assert_eq!(called.unwrap_err().kind(), ErrorKind::Decode);
    host.is_quiet(&client).await;
}

#[tokio::test]
async fn a_task_or_a_result_is_taken_for_the_same_call_and_followed_to_its_end() {
    let (client, mut host) = Host::connected(Era::Modern, taking_tasks).await;
    host.is_quiet(&client).await;
    let answering = async {
        let call = host.until("tools/call").await;
        host.answer(&call, task(json!({"resultType": "task"}))).await;
        for status in ["working", "working", "completed"] {
            let get = host.until("tasks/get").await;
            assert_eq!(get["params"]["taskId"], "one");
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            host.answer(&get, task(json!({"status": status, "result": result}))).await;
        }
    };
    let result = with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
    assert_eq!(text(&result), "done");
    host.is_quiet(&client).await;
}

#[tokio::test]
async fn a_task_that_is_not_wanted_any_more_is_cancelled_by_its_own_method() {
    let (client, mut host) = Host::connected(Era::Modern, taking_tasks).await;
    let mut call = Box::pin(client.call_tool("t", json!({})).start());
    let answering = async {
        let call = host.until("tools/call").await;
        host.answer(&call, task(json!({"resultType": "task"}))).await;
        let get = host.until("tasks/get").await;
        host.answer(&get, task(json!({}))).await;
        host.until("tasks/get").await
    };
    let get = tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        get = soon(answering) => get,
    };
    drop(call);
    let cancel = host.until("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "one");
    host.answer(&cancel, json!({"resultType": "complete"})).await;
    // What was asked about the task may be given up as any request may; the call itself was answered.
    for message in host.heard.iter().filter(|message| message["method"] == "notifications/cancelled") {
        assert_eq!(message["params"]["requestId"], get["id"], "{message}");
    }
}

#[tokio::test]
async fn the_older_tasks_are_neither_declared_nor_asked_for() {
    let (client, mut host) = Host::connected(OLDER, taking_tasks).await;
    host.is_quiet(&client).await;
    assert!(host.heard[0]["params"]["capabilities"].get("tasks").is_none(), "{:?}", host.heard[0]);
    assert!(host.heard.iter().all(|message| message["params"].get("task").is_none()), "{:?}", host.heard);
}

#[tokio::test]
async fn a_task_is_not_asked_for_more_often_than_its_server_says() {
    const PACE: Duration = Duration::from_millis(300);
    let (client, mut host) = Host::connected(Era::Modern, taking_tasks).await;
    let answering = async {
        let call = host.until("tools/call").await;
        let mut said = std::time::Instant::now();
        host.answer(&call, task(json!({"resultType": "task", "pollIntervalMs": 300}))).await;
        for status in ["working", "completed"] {
            let get = host.until("tasks/get").await;
            assert!(said.elapsed() >= PACE, "{:?}", said.elapsed());
            said = std::time::Instant::now();
            let result = json!({"content": []});
            host.answer(&get, task(json!({"status": status, "result": result, "pollIntervalMs": 300}))).await;
        }
    };
    with(client.call_tool("t", json!({})).into_future(), answering).await.unwrap();
}
