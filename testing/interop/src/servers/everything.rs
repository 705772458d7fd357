//! The same checks, as far as they go, with the reference server: it offers other things, and nothing of it is ours.

use serde_json::{Value, json};
use steadfast::{Error, Reference, Revision};

use super::check::Check;
use super::session::{ROOT, Session, is_refused};
use super::{calls, lists, shutdown};

/// What takes long enough to be left or killed.
const LONG: &str = "trigger-long-running-operation";

/// What it tells of changes of.
const RESOURCE: &str = "demo://resource/dynamic/text/7";

/// The checks.
pub(crate) const ALL: &[Check] = &[
    Check::new("open", |session| Box::pin(async { Ok(open(session)) }), || json!({ "has_instructions": true })),
    Check::new("list", |session| Box::pin(list(session)), || json!({ "echo": ["message"], "asks": true })),
    Check::new(
        "call",
        |session| Box::pin(call(session)),
        || json!({ "echo": ["Echo: h\u{e9}llo \u{1d11e}", false], "sum": ["The sum of 2 and 3 is 5.", false], "tasks": true }),
    ),
    Check::new(
        "structured",
        |session| Box::pin(structured(session)),
        || json!({ "weather": { "temperature": 33, "conditions": "Cloudy", "humidity": 82 } }),
    ),
    Check::new(
        "errors",
        |session| Box::pin(errors(session)),
        || json!({ "bad_arguments": true, "unknown": true, "not_found": true }),
    ),
    Check::new("concurrent", |session| Box::pin(concurrent(session)), || json!({ "answers": calls::AT_ONCE })),
    Check::new(
        "progress",
        |session| Box::pin(progress(session)),
        || json!({ "steps": [[1, 4], [2, 4], [3, 4], [4, 4]] }),
    ),
    Check::new(
        "resources",
        |session| Box::pin(resources(session)),
        || {
            json!({
                "has_documents": true,
                "templates": ["demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"],
                "read": true,
            })
        },
    ),
    Check::new(
        "subscribe",
        |session| Box::pin(subscribe(session)),
        || json!({ "listening": true, "change": RESOURCE }),
    ),
    Check::new(
        "prompts",
        |session| Box::pin(prompts(session)),
        || json!({ "text": "What's weather in Berlin, BE?", "refused": true }),
    ),
    Check::new("complete", |session| Box::pin(complete(session)), || json!({ "department": ["Sales", "Support"] })),
    Check::new("elicit", |session| Box::pin(elicit(session)), || json!({ "accepted": true, "default": true })),
    Check::new("sample", |session| Box::pin(sample(session)), || json!({ "answered": true })),
    Check::new("roots", |session| Box::pin(roots(session)), || json!({ "root": true })),
    Check::last(
        "close",
        |session| Box::pin(shutdown::close_while(session, LONG, json!({ "duration": 60, "steps": 600 }))),
        || json!({ "call": "Unknown", "afterwards": "NotSent", "gone": true }),
    ),
    Check::last(
        "kill",
        |session| Box::pin(shutdown::kill_while(session, LONG, json!({ "duration": 60, "steps": 600 }))),
        || json!({ "call": "Unknown", "afterwards": "NotSent" }),
    ),
];

fn open(session: &Session) -> Value {
    json!({ "has_instructions": session.client.instructions().is_some_and(|text| text.contains("Everything")) })
}

/// The tools that ask the client come when the server knows the capabilities of the client.
async fn list(session: &Session) -> Result<Value, Error> {
    let tools = session.client.list_tools().await?;
    let echo = tools.iter().find(|tool| tool.name == "echo").and_then(|tool| tool.input_schema.get("required"));
    let asks = ["trigger-sampling-request", "get-roots-list"];
    let asks = asks.iter().all(|name| tools.iter().any(|tool| tool.name == *name));
    Ok(json!({ "echo": echo, "asks": asks }))
}

async fn call(session: &Session) -> Result<Value, Error> {
    Ok(json!({
        "echo": session.call("echo", json!({ "message": "h\u{e9}llo \u{1d11e}" })).await?,
        "sum": session.call("get-sum", json!({ "a": 2, "b": 3 })).await?,
        "tasks": session.client.revision() != Revision::V2025_11_25 || tasks(session).await?,
    }))
}

async fn structured(session: &Session) -> Result<Value, Error> {
    let result = session.client.call_tool("get-structured-content", json!({ "location": "New York" })).await?;
    Ok(json!({ "weather": result.structured_content }))
}

async fn errors(session: &Session) -> Result<Value, Error> {
    Ok(json!({
        "bad_arguments": is_refused(session.call("get-sum", json!({ "a": "two" })).await)?,
        "unknown": is_refused(session.call("no_such_tool", json!({})).await)?,
        "not_found": is_refused(lists::read(session, "demo://nowhere").await)?,
    }))
}

async fn concurrent(session: &Session) -> Result<Value, Error> {
    let one = |n| session.client.call_tool("echo", json!({ "message": format!("{n}") })).start();
    let calls: Vec<_> = (0..calls::AT_ONCE).map(one).collect();
    let mut answers = 0;
    for (n, call) in calls.into_iter().enumerate() {
        let answer = call.await?;
        let echoed = answer.content.first().and_then(|content| content.as_text()) == Some(&format!("Echo: {n}"));
        answers += i64::from(echoed);
    }
    Ok(json!({ "answers": answers }))
}

async fn progress(session: &Session) -> Result<Value, Error> {
    let (_, steps) = calls::steps(session, LONG, json!({ "duration": 0.2, "steps": 4 })).await?;
    Ok(json!({ "steps": steps }))
}

async fn resources(session: &Session) -> Result<Value, Error> {
    let resources = session.client.resources().all().await?;
    let templates = session.client.resource_templates().all().await?;
    let text = lists::read(session, RESOURCE).await?;
    Ok(json!({
        "has_documents": resources.iter().any(|resource| resource.uri.ends_with("architecture.md")),
        "templates": templates.iter().map(|template| &template.uri_template).collect::<Vec<_>>(),
        "read": text.as_str().is_some_and(|text| text.starts_with("Resource 7:")),
    }))
}

/// The server notifies of a change as soon as the tool starts, and then at its own pace.
async fn subscribe(session: &Session) -> Result<Value, Error> {
    lists::subscribe_to(session, RESOURCE, "toggle-subscriber-updates").await
}

async fn prompts(session: &Session) -> Result<Value, Error> {
    Ok(json!({
        "text": lists::filled(session, "args-prompt", [("city", "Berlin"), ("state", "BE")]).await?,
        "refused": is_refused(lists::filled(session, "args-prompt", []).await)?,
    }))
}

/// In 2025-11-25 it has a tool that runs only as a task, and may ask for input meanwhile.
async fn tasks(session: &Session) -> Result<bool, Error> {
    session.client.list_tools().await?;
    let research =
        |ambiguous| session.call("simulate-research-query", json!({ "topic": "law", "ambiguous": ambiguous }));
    let (plain, ambiguous) = tokio::join!(research(false), research(true));
    let says = |answer: Value, words: &str| answer[0].as_str().is_some_and(|text| text.contains(words));
    Ok(says(plain?, "# Research Report: law\n") && says(ambiguous?, "After receiving clarification"))
}

async fn complete(session: &Session) -> Result<Value, Error> {
    let of = Reference::prompt("completable-prompt");
    Ok(json!({ "department": session.client.complete(of, "department", "S").await?.completion.values }))
}

/// Its form asks for much, and has defaults for most of it.
async fn elicit(session: &Session) -> Result<Value, Error> {
    let words = session.client.call_tool("trigger-elicitation-request", json!({})).await?;
    let words: String = words.content.iter().filter_map(|content| content.as_text()).collect();
    Ok(json!({ "accepted": words.contains("Ada"), "default": words.contains("It was a dark and stormy night.") }))
}

async fn sample(session: &Session) -> Result<Value, Error> {
    let answer =
        session.call("trigger-sampling-request", json!({ "prompt": "What is the capital of France?" })).await?;
    Ok(json!({ "answered": answer.to_string().contains("Paris") }))
}

async fn roots(session: &Session) -> Result<Value, Error> {
    let answer = session.call("get-roots-list", json!({})).await?;
    Ok(json!({ "root": answer.to_string().contains(ROOT) }))
}
