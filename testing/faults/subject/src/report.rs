//! The reports of the client under test: a JSON object a line. Each has one member that names what it is about.

use std::io::Write as _;

use serde_json::{Value, json};
use steadfast::{CallToolResult, Error, Revision};

pub(crate) fn connected(connection: &str, revision: Revision) {
    line(&json!({ "connected": connection, "revision": revision.as_str() }));
}

pub(crate) fn not_connected(connection: &str, error: &Error) {
    line(&with(error, json!({ "not_connected": connection })));
}

/// The end of a call: `Done`, or the outcome of its error.
pub(crate) fn ended(call: &str, ended: Result<&CallToolResult, &Error>) {
    line(&match ended {
        Ok(result) => {
            let text = result.content.first().and_then(|content| content.as_text()).unwrap_or_default();
            json!({ "call": call, "ends": "Done", "text": text })
        }
        Err(error) => with(error, json!({ "call": call })),
    });
}

fn with(error: &Error, mut about: Value) -> Value {
    about["ends"] = Value::from(format!("{:?}", error.outcome()));
    about["kind"] = Value::from(format!("{:?}", error.kind()));
    about["words"] = Value::from(format!("{error:?}"));
    about
}

pub(crate) fn progress(call: &str, progress: f64) {
    line(&json!({ "progress": call, "value": progress }));
}

pub(crate) fn dropped(call: &str) {
    line(&json!({ "dropped": call }));
}

pub(crate) fn gone(connection: &str) {
    line(&json!({ "gone": connection }));
}

pub(crate) fn closed(connection: &str) {
    line(&json!({ "closed": connection }));
}

pub(crate) fn invalid_command(command: &str, error: &serde_json::Error) {
    line(&json!({ "invalid_command": command, "words": error.to_string() }));
}

fn line(value: &Value) {
    let text = format!("{value}\n");
    let mut output = std::io::stdout().lock();
    // If the reader is gone, the line is not needed.
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
