//! Results are checked against the output schema of their tool.

use steadfast::CallToolResult;
#[cfg(feature = "schema-validation")]
use steadfast::{ErrorKind, FaultParty, Outcome};

use crate::client::manual_server::*;

/// A client that knows the tool `sum` with that output schema.
async fn knowing(
    era: NegotiationMode,
    schema: Value,
    settings: impl FnOnce(ConnectBuilder) -> ConnectBuilder,
) -> (Client, ManualServer) {
    let (client, mut server) = ManualServer::connect(era, settings).await;
    let listed = names(&client);
    let tool = json!({"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": schema});
    server
        .serve("tools/list", json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}))
        .await;
    at_once(listed).await;
    (client, server)
}

async fn call(client: &Client, server: &mut ManualServer, answer: Value) -> Result<CallToolResult, steadfast::Error> {
    let call = tokio::spawn(client.call_tool("sum", json!({})).into_future());
    let mut result = json!({"resultType": "complete", "content": []});
    result.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    server.serve("tools/call", result).await;
    soon(call).await.unwrap()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"parts": {"items": {"type": "integer"}}}, "required": ["parts"]})
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_result_that_does_not_match_the_schema_is_an_error_with_its_position() {
    for era in [NegotiationMode::Stateless, HANDSHAKE] {
        let (client, mut server) = knowing(era, schema(), |connecting| connecting).await;
        let fits = call(&client, &mut server, json!({"structuredContent": {"parts": [1, 2]}})).await.unwrap();
        assert_eq!(fits.structured_content, Some(json!({"parts": [1, 2]})));
        let answer = json!({"structuredContent": {"parts": [1, "two"]}});
        let error = call(&client, &mut server, answer).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidOutput, Outcome::Answered));
        assert_eq!(error.fault(), FaultParty::Peer);
        assert!(error.to_string().contains("`sum`") && error.to_string().contains("`parts[1]`"), "{error}");
    }
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_result_without_the_promised_structured_content_is_an_error() {
    let (client, mut server) = knowing(NegotiationMode::Stateless, schema(), |connecting| connecting).await;
    let error = call(&client, &mut server, json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidOutput, Outcome::Answered));
}

#[tokio::test]
async fn a_tool_error_is_not_checked_against_the_schema() {
    let (client, mut server) = knowing(NegotiationMode::Stateless, schema(), |connecting| connecting).await;
    let answer = json!({"isError": true, "structuredContent": 7});
    assert!(call(&client, &mut server, answer).await.unwrap().is_error());
    assert!(call(&client, &mut server, json!({"isError": true})).await.unwrap().is_error());
}

/// Schemas that cannot be used for validation, with the error message of each.
fn unreadable() -> [(Value, &'static str); 3] {
    [
        (
            json!({"$schema": "https://example.org/my-dialect", "type": "object"}),
            "is not supported; supported dialects: 2020-12",
        ),
        (json!({"$ref": "https://example.org/other.json"}), "https://example.org/other.json"),
        (json!({"description": "x".repeat(1 << 20)}), "longer than"),
    ]
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_tool_with_an_invalid_output_schema_is_not_called_and_the_error_says_why() {
    for (schema, why) in unreadable() {
        for era in [NegotiationMode::Stateless, HANDSHAKE] {
            let (client, mut server) = knowing(era, schema.clone(), |connecting| connecting).await;
            for _ in 0..2 {
                let error = soon(client.call_tool("sum", json!({})).into_future()).await.unwrap_err();
                assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsupported, Outcome::NotSent));
                assert_eq!(error.fault(), FaultParty::Peer);
                assert!(error.to_string().contains("`sum`") && error.to_string().contains(why), "{error}");
            }
            // What comes next shows that nothing was sent before.
            let listed = names(&client);
            server.asked("tools/list").await;
            drop(listed);
        }
    }
}

#[tokio::test]
async fn a_tool_with_an_invalid_output_schema_is_called_if_results_are_unchecked() {
    for (schema, _) in unreadable() {
        let (client, mut server) = knowing(NegotiationMode::Stateless, schema, ConnectBuilder::unchecked_output).await;
        call(&client, &mut server, json!({"structuredContent": 7})).await.unwrap();
        call(&client, &mut server, json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn unchecked_results_are_returned_as_they_are() {
    let (client, mut server) = knowing(NegotiationMode::Stateless, schema(), ConnectBuilder::unchecked_output).await;
    call(&client, &mut server, json!({"structuredContent": 7})).await.unwrap();
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn the_result_of_a_call_that_became_a_task_is_checked_too() {
    let tasks = steadfast::ClientCapabilities::new()
        .with_extension(steadfast::model::TASKS_EXTENSION, steadfast::JsonObject::new());
    let (client, mut server) =
        knowing(NegotiationMode::Stateless, schema(), |connecting| connecting.capabilities(tasks)).await;
    let call = tokio::spawn(client.call_tool("sum", json!({})).into_future());
    let task = |status: &str| {
        json!({"taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 20})
    };
    let mut created = task("working");
    created["resultType"] = json!("task");
    server.serve("tools/call", created).await;
    let mut done = task("completed");
    done["resultType"] = json!("complete");
    done["result"] = json!({"content": [], "structuredContent": {"parts": ["none"]}});
    server.serve("tasks/get", done).await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOutput, "{error:?}");
}
