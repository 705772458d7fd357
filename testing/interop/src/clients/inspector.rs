//! The command line of the Inspector: one method per invocation, reported in the format of the scripts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::check::Check;
use super::fixture::Fixture;
use super::run::ClientRun;
use crate::Result;
use crate::process::{finish, last_lines};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the checks of a run, each with its fixture, and returns what was observed.
pub(crate) fn observe(run: &ClientRun, fixtures: &[Fixture], command: impl Fn(&Path) -> Command) -> Vec<Value> {
    // Each invocation is a connection of its own; all of them agree on the same.
    let mut revision = None;
    let mut one = |(check, fixture): (&&Check, &Fixture)| {
        let cli = Cli { run, fixture, command: &command };
        let agreed = revision.get_or_insert_with(|| cli.agreed()).clone();
        match agreed.and_then(|revision| Ok((revision, cli.see(check)?))) {
            Ok((revision, seen)) => json!({ "check": check.name, "revision": revision, "seen": seen }),
            Err(words) => json!({ "check": check.name, "error": words }),
        }
    };
    run.checks.iter().zip(fixtures).map(&mut one).collect()
}

/// Where the package keeps the program.
pub(crate) const LAUNCHER: &str = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

struct Cli<'a, F> {
    run: &'a ClientRun,
    fixture: &'a Fixture,
    command: &'a F,
}

impl<F: Fn(&Path) -> Command> Cli<'_, F> {
    fn agreed(&self) -> Result<Value> {
        Ok(self.ask(&["--method", "initialize"])?.get("protocolVersion").cloned().unwrap_or_default())
    }

    fn see(&self, check: &Check) -> Result<Value> {
        match check.name {
            "list" => self.tools(),
            "call" => Ok(json!({
                "add": self.call("add", &json!({ "a": 2, "b": 3 }))?,
                "echo": self.call("echo", &json!({ "text": "héllo\n\u{2028} 𝄞" }))?,
            })),
            "large" => {
                let answer = self.call("blob", &json!({ "bytes": 1 << 19 }))?;
                let length = answer.get(0).and_then(Value::as_str).map(str::len);
                Ok(json!({ "length": length, "is_error": answer.get(1) }))
            }
            "resources" => self.resources(),
            "prompts" => self.prompts(),
            other => Err(format!("its command line cannot do {other}")),
        }
    }

    fn tools(&self) -> Result<Value> {
        let result = self.ask(&["--method", "tools/list"])?;
        let tools = items(&result, "tools");
        let add = tools.iter().find(|tool| tool.get("name").is_some_and(|name| name == "add"));
        let add = add.and_then(|add| add.pointer("/inputSchema/properties")).and_then(Value::as_object);
        let mut properties: Vec<&String> = add.ok_or("add takes nothing")?.keys().collect();
        properties.sort();
        Ok(json!({ "tools": members(tools, "name"), "add": properties }))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let arguments = arguments.to_string();
        let result = self.ask(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments])?;
        let text = result.pointer("/content/0/text").cloned().unwrap_or_default();
        Ok(json!([text, result.get("isError").and_then(Value::as_bool).unwrap_or(false)]))
    }

    fn resources(&self) -> Result<Value> {
        let resources = self.ask(&["--method", "resources/list"])?;
        let templates = self.ask(&["--method", "resources/templates/list"])?;
        let mut texts = Map::new();
        for uri in ["steadfast://counter", "steadfast://laws/L8"] {
            let read = self.ask(&["--method", "resources/read", "--uri", uri])?;
            texts.insert(uri.to_owned(), read.pointer("/contents/0/text").cloned().unwrap_or_default());
        }
        Ok(json!({
            "resources": members(items(&resources, "resources"), "uri"),
            "templates": members(items(&templates, "resourceTemplates"), "uriTemplate"),
            "texts": texts,
            "not_found": self.is_refused(&["--method", "resources/read", "--uri", "steadfast://laws/L99"])?,
        }))
    }

    fn prompts(&self) -> Result<Value> {
        let listed = self.ask(&["--method", "prompts/list"])?;
        let prompts: Map<String, Value> = items(&listed, "prompts")
            .iter()
            .filter_map(|prompt| {
                let argument = |argument: &Value| json!([argument.get("name"), argument.get("required")]);
                let arguments: Vec<Value> = items(prompt, "arguments").iter().map(argument).collect();
                Some((prompt.get("name")?.as_str()?.to_owned(), arguments.into()))
            })
            .collect();
        let filled = ["--prompt-args", "law=L8", "audience=a child"];
        let prompt = self.ask(&[&["--method", "prompts/get", "--prompt-name", "explain_law"], &filled[..]].concat())?;
        Ok(json!({
            "prompts": prompts,
            "text": prompt.pointer("/messages/0/content/text"),
            "refused": self.is_refused(&["--method", "prompts/get", "--prompt-name", "no_such_prompt"])?,
        }))
    }

    fn ask(&self, arguments: &[&str]) -> Result<Value> {
        let text = finish(&mut self.asking(arguments), LIMIT, self.fixture.folder())?;
        let mut answer: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{error} in {text:?}"))?;
        answer.get_mut("result").map(Value::take).ok_or_else(|| format!("no result in {text:?}"))
    }

    /// Whether the server refused a request: the command fails then, and says why on its standard error. It has no codes.
    fn is_refused(&self, arguments: &[&str]) -> Result<bool> {
        if finish(&mut self.asking(arguments), LIMIT, self.fixture.folder()).is_ok() {
            return Ok(false);
        }
        let errors = std::fs::read_to_string(self.fixture.folder().join("errors")).unwrap_or_default();
        let mut report = errors.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        report
            .find(|report| report.pointer("/error/message").is_some())
            .map(|_| true)
            .ok_or_else(|| format!("no error in {}", last_lines(&errors)))
    }

    fn asking(&self, arguments: &[&str]) -> Command {
        let era = if self.run.revision < "2026" { "legacy" } else { "modern" };
        let mut command = (self.command)(self.fixture.folder());
        // The target first: some options take everything that comes after them.
        command.args(["--cli", self.fixture.target(), "--protocol-era", era, "--format", "json"]).args(arguments);
        command
    }
}

fn items<'a>(result: &'a Value, name: &str) -> &'a [Value] {
    result.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn members<'a>(items: &'a [Value], name: &str) -> Vec<&'a Value> {
    items.iter().filter_map(|item| item.get(name)).collect()
}
