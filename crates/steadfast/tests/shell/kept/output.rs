//! What a tool answers is what it says that its answers are.

use steadfast::CallToolResult;
#[cfg(feature = "schema-validation")]
use steadfast::{ErrorKind, Fault, Outcome};

use super::*;

/// A client that knows the tool `sum` with that output schema.
async fn knowing(era: Era, schema: Value, settings: impl FnOnce(Connecting) -> Connecting) -> (Client, Puppet) {
    let (client, mut puppet) = Puppet::connect(era, settings).await;
    let listed = names(&client);
    let tool = json!({"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": schema});
    puppet
        .serve("tools/list", json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}))
        .await;
    at_once(listed).await;
    (client, puppet)
}

async fn call(client: &Client, puppet: &mut Puppet, answer: Value) -> Result<CallToolResult, steadfast::Error> {
    let call = tokio::spawn(client.call_tool("sum", json!({})).into_future());
    let mut result = json!({"resultType": "complete", "content": []});
    result.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    puppet.serve("tools/call", result).await;
    soon(call).await.unwrap()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"parts": {"items": {"type": "integer"}}}, "required": ["parts"]})
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn what_does_not_fit_is_an_error_that_says_where() {
    for era in [Era::Modern, HANDSHAKE] {
        let (client, mut puppet) = knowing(era, schema(), |connecting| connecting).await;
        let fits = call(&client, &mut puppet, json!({"structuredContent": {"parts": [1, 2]}})).await.unwrap();
        assert_eq!(fits.structured_content, Some(json!({"parts": [1, 2]})));
        let answer = json!({"structuredContent": {"parts": [1, "two"]}});
        let error = call(&client, &mut puppet, answer).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidOutput, Outcome::Answered));
        assert_eq!(error.fault(), Fault::Peer);
        assert!(error.to_string().contains("`sum`") && error.to_string().contains("`parts[1]`"), "{error}");
    }
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_promise_of_structured_content_is_broken_by_none() {
    let (client, mut puppet) = knowing(Era::Modern, schema(), |connecting| connecting).await;
    let error = call(&client, &mut puppet, json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidOutput, Outcome::Answered));
}

#[tokio::test]
async fn a_failure_looks_as_it_likes() {
    let (client, mut puppet) = knowing(Era::Modern, schema(), |connecting| connecting).await;
    let answer = json!({"isError": true, "structuredContent": 7});
    assert!(call(&client, &mut puppet, answer).await.unwrap().is_error());
    assert!(call(&client, &mut puppet, json!({"isError": true})).await.unwrap().is_error());
}

/// Schemas that nothing can be checked by, and what is said of each.
fn unreadable() -> [(Value, &'static str); 3] {
    [
        (
            json!({"$schema": "https://example.org/my-dialect", "type": "object"}),
            "is not supported; those that are: 2020-12",
        ),
        (json!({"$ref": "https://example.org/other.json"}), "https://example.org/other.json"),
        (json!({"description": "x".repeat(steadfast::server::schema_limits::BYTES)}), "longer than"),
    ]
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn a_tool_whose_output_schema_cannot_be_read_is_not_called_and_the_error_says_why() {
    for (schema, why) in unreadable() {
        for era in [Era::Modern, HANDSHAKE] {
            let (client, mut puppet) = knowing(era, schema.clone(), |connecting| connecting).await;
            for _ in 0..2 {
                let error = soon(client.call_tool("sum", json!({})).into_future()).await.unwrap_err();
                assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unsupported, Outcome::NotSent));
                assert_eq!(error.fault(), Fault::Peer);
                assert!(error.to_string().contains("`sum`") && error.to_string().contains(why), "{error}");
            }
            // What comes next shows that nothing was sent before.
            let listed = names(&client);
            puppet.asked("tools/list").await;
            drop(listed);
        }
    }
}

#[tokio::test]
async fn a_tool_whose_output_schema_cannot_be_read_is_called_by_who_wants_what_comes_as_it_is() {
    for (schema, _) in unreadable() {
        let (client, mut puppet) = knowing(Era::Modern, schema, Connecting::unchecked_output).await;
        call(&client, &mut puppet, json!({"structuredContent": 7})).await.unwrap();
        call(&client, &mut puppet, json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn whoever_wants_what_comes_as_it_is_has_it() {
    let (client, mut puppet) = knowing(Era::Modern, schema(), Connecting::unchecked_output).await;
    call(&client, &mut puppet, json!({"structuredContent": 7})).await.unwrap();
}

#[cfg(feature = "schema-validation")]
#[tokio::test]
async fn the_result_of_a_call_that_became_a_task_is_checked_too() {
    let tasks =
        steadfast::ClientCapabilities::new().with_extension(steadfast::TASKS_EXTENSION, steadfast::JsonObject::new());
    let (client, mut puppet) = knowing(Era::Modern, schema(), |connecting| connecting.capabilities(tasks)).await;
    let call = tokio::spawn(client.call_tool("sum", json!({})).into_future());
    let task = |status: &str| {
        json!({"taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 20})
    };
    let mut created = task("working");
    created["resultType"] = json!("task");
    puppet.serve("tools/call", created).await;
    let mut done = task("completed");
    done["resultType"] = json!("complete");
    done["result"] = json!({"content": [], "structuredContent": {"parts": ["none"]}});
    puppet.serve("tasks/get", done).await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOutput, "{error:?}");
}
