//! What a response has to look like, by era.

use serde_json::Value;

use crate::client::message::{Body, Id, Identity, Message, WireError};
use crate::era::Era;
use crate::failure::{Verdict, ensure, fail};

/// Codes of JSON-RPC.
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// Any result.
pub(crate) fn result(message: &Message) -> Verdict<&Value> {
    match &message.body {
        Body::Result(result) => Ok(result),
        _ => fail!("expected a result: {}", message.opening),
    }
}

/// The text of a tool that did its work.
pub(crate) fn text(message: &Message, era: Era) -> Verdict<String> {
    let result = tool_result(message, era)?;
    ensure!(!is_failure(result), "the tool failed: {}", message.opening);
    text_of(result, message)
}

/// The text of a tool that failed.
pub(crate) fn tool_failure(message: &Message, era: Era) -> Verdict<String> {
    let result = tool_result(message, era)?;
    ensure!(is_failure(result), "expected isError: {}", message.opening);
    text_of(result, message)
}

fn tool_result(message: &Message, era: Era) -> Verdict<&Value> {
    let result = result(message)?;
    let kind = result.get("resultType").and_then(Value::as_str);
    let expected = era.is_stateless().then_some("complete");
    ensure!(kind == expected, "resultType is {kind:?}, not {expected:?} as in {era}: {}", message.opening);
    Ok(result)
}

fn is_failure(result: &Value) -> bool {
    result.get("isError").and_then(Value::as_bool).unwrap_or(false)
}

fn text_of(result: &Value, message: &Message) -> Verdict<String> {
    let text = result.get("content").and_then(|content| content.get(0)).and_then(|part| part.get("text"));
    match text.and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => fail!("no text content: {}", message.opening),
    }
}

/// An error with one of these codes.
pub(crate) fn error<'a>(message: &'a Message, codes: &[i64]) -> Verdict<&'a WireError> {
    match &message.body {
        Body::Error(error) if codes.contains(&error.code) => Ok(error),
        _ => fail!("expected an error with a code of {codes:?}: {}", message.opening),
    }
}

/// An error for a condition of the server's own (a limit, a deadline, its end): -32603, or outside the codes that JSON-RPC
/// keeps for itself.
pub(crate) fn own_condition(message: &Message) -> Verdict<&WireError> {
    match &message.body {
        Body::Error(error) if is_own_code(error.code) => {
            ensure!(!error.message.is_empty(), "an error without words: {}", message.opening);
            Ok(error)
        }
        _ => fail!("expected -32603 or a code outside -32768 to -32000: {}", message.opening),
    }
}

pub(crate) fn is_own_code(code: i64) -> bool {
    code == INTERNAL_ERROR || !(-32768..=-32000).contains(&code)
}

/// An ending of a tool that could not do its work: a failed result, or an error.
pub(crate) fn any_failure(message: &Message, era: Era) -> Verdict<String> {
    match &message.body {
        Body::Error(error) => Ok(error.message.clone()),
        _ => tool_failure(message, era),
    }
}

/// An error that belongs to no id says so as its revision does.
pub(crate) fn unnamed(message: &Message, null: bool) -> Verdict {
    let expected = if null { Identity::Null } else { Identity::Absent };
    ensure!(message.id == expected, "id is {:?}, expected {expected:?}: {}", message.id, message.opening);
    Ok(())
}

/// The error names that id somewhere in its `data`.
pub(crate) fn data_names(error: &WireError, id: &Id) -> Verdict {
    let wanted: Value = serde_json::from_str(id.as_json()).unwrap_or(Value::Null);
    ensure!(contains(&error.data, &wanted), "data does not name {id}: {}", error.data);
    Ok(())
}

fn contains(value: &Value, wanted: &Value) -> bool {
    value == wanted
        || match value {
            Value::Array(items) => items.iter().any(|item| contains(item, wanted)),
            Value::Object(members) => members.values().any(|member| contains(member, wanted)),
            _ => false,
        }
}
