//! Sampling.

use std::sync::{Arc, Mutex};

use steadfast::{ClientCapabilities, CreateMessageParams, CreateMessageResult};

use crate::client::*;

/// A client with a model that answers `x`, and the requests to the model.
async fn with_model(
    capabilities: ClientCapabilities,
) -> (Client, RecordingServer, Arc<Mutex<Vec<CreateMessageParams>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let (client, server) = RecordingServer::connected(OLDER, move |connecting| {
        connecting.capabilities(capabilities).on_sample(move |params, _| {
            seen.lock().unwrap().push(params);
            async { Ok(CreateMessageResult::new("m", Content::text("x"))) }
        })
    })
    .await;
    (client, server, asked)
}

fn question(more: Value) -> Value {
    let mut params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 7});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

#[tokio::test]
async fn undeclared_sampling_tools_are_invalid_params() {
    let tools = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
    for (capabilities, taken) in
        [(ClientCapabilities::new(), false), (ClientCapabilities::new().with_sampling_tools(), true)]
    {
        let (_client, mut server, asked) = with_model(capabilities).await;
        assert_eq!(server.received[0]["params"]["capabilities"]["sampling"].get("tools").is_some(), taken);
        for more in [tools.clone(), json!({"toolChoice": {"mode": "required"}})] {
            let answer = server.ask("sampling/createMessage", question(more)).await;
            assert_eq!(answer.get("result").is_some(), taken, "{answer}");
            assert!(taken || answer["error"]["code"] == -32602, "{answer}");
        }
        assert_eq!(asked.lock().unwrap().len(), if taken { 2 } else { 0 });
    }
}

#[tokio::test]
async fn an_invalid_sampling_conversation_is_invalid_params() {
    let (_client, mut server, asked) = with_model(ClientCapabilities::new().with_sampling_tools()).await;
    let uses = json!({"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}});
    let result = json!({"type": "tool_result", "toolUseId": "1", "content": []});
    let (missing, mixed) = (json!({"type": "text", "text": "?"}), json!([result, {"type": "text", "text": "and"}]));
    for content in [missing, mixed] {
        let messages = json!({"messages": [uses, {"role": "user", "content": content}]});
        let answer = server.ask("sampling/createMessage", question(messages)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert!(asked.lock().unwrap().is_empty());
    let messages = json!({"messages": [uses, {"role": "user", "content": result}]});
    assert_eq!(server.ask("sampling/createMessage", question(messages)).await["result"]["role"], "assistant");
}

#[tokio::test]
async fn the_sampling_handler_gets_limits_and_model_preferences_of_each_request() {
    let (_client, mut server, asked) = with_model(ClientCapabilities::new().with_sampling_tools()).await;
    let more = json!({"modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 0.5},
        "toolChoice": {"mode": "none"}});
    for _ in 0..2 {
        server.ask("sampling/createMessage", question(more.clone())).await;
    }
    for params in asked.lock().unwrap().iter() {
        let told = serde_json::to_value(params).unwrap();
        assert_eq!((&told["maxTokens"], told["messages"].as_array().unwrap().len()), (&json!(7), 1));
        assert_eq!((&told["modelPreferences"], &told["toolChoice"]), (&more["modelPreferences"], &more["toolChoice"]));
    }
}

#[tokio::test]
async fn a_refused_sampling_request_has_the_error_code_of_the_handler() {
    let (_client, mut server) = RecordingServer::connected(OLDER, |connecting| {
        connecting.on_sample(|_, _| async { Err(Error::new(-1, "the user rejected it")) })
    })
    .await;
    assert_eq!(server.ask("sampling/createMessage", question(json!({}))).await["error"]["code"], -1);
    let (_client, mut server) = RecordingServer::connected(OLDER, |connecting| connecting).await;
    assert_eq!(server.ask("sampling/createMessage", question(json!({}))).await["error"]["code"], -32601);
}
