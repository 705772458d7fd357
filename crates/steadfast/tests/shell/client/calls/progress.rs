//! The progress of a call as a stream.

use steadfast::Outcome;
use steadfast::client::{CallOutcome, ProgressStream};

use crate::client::manual_server::*;
use crate::{Signal, echo, forever, server};

async fn report(server: &mut ManualServer, call: &Value, progress: u32) {
    let params = json!({"progressToken": call["params"]["_meta"]["progressToken"], "progress": progress});
    server.notify("notifications/progress", params).await;
}

async fn next(progress: &mut ProgressStream) -> String {
    soon(progress.next()).await.unwrap().progress.to_string()
}

fn done() -> Value {
    json!({"resultType": "complete", "content": []})
}

#[tokio::test]
async fn progress_arrives_before_the_result_is_awaited_and_ends_with_the_call() {
    for era in [NegotiationMode::Stateless, HANDSHAKE] {
        let (client, mut server) = ManualServer::connect(era, |connecting| connecting).await;
        let (mut progress, result) = client.call_tool("build", json!({})).start_with_progress();
        let call = server.asked("tools/call").await;
        for step in 1..=3_u32 {
            report(&mut server, &call, step).await;
            assert_eq!(next(&mut progress).await, step.to_string());
        }
        server.answer(&call, done()).await;
        assert!(soon(progress.next()).await.is_none());
        soon(result).await.unwrap();
    }
}

#[tokio::test]
async fn progress_continues_over_the_rounds_of_a_call() {
    let roots = |_| async { Ok(steadfast::ListRootsResult::default()) };
    let (client, mut server) = ManualServer::modern(|connecting| connecting.on_roots(roots)).await;
    let (mut progress, result) = client.call_tool("build", json!({})).start_with_progress();
    let call = server.asked("tools/call").await;
    report(&mut server, &call, 1).await;
    let asks = json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
    server.answer(&call, asks).await;
    assert_eq!(next(&mut progress).await, "1");
    let round = server.asked("tools/call").await;
    report(&mut server, &round, 2).await;
    assert_eq!(next(&mut progress).await, "2");
    server.answer(&round, done()).await;
    assert!(soon(progress.next()).await.is_none());
    soon(result).await.unwrap();
}

#[tokio::test]
async fn dropping_the_progress_stream_does_not_cancel_the_call() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (progress, result) = client.call_tool("build", json!({})).start_with_progress();
    let call = server.asked("tools/call").await;
    drop(progress);
    report(&mut server, &call, 1).await;
    server.answer(&call, done()).await;
    soon(result).await.unwrap();
}

#[tokio::test]
async fn dropping_the_result_cancels_the_call_and_ends_the_stream() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let client = Client::connect(server([forever(&begun, &dropped)])).await.unwrap();
    let (mut progress, result) = client.call_tool("forever", json!({})).start_with_progress();
    soon(begun.wait()).await;
    drop(result);
    soon(dropped.wait()).await;
    assert!(soon(progress.next()).await.is_none());
}

#[tokio::test]
async fn a_slow_reader_loses_the_oldest_items() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (mut progress, result) = client.call_tool("build", json!({})).start_with_progress();
    let call = server.asked("tools/call").await;
    for step in 1..=200 {
        report(&mut server, &call, step).await;
    }
    server.answer(&call, done()).await;
    soon(result).await.unwrap();
    let mut heard = Vec::new();
    while let Some(report) = soon(progress.next()).await {
        heard.push(report.progress);
    }
    assert!(heard.len() <= 64 && heard.is_sorted(), "{heard:?}");
    assert_eq!(heard.last(), Some(&200.0));
}

#[tokio::test]
async fn extra_members_of_a_progress_report_count_towards_its_size() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (mut progress, result) = client.call_tool("build", json!({})).start_with_progress();
    let call = server.asked("tools/call").await;
    for step in 1..=4 {
        let params = json!({"progressToken": call["params"]["_meta"]["progressToken"], "progress": step,
            "_meta": {"example.org/padding": "x".repeat(600 << 10)}});
        server.notify("notifications/progress", params).await;
    }
    server.answer(&call, done()).await;
    soon(result).await.unwrap();
    assert_eq!(next(&mut progress).await, "4");
    assert!(soon(progress.next()).await.is_none());
}

#[tokio::test]
async fn a_call_that_fails_ends_its_stream() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (mut progress, result) = client.call_tool("build", json!({})).start_with_progress();
    let call = server.asked("tools/call").await;
    server.refuse(&call, -32602).await;
    assert!(soon(progress.next()).await.is_none());
    soon(result).await.unwrap_err();
}

#[tokio::test]
async fn a_detached_call_can_be_cancelled_through_its_handle() {
    let (begun, dropped) = (Signal::default(), Signal::default());
    let client = Client::connect(server([forever(&begun, &dropped)])).await.unwrap();
    let (mut progress, result) = client.call_tool("forever", json!({})).start_with_progress();
    soon(begun.wait()).await;
    result.canceller().cancel();
    soon(dropped.wait()).await;
    assert!(soon(progress.next()).await.is_none());
    let CallOutcome::Cancelled(error) = soon(result.outcome()).await else { panic!("it was cancelled") };
    assert_eq!(error.outcome(), Outcome::Unknown);
}

#[tokio::test]
async fn a_detached_call_is_settled_and_can_be_retried() {
    let (client, mut server) = ManualServer::modern(|connecting| connecting).await;
    let (_progress, result) = client.call_tool("build", json!({"a": 1})).start_with_progress();
    server.serve("tools/call", done()).await;
    assert!(matches!(soon(result.outcome()).await, CallOutcome::Completed(_)));
    let (_progress, result) = client.call_tool("build", json!({"a": 1})).start_with_progress();
    server.asked("tools/call").await;
    drop(server);
    let CallOutcome::Unknown(unknown) = soon(result.outcome()).await else { panic!("nobody knows") };
    let CallOutcome::NotSent(_) = soon(unknown.call_again().outcome()).await else { panic!("there is no connection") };
}

#[tokio::test]
async fn a_running_call_that_is_polled_after_its_end_stays_pending() {
    let client = Client::connect(server([echo()])).await.unwrap();
    let (_, mut call) = client.call_tool("echo", json!({"text": "x"})).start_with_progress();
    soon(&mut call).await.unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(std::pin::Pin::new(&mut call).poll(&mut cx).is_pending());
}
