//! Calls of tools.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use steadfast::client::CallResultFuture;
use steadfast::{Error, LoggingLevel, model::request};
use tokio::sync::oneshot;

use super::session::{Session, is_refused, text_of};

/// How many calls are made at once.
pub(crate) const AT_ONCE: i64 = 32;

/// How often, and in all how long, a trace in a file is looked for.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
const PAUSES: usize = 500;

pub(crate) async fn call(session: &Session) -> Result<Value, Error> {
    Ok(json!({ "add": add(session).await? }))
}

pub(crate) async fn structured(session: &Session) -> Result<Value, Error> {
    let tools = session.client.list_tools().await?;
    let schema = tools.into_iter().find(|tool| tool.name == "measure").and_then(|tool| tool.output_schema);
    let declared = schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let mut declared: Vec<&String> = declared.map(|properties| properties.keys().collect()).unwrap_or_default();
    declared.sort();
    let result = session.client.call_tool("measure", json!({ "text": "one two three 4 \u{1d11e}" })).await?;
    Ok(json!({ "measured": result.structured_content, "declared": declared }))
}

pub(crate) async fn errors(session: &Session) -> Result<Value, Error> {
    Ok(json!({
        "failed": session.call("fail", json!({})).await?,
        "unknown": is_refused(session.call("no_such_tool", json!({})).await)?,
        "afterwards": add(session).await?,
    }))
}

pub(crate) async fn concurrent(session: &Session) -> Result<Value, Error> {
    let one = |n| session.client.call_tool("add", json!({ "a": n, "b": 1 })).start();
    let calls: Vec<CallResultFuture<request::CallTool>> = (0..AT_ONCE).map(one).collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(text_of(&call.await?));
    }
    Ok(json!({ "answers": answers }))
}

pub(crate) async fn progress(session: &Session) -> Result<Value, Error> {
    let (answer, steps) = steps(session, "progress", json!({ "steps": 4 })).await?;
    Ok(json!({ "answer": answer, "steps": steps }))
}

/// Calls a tool and notes its progress.
pub(crate) async fn steps(session: &Session, tool: &str, arguments: Value) -> Result<(Value, Value), Error> {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call = session.client.call_tool(tool, arguments).on_progress(move |step| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(json!([step.progress, step.total]));
    });
    let answer = text_of(&call.await?);
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((answer, steps.into()))
}

/// Hears what is logged of that severity and above, up to the last that there is.
pub(crate) async fn log(session: &Session) -> Result<Value, Error> {
    if !session.client.revision().is_stateless() {
        // Over HTTP nothing else puts it before the call.
        session.client.set_log_level(LoggingLevel::Warning).await?;
    }
    let mut logs = session.client.logs(LoggingLevel::Warning);
    let answer = session.call("log", json!({})).await?;
    let mut levels = Vec::new();
    while let Some(message) = logs.next().await {
        let level = message?.level;
        levels.push(json!(level));
        if level == LoggingLevel::Error {
            break;
        }
    }
    Ok(json!({ "answer": answer, "levels": levels }))
}

pub(crate) async fn cancel(session: &Session) -> Result<Value, Error> {
    drop(running(session, "wait", json!({})).await?);
    let mut stopped = 0;
    for _ in 0..PAUSES {
        stopped = std::fs::read_to_string(&session.cleanup_log).unwrap_or_default().lines().count();
        if stopped > 0 {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(json!({ "stopped": stopped, "afterwards": add(session).await? }))
}

/// A call whose tool has begun: it says so by its progress.
pub(crate) async fn running(
    session: &Session,
    tool: &str,
    arguments: Value,
) -> Result<CallResultFuture<request::CallTool>, Error> {
    let (begun, mut begins) = oneshot::channel();
    let mut begun = Some(begun);
    let mut call = session.client.call_tool(tool, arguments).on_progress(move |_| {
        if let Some(begun) = begun.take() {
            // A call that was dropped needs no report.
            let _ = begun.send(());
        }
    });
    call = call.timeout(None);
    let mut call = call.start();
    tokio::select! {
        ended = &mut call => Err(match ended {
            Ok(result) => Error::internal(format!("the tool did not wait: {}", text_of(&result))),
            Err(error) => error,
        }),
        _ = &mut begins => Ok(call),
    }
}

async fn add(session: &Session) -> Result<Value, Error> {
    session.call("add", json!({ "a": 2, "b": 3 })).await
}
