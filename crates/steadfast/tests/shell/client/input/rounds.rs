//! Calls of several rounds: the server requests input, handlers respond, and the caller gets the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use steadfast::client::{CallOutcome, NegotiationMode};
use steadfast::prelude::*;
use steadfast::{
    CallToolResult, ClientCapabilities, Content, CreateMessageResult, ElicitResult, Error, ErrorKind, FaultParty,
    ListRootsResult, Outcome, Revision, Root,
};

use crate::support::scripted;
use crate::{Signal, server, soon};

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(Content::as_text).unwrap_or_default()
}

/// Asks twice, the second time for two things at once.
fn tour() -> ServerTool {
    ServerTool::new("tour").handler(|ctx: Context| async move {
        let name: String = ctx.elicit("Name?").await?;
        let sample = ctx.sample(format!("Greet {name}."));
        let (greeting, roots) = tokio::join!(sample.into_future(), ctx.roots().into_future());
        let (greeting, roots) = (greeting?, roots?);
        let said = greeting.content.first().and_then(|content| content.as_text().map(str::to_owned));
        Ok::<_, ToolError>(format!("{} {}", said.unwrap_or_default(), roots.roots.len()))
    })
}

fn everything() -> ClientCapabilities {
    ClientCapabilities::new().with_roots(false).with_sampling().with_elicitation_form()
}

fn answers(content: Value) -> ElicitResult {
    ElicitResult::accept(content.as_object().cloned().unwrap_or_default())
}

#[tokio::test]
async fn one_set_of_handlers_answers_servers_of_both_eras() {
    for era in [NegotiationMode::Stateless, NegotiationMode::Handshake(Revision::V2025_11_25)] {
        let client = Client::connect(server([tour()]))
            .negotiation(era)
            .capabilities(everything())
            .on_roots(|_| async { Ok(ListRootsResult::new(vec![Root::new("file:///a")])) })
            .on_sample(|params, _| async move {
                let asked = params.messages.first().and_then(|message| message.content.first().cloned());
                let asked = asked.and_then(|content| content.as_text().map(str::to_owned)).unwrap_or_default();
                Ok(CreateMessageResult::new("model", Content::text(format!("({asked})"))))
            })
            .on_elicit(|_, _| async { Ok(answers(json!({"answer": "Ann"}))) })
            .await
            .unwrap();
        let result = soon(client.call_tool("tour", json!({})).into_future()).await.unwrap();
        assert_eq!(text(&result), "(Greet Ann.) 1", "{era:?}");
    }
}

#[tokio::test]
async fn an_input_request_without_a_handler_ends_the_call_and_is_named() {
    let question = json!({"method": "elicitation/create", "params": {"message": "Name?",
        "requestedSchema": {"type": "object", "properties": {}}}});
    let asks = json!({"resultType": "input_required", "inputRequests": {"name": question}});
    let (connecting, _) = scripted(move |_, _| asks.clone());
    let client = connecting.capabilities(everything()).await.unwrap();
    let error = soon(client.call_tool("tour", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    assert!(error.to_string().contains("`name` (elicitation/create)"), "{error}");
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_ends_its_call_and_no_other() {
    let client = Client::connect(server([tour(), crate::echo()]))
        .negotiation(NegotiationMode::Stateless)
        .capabilities(everything())
        .on_elicit(|params, _| async move {
            assert!(params.message() != "Name?", "on purpose");
            Ok(ElicitResult::agree())
        })
        .await
        .unwrap();
    let error = soon(client.call_tool("tour", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    let echoed = soon(client.call_tool("echo", json!({"text": "still here"})).into_future()).await.unwrap();
    assert_eq!(text(&echoed), "still here");
}

#[tokio::test]
async fn a_call_without_a_response_after_its_input_is_settled_as_unknown_and_can_be_retried() {
    let answer = |round: usize, _: &Value| match round {
        0 => json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}),
        _ => json!({"resultType": "complete", "content": []}),
    };
    let (connecting, requests) = scripted(answer);
    let client =
        connecting.on_roots(|_| async { Err::<ListRootsResult, _>(Error::internal("not today")) }).await.unwrap();
    let settled = soon(client.call_tool("pay", json!({"amount": 5})).outcome()).await;
    let CallOutcome::Unknown(unknown) = settled else { panic!("{settled:?}") };
    assert_eq!(unknown.error().kind(), ErrorKind::Unanswered);
    assert!(matches!(soon(unknown.call_again().outcome()).await, CallOutcome::Completed(_)));
    let requests = requests.lock().unwrap();
    assert_eq!(requests[1]["params"]["arguments"], json!({"amount": 5}));
    assert!(requests[1]["params"].get("inputResponses").is_none());
}

#[tokio::test]
async fn the_number_of_concurrent_input_handlers_is_bounded() {
    for (asked, answered) in [(64, true), (65, false)] {
        let answer = move |round: usize, _: &Value| {
            let questions = (0..asked).map(|key| (key.to_string(), json!({"method": "roots/list"})));
            match round {
                0 => json!({"resultType": "input_required", "inputRequests": Value::Object(questions.collect())}),
                _ => json!({"resultType": "complete", "content": []}),
            }
        };
        let (connecting, _) = scripted(answer);
        let put = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&put);
        let client = connecting
            .on_roots(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                async { Ok(ListRootsResult::default()) }
            })
            .await
            .unwrap();
        let ended = soon(client.call_tool("any", json!({})).into_future()).await;
        assert_eq!(ended.is_ok(), answered, "{ended:?}");
        assert_eq!(put.load(Ordering::SeqCst), if answered { asked } else { 0 });
        if let Err(error) = ended {
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
            assert!(error.to_string().contains("65 input requests at once"), "{error}");
            assert_eq!(error.fault(), FaultParty::Peer);
        }
    }
}

#[tokio::test]
async fn dropping_a_call_drops_its_input_handlers() {
    let (asked, dropped) = (Signal::default(), Signal::default());
    let (begun, gone) = (asked.clone(), dropped.clone());
    let client = Client::connect(server([tour()]))
        .negotiation(NegotiationMode::Stateless)
        .capabilities(everything())
        .on_elicit(move |_, _| {
            let (begun, guard) = (begun.clone(), gone.on_drop());
            async move {
                let _guard = guard;
                begun.set();
                std::future::pending::<Result<ElicitResult, Error>>().await
            }
        })
        .await
        .unwrap();
    let mut call = Box::pin(client.call_tool("tour", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(asked.wait()) => {}
    }
    drop(call);
    soon(dropped.wait()).await;
}

#[tokio::test]
async fn dropping_a_call_in_a_later_round_cancels_the_request_of_that_round() {
    let (here, there) = steadfast::transport::memory::pair(1 << 16);
    let mut server = crate::support::RawPeer::new(there);
    let roots = |_| async { Ok(ListRootsResult::default()) };
    let connecting = Client::connect(here).negotiation(NegotiationMode::Stateless).on_roots(roots).into_future();
    let opening = async {
        let probe = server.line().await.unwrap();
        let found =
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
        server.send(&json!({"jsonrpc": "2.0", "id": probe["id"], "result": found})).await;
    };
    let (client, ()) = soon(async { tokio::join!(connecting, opening) }).await;
    let client = client.unwrap();
    let mut call = client.call_tool("any", json!({})).start();
    let asking_back = async {
        let first = server.line().await.unwrap();
        let asks = json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
        server.send(&json!({"jsonrpc": "2.0", "id": first["id"], "result": asks})).await;
        server.line().await.unwrap()
    };
    let second = tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        second = soon(asking_back) => second,
    };
    drop(call);
    let told = soon(server.line()).await.unwrap();
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], second["id"]);
}

#[tokio::test]
async fn the_total_timeout_covers_all_rounds_of_a_call() {
    let client = Client::connect(server([tour()]))
        .negotiation(NegotiationMode::Stateless)
        .capabilities(everything())
        .on_elicit(|_, _| std::future::pending::<Result<ElicitResult, Error>>())
        .await
        .unwrap();
    let call = client.call_tool("tour", json!({})).total_timeout(std::time::Duration::from_millis(50));
    let error = soon(call.into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::TimedOut, Outcome::Unknown));
    assert!(error.to_string().contains("total time"), "{error}");
}

#[tokio::test]
async fn a_call_that_waits_for_input_reports_that_this_client_was_closed() {
    let asked = Signal::default();
    let begun = asked.clone();
    let client = Client::connect(server([tour()]))
        .negotiation(NegotiationMode::Stateless)
        .capabilities(everything())
        .on_elicit(move |_, _| {
            begun.set();
            std::future::pending::<Result<ElicitResult, Error>>()
        })
        .await
        .unwrap();
    let mut call = Box::pin(client.call_tool("tour", json!({})).start());
    tokio::select! {
        ended = &mut call => panic!("{ended:?}"),
        () = soon(asked.wait()) => {}
    }
    let (ended, ()) = soon(async { tokio::join!(call, client.close()) }).await;
    let error = ended.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Closed, Outcome::Unknown));
    assert_eq!(error.to_string(), "the client was closed");
}

#[tokio::test]
async fn a_request_state_is_returned_unchanged_and_only_if_present() {
    let answer = |round: usize, _: &Value| match round {
        0 => json!({"resultType": "input_required", "requestState": " exact\\u0041 "}),
        1 => json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}),
        _ => json!({"resultType": "complete", "content": []}),
    };
    let (connecting, requests) = scripted(answer);
    let client =
        connecting.capabilities(everything()).on_roots(|_| async { Ok(ListRootsResult::default()) }).await.unwrap();
    soon(client.call_tool("any", json!({"a": 1})).into_future()).await.unwrap();
    let requests = requests.lock().unwrap();
    let [first, second, third] = &requests[..] else { panic!("{requests:?}") };
    assert!(first["params"].get("requestState").is_none());
    assert_eq!(second["params"]["requestState"], " exact\\u0041 ");
    assert!(second["params"].get("inputResponses").is_none());
    assert!(third["params"].get("requestState").is_none(), "{third}");
    assert_eq!(third["params"]["inputResponses"], json!({"r": {"roots": []}}));
    for round in [second, third] {
        assert_eq!(round["params"]["arguments"], json!({"a": 1}));
        assert_eq!(round["params"]["_meta"], first["params"]["_meta"]);
        assert_ne!(round["id"], first["id"]);
    }
}

#[tokio::test]
async fn a_handler_registered_by_request_type_is_declared_and_gets_defaults() {
    let answer = |round: usize, _: &Value| match round {
        0 => json!({"resultType": "input_required", "inputRequests": {"e": {"method": "elicitation/create",
            "params": {"message": "Who?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "age": {"type": "integer", "default": 30}}}}}}}),
        _ => json!({"resultType": "complete", "content": []}),
    };
    let (connecting, requests) = scripted(answer);
    let client = connecting
        .on_elicit(|_, _| async { Ok(answers(json!({"name": "Ann"}))) })
        .on_roots(|_| async { Ok(ListRootsResult::default()) })
        .await
        .unwrap();
    soon(client.call_tool("any", json!({})).into_future()).await.unwrap();
    let requests = requests.lock().unwrap();
    let [first, second] = &requests[..] else { panic!("{requests:?}") };
    let declared = &first["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["elicitation"], json!({"form": {}, "url": {}}));
    assert_eq!((declared.get("roots").is_some(), declared.get("sampling")), (true, None));
    let answered = json!({"e": {"action": "accept", "content": {"name": "Ann", "age": 30}}});
    assert_eq!(second["params"]["inputResponses"], answered);
}

#[tokio::test]
async fn the_number_of_rounds_of_a_call_is_bounded() {
    let ask =
        |_: usize, _: &Value| json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
    let (connecting, requests) = scripted(ask);
    let client =
        connecting.capabilities(everything()).on_roots(|_| async { Ok(ListRootsResult::default()) }).await.unwrap();
    let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown));
    assert_eq!(error.fault(), FaultParty::Peer);
    // All of its hundred questions were answered, and not the one after them.
    assert_eq!(error.to_string(), "the server asked for input more than 100 times");
    assert_eq!(requests.lock().unwrap().len(), 101);
}

#[tokio::test]
async fn an_input_result_without_requests_is_a_protocol_error_and_a_failing_handler_is_not() {
    let nothing = |_: usize, _: &Value| json!({"resultType": "input_required"});
    let something =
        |_: usize, _: &Value| json!({"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}});
    for ((connecting, _), fault) in [(scripted(nothing), FaultParty::Peer), (scripted(something), FaultParty::Local)] {
        let roots = |_| async { Err::<ListRootsResult, _>(Error::internal("not today")) };
        let client = connecting.on_roots(roots).await.unwrap();
        let error = soon(client.call_tool("any", json!({})).into_future()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unanswered, Outcome::Unknown), "{error}");
        assert_eq!(error.fault(), fault, "{error}");
    }
}

#[tokio::test]
async fn only_three_methods_may_request_input() {
    let ask = |_: usize, _: &Value| json!({"resultType": "input_required", "requestState": "s"});
    let (connecting, requests) = scripted(ask);
    let client = connecting.await.unwrap();
    let error = soon(client.list_tools()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert_eq!(requests.lock().unwrap().len(), 1);
}
