//! Input that a tool requests: up to 2025-11-25 by a request of the server, since then in place of a result.

use serde_json::{Value, json};
use steadfast::Error;

use super::session::Session;

pub(crate) async fn elicit(session: &Session) -> Result<Value, Error> {
    let accepted = session.call("greet", json!({})).await?;
    // The tool answers with what was filled in.
    let content = accepted.get(0).and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
    session.decline();
    Ok(json!({ "accepted": content.unwrap_or(accepted), "declined": session.call("greet", json!({})).await? }))
}

pub(crate) async fn sample(session: &Session) -> Result<Value, Error> {
    Ok(json!({ "answer": session.call("consult", json!({})).await? }))
}

pub(crate) async fn roots(session: &Session) -> Result<Value, Error> {
    Ok(json!({ "answer": session.call("look", json!({})).await? }))
}
