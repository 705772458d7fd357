//! Retries of calls that needed input.

use steadfast::{ErrorKind, ListRootsResult};

use crate::client::*;

fn asked(state: &str, key: &str) -> Value {
    json!({"resultType": "input_required", "requestState": state, "inputRequests": {key: {"method": "roots/list"}}})
}

#[tokio::test]
async fn input_responses_are_sent_only_with_the_retry_of_their_own_call() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| {
        connecting.on_roots(|_| async { Ok(ListRootsResult::default()) })
    })
    .await;
    let calls = async {
        let call = |name: &str| client.call_tool(name, json!({"of": name})).into_future();
        tokio::try_join!(call("one"), call("two"))
    };
    let answering = async {
        let mut firsts = vec![server.until("tools/call").await, server.until("tools/call").await];
        firsts.reverse();
        for call in &firsts {
            let name = call["params"]["name"].as_str().unwrap();
            server.answer(call, asked(&format!("state of {name}"), &format!("key of {name}"))).await;
        }
        let mut ids: Vec<String> = firsts.iter().map(|call| call["id"].to_string()).collect();
        for _ in 0..2 {
            let retry = server.until("tools/call").await;
            let params = &retry["params"];
            let name = params["name"].as_str().unwrap();
            assert_eq!(params["arguments"], json!({"of": name}));
            assert_eq!(params["requestState"], format!("state of {name}"));
            assert_eq!(params["inputResponses"], json!({format!("key of {name}"): {"roots": []}}));
            ids.push(retry["id"].to_string());
            server.answer(&retry, json!({"resultType": "complete", "content": []})).await;
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4);
        // A call of its own has nothing of them.
        let other = server.until("prompts/get").await;
        assert!(other["params"].get("requestState").is_none() && other["params"].get("inputResponses").is_none());
        server.answer(&other, json!({"resultType": "complete", "messages": []})).await;
    };
    let all = async {
        calls.await?;
        client.get_prompt("p", json!({ "a": "b" })).await
    };
    with(all, answering).await.unwrap();
}

#[tokio::test]
async fn a_call_is_not_retried_before_every_input_request_is_answered() {
    let (client, mut server) = RecordingServer::connected(NegotiationMode::Stateless, |connecting| connecting).await;
    let asking = async {
        let call = server.until("tools/call").await;
        server.answer(&call, asked("s", "k")).await;
    };
    // There is no handler for it.
    let error = with(client.call_tool("t", json!({})).into_future(), asking).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unanswered);
    server.is_quiet(&client).await;
}
