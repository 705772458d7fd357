//! The Inspector's command line: one method an invocation, told in the words of the scripts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::finish;
use crate::room::Room;
use crate::{Result, Run};

const LIMIT: Duration = Duration::from_secs(60);

/// Does a check, and tells what was seen.
pub(crate) fn observe(run: &Run, room: &Room, command: impl Fn() -> Command) -> Result<Value> {
    let ask = |arguments: &[&str]| ask(run, room, command(), arguments);
    let agreed = ask(&["--method", "initialize"])?;
    let call = |tool: &str, arguments: Value| -> Result<Value> {
        let arguments = arguments.to_string();
        let result = ask(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments])?;
        let text = result.pointer("/content/0/text").cloned().unwrap_or_default();
        Ok(json!([text, result.get("isError").and_then(Value::as_bool).unwrap_or(false)]))
    };
    let seen = match run.check.name {
        "list" => tools(&ask(&["--method", "tools/list"])?)?,
        "call" => json!({
            "add": call("add", json!({ "a": 2, "b": 3 }))?,
            "echo": call("echo", json!({ "text": "héllo\n\u{2028} 𝄞" }))?,
        }),
        "large" => {
            let answer = call("blob", json!({ "bytes": 1 << 20 }))?;
            let length = answer.get(0).and_then(Value::as_str).map(str::len);
            json!({ "length": length, "is_error": answer.get(1) })
        }
        other => return Err(format!("its command line cannot do {other}")),
    };
    Ok(json!({ "revision": agreed.get("protocolVersion"), "seen": seen, "notes": [] }))
}

fn tools(result: &Value) -> Result<Value> {
    let tools = result.get("tools").and_then(Value::as_array).ok_or("no tools in the answer")?;
    let names: Vec<&Value> = tools.iter().filter_map(|tool| tool.get("name")).collect();
    let add = tools.iter().find(|tool| tool.get("name").is_some_and(|name| name == "add"));
    let add = add.and_then(|add| add.pointer("/inputSchema/properties")).and_then(Value::as_object);
    let mut properties: Vec<&String> = add.ok_or("add takes nothing")?.keys().collect();
    properties.sort();
    Ok(json!({ "tools": names, "add": properties }))
}

fn ask(run: &Run, room: &Room, mut command: Command, arguments: &[&str]) -> Result<Value> {
    let era = if run.revision < "2026" { "legacy" } else { "modern" };
    command.args(["--cli", "--protocol-era", era, "--format", "json"]).args(arguments).args(room.target());
    let text = finish(&mut command, LIMIT, room.folder())?;
    let mut answer: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{error} in {text:?}"))?;
    answer.get_mut("result").map(Value::take).ok_or_else(|| format!("no result in {text:?}"))
}

/// Where the package keeps the program.
pub(crate) fn launcher(folder: &Path) -> std::path::PathBuf {
    folder.join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
}
