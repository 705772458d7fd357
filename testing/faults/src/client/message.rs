//! One line that the server wrote, read without any type of the library.
//!
//! Ids are stored as their text on the wire: `7` and `"7"` differ, and 2^64 is not a float.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use serde_json::value::RawValue;

/// An id as JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(String);

impl Id {
    pub(crate) fn number(number: u64) -> Self {
        Self(number.to_string())
    }

    pub(crate) fn string(text: &str) -> Self {
        Self(Value::from(text).to_string())
    }

    /// Any JSON text. Numbers stay as they are written; a string may be written with other escapes than ours.
    pub(crate) fn raw(text: impl Into<String>) -> Self {
        let text = text.into();
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::String(string)) => Self(Value::String(string).to_string()),
            _ => Self(text),
        }
    }

    pub(crate) fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The `id` member of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    Absent,
    Null,
    Of(Id),
}

/// An error that the server answered.
#[derive(Clone, Debug)]
pub(crate) struct WireError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Result(Value),
    Error(WireError),
    Request {
        method: String,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An array: what a batch is answered with.
    Batch(Vec<Message>),
    /// Not JSON-RPC, and why.
    Garbage(String),
}

/// A line on standard output.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: Identity,
    pub(crate) body: Body,
    /// The token and the value, when this is a progress notification.
    pub(crate) progress: Option<(Id, f64)>,
    /// How the line began, for reports.
    pub(crate) opening: String,
}

/// How much of a line a report shows.
const OPENING: usize = 180;

impl Message {
    pub(crate) fn parse(line: &[u8]) -> Self {
        let opening = String::from_utf8_lossy(&line[..line.len().min(OPENING)]).into_owned();
        let (id, body) = parse_text(line).unwrap_or_else(|why| (Identity::Absent, Body::Garbage(why)));
        Self { id, progress: progress(&body), body, opening }
    }

    /// The id that this answers, when it is a result or an error under an id.
    pub(crate) fn answers(&self) -> Option<&Id> {
        match (&self.id, &self.body) {
            (Identity::Of(id), Body::Result(_) | Body::Error(_)) => Some(id),
            _ => None,
        }
    }

    /// An error that belongs to no id.
    pub(crate) fn is_unnamed_error(&self) -> bool {
        !matches!(self.id, Identity::Of(_)) && matches!(self.body, Body::Error(_))
    }
}

fn progress(body: &Body) -> Option<(Id, f64)> {
    let Body::Notification { method, params } = body else {
        return None;
    };
    if method != "notifications/progress" {
        return None;
    }
    let token = params.get("progressToken")?;
    Some((Id::raw(token.to_string()), params.get("progress")?.as_f64()?))
}

fn parse_text(line: &[u8]) -> Result<(Identity, Body), String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    if text.starts_with('[') {
        let entries: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let entries = entries.iter().map(|entry| Message::parse(entry.get().as_bytes())).collect();
        return Ok((Identity::Absent, Body::Batch(entries)));
    }
    let members: HashMap<String, Box<RawValue>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if members.get("jsonrpc").is_none_or(|version| version.get() != "\"2.0\"") {
        return Err("no \"jsonrpc\": \"2.0\"".to_owned());
    }
    let id = match members.get("id").map(|id| id.get()) {
        None => Identity::Absent,
        Some("null") => Identity::Null,
        Some(id) => Identity::Of(Id::raw(id)),
    };
    let body = body(&members, &id)?;
    Ok((id, body))
}

fn body(members: &HashMap<String, Box<RawValue>>, id: &Identity) -> Result<Body, String> {
    let value = |name: &str| -> Result<Option<Value>, String> {
        members
            .get(name)
            .map(|raw| serde_json::from_str(raw.get()).map_err(|error| format!("{name}: {error}")))
            .transpose()
    };
    match (value("method")?, value("result")?, value("error")?) {
        (Some(Value::String(method)), None, None) => match id {
            Identity::Absent => Ok(Body::Notification { method, params: value("params")?.unwrap_or(Value::Null) }),
            Identity::Of(_) => Ok(Body::Request { method }),
            Identity::Null => Err("a request with the id null".to_owned()),
        },
        (None, Some(result), None) => match id {
            Identity::Of(_) if result.is_object() => Ok(Body::Result(result)),
            _ => Err("a result without an id, or that is no object".to_owned()),
        },
        (None, None, Some(error)) => wire_error(&error).map(Body::Error),
        _ => Err("not exactly one of method, result and error".to_owned()),
    }
}

fn wire_error(error: &Value) -> Result<WireError, String> {
    let code = error.get("code").and_then(Value::as_i64).ok_or("an error without a code")?;
    let message = error.get("message").and_then(Value::as_str).ok_or("an error without a message")?;
    Ok(WireError { code, message: message.to_owned(), data: error.get("data").cloned().unwrap_or(Value::Null) })
}
