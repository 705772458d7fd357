//! No task runs without a waiting caller (L5): a client cancels its tasks when it closes, whatever happens at that moment.

use std::pin::Pin;

use serde_json::{Value, json};
use steadfast::client::{CallResultFuture, ConnectBuilder, NegotiationMode};
use steadfast::prelude::*;
use steadfast::{
    ClientCapabilities, ElicitResult, ErrorKind, JsonObject, Limits, Outcome,
    model::{TASKS_EXTENSION, request},
};

use crate::client::RecordingServer;
use crate::soon;

fn taking_tasks(connecting: ConnectBuilder) -> ConnectBuilder {
    connecting.capabilities(
        ClientCapabilities::new().with_extension(TASKS_EXTENSION, JsonObject::new()).with_elicitation_form(),
    )
}

/// A task that is polled once a minute.
fn task(name: &str, more: Value) -> Value {
    let mut task = json!({"taskId": name, "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null, "pollIntervalMs": 60_000, "resultType": "complete"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

type TaskCall = Pin<Box<CallResultFuture<request::CallTool>>>;

/// A call that has become a task of this name, and is followed.
async fn follow(client: &Client, server: &mut RecordingServer, name: &str) -> TaskCall {
    let mut call = Box::pin(client.call_tool("t", json!({})).start());
    let asked = server.until("tools/call").await;
    server.answer(&asked, task(name, json!({"resultType": "task"}))).await;
    // A later response shows that the task has arrived, so that its poller pauses once it has been polled.
    server.is_quiet(client).await;
    assert!(poll_once(&mut call).await.is_none());
    call
}

/// Polls it once. Gives what it came to.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// A call that waits, and what it asks its server. Whether it can be answered shows whether the connection is open.
async fn wait(client: &Client, server: &mut RecordingServer) -> (CallResultFuture<request::CallTool>, Value) {
    let call = client.call_tool("waits", json!({})).start();
    (call, server.until("tools/call").await)
}

/// The connection is open: this call can be answered.
async fn is_open(server: &mut RecordingServer, (call, asked): (CallResultFuture<request::CallTool>, Value)) {
    server.answer(&asked, json!({"resultType": "complete", "content": []})).await;
    soon(call).await.unwrap();
}

/// Answers every cancellation of a task to the end of the connection. Gives their names.
async fn take_cancellations(server: &mut RecordingServer) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(message) = server.next().await {
        if message["method"] == "tasks/cancel" {
            names.push(message["params"]["taskId"].as_str().unwrap_or_default().to_owned());
            server.answer(&message, json!({"resultType": "complete"})).await;
        }
    }
    names
}

#[tokio::test]
async fn a_second_close_waits_for_the_cancellations_of_the_first() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let _call = follow(&client, &mut server, "one").await;
    let waits = wait(&client, &mut server).await;
    let (mut first, mut second) = (Box::pin(client.clone().close()), Box::pin(client.close()));
    assert!(poll_once(&mut first).await.is_none());
    let cancel = server.until("tasks/cancel").await;
    assert!(poll_once(&mut second).await.is_none());
    is_open(&mut server, waits).await;
    server.answer(&cancel, json!({"resultType": "complete"})).await;
    soon(async { tokio::join!(first, second, server.read_to_the_end()) }).await;
}

#[tokio::test]
async fn closing_a_client_cancels_a_task_whose_id_was_not_read() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let call = client.call_tool("t", json!({})).start();
    let asked = server.until("tools/call").await;
    server.answer(&asked, task("one", json!({"resultType": "task"}))).await;
    // Sent after it, so it has arrived.
    server.is_quiet(&client).await;
    let ((), cancelled) = soon(async { tokio::join!(client.close(), take_cancellations(&mut server)) }).await;
    assert_eq!(cancelled, ["one"]);
    let error = soon(call).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
}

#[tokio::test]
async fn close_waits_for_the_cancellation_of_a_task_that_arrives_late() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let call = client.call_tool("t", json!({})).start();
    let asked = server.until("tools/call").await;
    drop(call);
    server.until("notifications/cancelled").await;
    server.answer(&asked, task("one", json!({"resultType": "task"}))).await;
    let cancel = server.until("tasks/cancel").await;
    let waits = wait(&client, &mut server).await;
    let mut closing = Box::pin(client.close());
    assert!(poll_once(&mut closing).await.is_none());
    is_open(&mut server, waits).await;
    server.answer(&cancel, json!({"resultType": "complete"})).await;
    soon(async { tokio::join!(closing, server.read_to_the_end()) }).await;
}

#[tokio::test]
async fn no_call_starts_while_close_waits_for_task_cancellations() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let _call = follow(&client, &mut server, "one").await;
    let other = client.clone();
    let mut closing = Box::pin(client.close());
    assert!(poll_once(&mut closing).await.is_none());
    let cancel = server.until("tasks/cancel").await;
    let mut called = Box::pin(other.call_tool("again", json!({})).start());
    let error = poll_once(&mut called).await.expect("an end").unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::NotSent));
    server.answer(&cancel, json!({"resultType": "complete"})).await;
    soon(async { tokio::join!(closing, server.read_to_the_end()) }).await;
}

/// A client that may have two calls at once and follows eight tasks, by their names.
async fn following_many() -> (Client, RecordingServer, Vec<String>, Vec<TaskCall>) {
    let mut limits = Limits::default();
    limits.calls = 2;
    let few = |connecting| taking_tasks(connecting).limits(limits);
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, few).await;
    let names: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let mut calls = Vec::new();
    for name in &names {
        calls.push(follow(&client, &mut server, name).await);
    }
    (client, server, names, calls)
}

#[tokio::test]
async fn closing_a_client_cancels_more_tasks_than_the_call_limit() {
    let (client, mut server, names, _calls) = following_many().await;
    let ((), cancelled) = soon(async { tokio::join!(client.close(), take_cancellations(&mut server)) }).await;
    assert_eq!(cancelled, names);
}

#[tokio::test]
async fn dropping_more_calls_than_the_limit_cancels_all_their_tasks() {
    let (client, mut server, names, calls) = following_many().await;
    drop(calls);
    for _ in &names {
        let cancel = server.until("tasks/cancel").await;
        server.answer(&cancel, json!({"resultType": "complete"})).await;
    }
    drop(client);
}

/// The future of a close may be dropped: the client is closed, and its tasks are cancelled at the server.
#[tokio::test]
async fn a_close_that_is_not_awaited_still_cancels_tasks() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let call = follow(&client, &mut server, "one").await;
    let mut closing = Box::pin(client.close());
    assert!(poll_once(&mut closing).await.is_none());
    drop(closing);
    assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(soon(take_cancellations(&mut server)).await, ["one"]);
}

/// It has two seconds.
#[tokio::test]
async fn a_server_that_does_not_read_a_task_cancellation_does_not_block_close() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, taking_tasks).await;
    let call = follow(&client, &mut server, "one").await;
    soon(client.close()).await;
    assert_eq!(soon(call).await.unwrap_err().kind(), ErrorKind::Closed);
    server.read_to_the_end().await;
}

/// The handler of a task's question closes the client.
#[tokio::test]
async fn closing_a_client_from_its_input_handler_cancels_the_task() {
    let closing = std::sync::Arc::new(std::sync::Mutex::new(None::<Client>));
    let to_close = std::sync::Arc::clone(&closing);
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| {
        taking_tasks(connecting).on_elicit(move |_, _| {
            let client = to_close.lock().unwrap().take();
            async move {
                if let Some(client) = client {
                    client.close().await;
                }
                Ok(ElicitResult::agree())
            }
        })
    })
    .await;
    *closing.lock().unwrap() = Some(client.clone());
    let call = client.call_tool("t", json!({})).start();
    drop(client);
    let serving = async {
        let asked = server.until("tools/call").await;
        server.answer(&asked, task("one", json!({"resultType": "task", "pollIntervalMs": 20}))).await;
        let get = server.until("tasks/get").await;
        let question = json!({"method": "elicitation/create", "params": {"message": "Name?",
            "requestedSchema": {"type": "object", "properties": {}}}});
        let asks = json!({"status": "input_required", "inputRequests": {"q": question}});
        server.answer(&get, task("one", asks)).await;
        take_cancellations(&mut server).await
    };
    let (ended, cancelled) = soon(async { tokio::join!(call, serving) }).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(cancelled, ["one"]);
}
