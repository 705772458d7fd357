//! The arguments of a tool call on the command line: `--arg name=value`, files, or a JSON object.

use std::io::Read as _;

use clap::Args;
use serde_json::Value;
use steadfast::{Error, JsonObject};

use super::schema;

/// The command-line options that set the arguments of a tool call.
#[derive(Args)]
pub(crate) struct CliToolArgumentOptions {
    /// Set an argument. A value that is JSON is sent as JSON unless the tool's schema says string; any other value is a string.
    /// An argument that the schema does not list is sent with a warning, unless the schema rejects it. May be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// Set an argument to the text of a file; `-` is standard input. May be repeated
    #[arg(long = "arg-file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// Set all arguments: a JSON object, @PATH to read it from a file, or - for standard input. The JSON object is
    /// sent without any check
    #[arg(long = "arguments-json", value_name = "JSON", conflicts_with_all = ["pairs", "files"])]
    object: Option<String>,
}

/// Parsed arguments. The tool's schema decides whether a value such as `7` is a number or a string.
pub(crate) struct ParsedToolArguments {
    /// The name and value of each tool argument, and the text that the value was parsed from if it came from `--arg`.
    arguments: Vec<(String, Value, Option<String>)>,
    /// Whether the tool arguments were given with `--arg` and `--arg-file`, not as one JSON object.
    by_name: bool,
}

impl CliToolArgumentOptions {
    pub(crate) fn parse(&self) -> Result<ParsedToolArguments, Error> {
        if let Some(text) = &self.object {
            let object = object(text)?;
            let arguments = object.into_iter().map(|(name, value)| (name, value, None)).collect();
            return Ok(ParsedToolArguments { arguments, by_name: false });
        }
        let mut parsed = ParsedToolArguments { arguments: Vec::new(), by_name: true };
        for argument in &self.pairs {
            let (name, text) = pair(argument)?;
            let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            parsed.add(name, value, Some(text.to_owned()))?;
        }
        for file in &self.files {
            let (name, path) = pair(file)?;
            parsed.add(name, contents(path)?.into(), None)?;
        }
        Ok(parsed)
    }
}

impl ParsedToolArguments {
    fn add(&mut self, name: &str, value: Value, text: Option<String>) -> Result<(), Error> {
        let before = self.arguments.iter().map(|(known, ..)| &**known);
        reject_duplicate(name, before, &format!("; to send a list use JSON: {name}='[1, 2]'"))?;
        self.arguments.push((name.to_owned(), value, text));
        Ok(())
    }

    /// The names of the tool arguments given with `--arg` and `--arg-file`. For tool arguments that are given by
    /// name, the tool's schema is needed to check the names, and to decide between strings and other values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().filter(|_| self.by_name).map(|(name, ..)| name.as_str())
    }

    /// The arguments. An argument value that was parsed as JSON becomes a string if the tool's schema allows a string, but not
    /// the type of the value.
    pub(crate) fn resolve(self, input_schema: Option<&JsonObject>) -> JsonObject {
        let parameters = input_schema.map(schema::parameters).unwrap_or_default();
        let types_of = |name: &str| parameters.iter().find(|parameter| parameter.name == name)?.types();
        let resolve = |(name, value, text): (String, Value, Option<String>)| {
            let value = match (text, types_of(&name)) {
                (Some(text), Some(types)) if types.contains(&"string") && !has_type(&value, &types) => text.into(),
                _ => value,
            };
            (name, value)
        };
        self.arguments.into_iter().map(resolve).collect()
    }
}

fn has_type(value: &Value, types: &[&str]) -> bool {
    let found = schema::type_of(value);
    types.contains(&found) || (found == "integer" && types.contains(&"number"))
}

/// Splits each `name=value` of the arguments of a prompt; the values are strings.
pub(crate) fn pairs(arguments: &[String]) -> Result<Vec<(&str, &str)>, Error> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for argument in arguments {
        let (name, value) = pair(argument)?;
        reject_duplicate(name, pairs.iter().map(|(known, _)| *known), "")?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// Returns an error if an argument is given twice on the command line: otherwise one value would be dropped silently. `hint` is
/// appended to the error message.
fn reject_duplicate<'a>(name: &str, mut before: impl Iterator<Item = &'a str>, hint: &str) -> Result<(), Error> {
    if before.any(|known| known == name) {
        return Err(Error::usage(format!("argument `{name}` is given twice{hint}")));
    }
    Ok(())
}

fn pair(argument: &str) -> Result<(&str, &str), Error> {
    match argument.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => Err(Error::usage(format!("`{argument}` is not of the form NAME=VALUE"))),
    }
}

fn object(text: &str) -> Result<JsonObject, Error> {
    // Neither `@` nor `-` can start a JSON object.
    let text = match text.strip_prefix('@') {
        Some(path) => contents(path)?,
        None if text == "-" => contents(text)?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| Error::usage(format!("--arguments-json is not a JSON object: {error}")))
}

fn contents(path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().read_to_string(&mut text).map(|_| text),
        path => std::fs::read_to_string(path),
    };
    read.map_err(|error| Error::usage(format!("failed to read `{path}`: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<ParsedToolArguments, Error> {
        let pairs = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        CliToolArgumentOptions { pairs, files: Vec::new(), object: None }.parse()
    }

    fn resolve(argument: &str, schema: &Value) -> Value {
        let schema = json!({ "properties": { "a": schema } });
        parse(&[argument]).unwrap().resolve(schema.as_object()).remove("a").unwrap()
    }

    #[test]
    fn arguments_are_json_where_they_can_be() {
        let alone = |argument: &str| parse(&[argument]).unwrap().resolve(None).remove("a").unwrap();
        assert_eq!(alone("a=7"), 7);
        assert_eq!(alone("a=true"), true);
        assert_eq!(alone("a=[1]"), json!([1]));
        assert_eq!(alone("a={\"b\":null}"), json!({ "b": null }));
        assert_eq!(alone("a=seven"), "seven");
        assert_eq!(alone("a=b=c"), "b=c");
        assert_eq!(alone("a="), "");
    }

    #[test]
    fn a_json_value_is_a_string_where_the_schema_says_string() {
        assert_eq!(resolve("a=7", &json!({ "type": "string" })), "7");
        assert_eq!(resolve("a=1.50", &json!({ "type": ["string", "null"] })), "1.50");
        assert_eq!(resolve("a=[1]", &json!({ "type": "string" })), "[1]");
        assert_eq!(resolve("a=true", &json!({ "enum": ["true", "false"] })), "true");
        assert_eq!(resolve("a=7", &json!({ "type": "number" })), 7);
        assert_eq!(resolve("a=7", &json!({ "type": ["string", "integer"] })), 7);
        assert_eq!(resolve("a=null", &json!({ "type": ["string", "null"] })), Value::Null);
        assert_eq!(resolve("a=7", &json!({})), 7);
        // Neither matches: the server reports the error.
        assert_eq!(resolve("a=7", &json!({ "type": "boolean" })), 7);
    }

    #[test]
    fn only_arguments_given_by_name_are_checked() {
        assert_eq!(parse(&["a=text", "b=7"]).unwrap().names().collect::<Vec<_>>(), ["a", "b"]);
        let object =
            CliToolArgumentOptions { pairs: Vec::new(), files: Vec::new(), object: Some(r#"{"a":"7"}"#.to_owned()) };
        assert_eq!(object.parse().unwrap().names().count(), 0);
    }

    #[test]
    fn malformed_and_duplicate_arguments_are_rejected() {
        for malformed in [&["a"][..], &["=7"], &["a=1", "a=2"]] {
            assert!(parse(malformed).is_err(), "{malformed:?}");
        }
    }
}
