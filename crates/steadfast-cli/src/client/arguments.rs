//! The arguments of a call, as they are typed: `--arg name=value`, files, or all of them in JSON.

use std::io::Read as _;

use clap::Args;
use serde_json::Value;
use steadfast::{Error, JsonObject};

use super::schema;

/// What a tool is called with.
#[derive(Args)]
pub(crate) struct Arguments {
    /// An argument. JSON is taken as JSON, unless the tool wants text there; anything else is text. One that the tool does
    /// not have is sent with a warning, or not at all if the tool's schema refuses others. May be given more than once
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// An argument whose text is in a file; `-` is standard input. May be given more than once
    #[arg(long = "arg-file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// All arguments: a JSON object, @PATH for one in a file, or - for standard input. They are sent as they are
    #[arg(long = "arguments-json", value_name = "JSON", conflicts_with_all = ["pairs", "files"])]
    whole: Option<String>,
}

/// Arguments that may have to wait for the tool's schema to become what they are.
pub(super) struct Typed {
    /// Each with its text, if it was typed as one.
    arguments: Vec<(String, Value, Option<String>)>,
    /// They were given one by one, and not as an object that is sent as it is.
    named: bool,
}

impl Arguments {
    pub(super) fn read(&self) -> Result<Typed, Error> {
        if let Some(text) = &self.whole {
            let object = object(text)?;
            let arguments = object.into_iter().map(|(name, value)| (name, value, None)).collect();
            return Ok(Typed { arguments, named: false });
        }
        let mut typed = Typed { arguments: Vec::new(), named: true };
        for argument in &self.pairs {
            let (name, text) = pair(argument)?;
            let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            typed.add(name, value, Some(text.to_owned()))?;
        }
        for file in &self.files {
            let (name, path) = pair(file)?;
            typed.add(name, contents(path)?.into(), None)?;
        }
        Ok(typed)
    }
}

impl Typed {
    fn add(&mut self, name: &str, value: Value, text: Option<String>) -> Result<(), Error> {
        let before = self.arguments.iter().map(|(known, ..)| &**known);
        first_of_its_name(name, before, &format!("; a list is JSON: {name}='[1, 2]'"))?;
        self.arguments.push((name.to_owned(), value, text));
        Ok(())
    }

    /// The names that were typed one by one. With any the tool's schema makes a difference: a name may not be one of its,
    /// and a value may be text or something else.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().filter(|_| self.named).map(|(name, ..)| name.as_str())
    }

    /// The arguments. What looks like a number is text where the tool takes text and no numbers.
    pub(super) fn settle(self, input_schema: Option<&JsonObject>) -> JsonObject {
        let parameters = input_schema.map(schema::parameters).unwrap_or_default();
        let wanted = |name: &str| parameters.iter().find(|parameter| parameter.name == name)?.types();
        let settled = |(name, value, text): (String, Value, Option<String>)| {
            let value = match (text, wanted(&name)) {
                (Some(text), Some(types)) if types.contains(&"string") && !fits(&value, &types) => text.into(),
                _ => value,
            };
            (name, value)
        };
        self.arguments.into_iter().map(settled).collect()
    }
}

fn fits(value: &Value, types: &[&str]) -> bool {
    let found = schema::type_of(value);
    types.contains(&found) || (found == "integer" && types.contains(&"number"))
}

/// Each `name=value`, taken apart, where values are text.
pub(super) fn pairs(arguments: &[String]) -> Result<Vec<(&str, &str)>, Error> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for argument in arguments {
        let (name, value) = pair(argument)?;
        first_of_its_name(name, pairs.iter().map(|(known, _)| *known), "")?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// One that is given twice would silently be one of the two. `hint` is what may have been meant.
fn first_of_its_name<'a>(name: &str, mut before: impl Iterator<Item = &'a str>, hint: &str) -> Result<(), Error> {
    if before.any(|known| known == name) {
        return Err(Error::usage(format!("the argument `{name}` is given twice{hint}")));
    }
    Ok(())
}

fn pair(argument: &str) -> Result<(&str, &str), Error> {
    match argument.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => Err(Error::usage(format!("`{argument}` is not name=value"))),
    }
}

fn object(text: &str) -> Result<JsonObject, Error> {
    // Neither could begin a JSON object.
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
    read.map_err(|error| Error::usage(format!("`{path}` cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(arguments: &[&str]) -> Result<Typed, Error> {
        let pairs = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Arguments { pairs, files: Vec::new(), whole: None }.read()
    }

    fn settled(argument: &str, schema: &Value) -> Value {
        let schema = json!({ "properties": { "a": schema } });
        typed(&[argument]).unwrap().settle(schema.as_object()).remove("a").unwrap()
    }

    #[test]
    fn arguments_are_json_where_they_can_be() {
        let alone = |argument: &str| typed(&[argument]).unwrap().settle(None).remove("a").unwrap();
        assert_eq!(alone("a=7"), 7);
        assert_eq!(alone("a=true"), true);
        assert_eq!(alone("a=[1]"), json!([1]));
        assert_eq!(alone("a={\"b\":null}"), json!({ "b": null }));
        assert_eq!(alone("a=seven"), "seven");
        assert_eq!(alone("a=b=c"), "b=c");
        assert_eq!(alone("a="), "");
    }

    #[test]
    fn what_looks_like_a_number_is_text_where_the_tool_takes_text() {
        assert_eq!(settled("a=7", &json!({ "type": "string" })), "7");
        assert_eq!(settled("a=1.50", &json!({ "type": ["string", "null"] })), "1.50");
        assert_eq!(settled("a=[1]", &json!({ "type": "string" })), "[1]");
        assert_eq!(settled("a=true", &json!({ "enum": ["true", "false"] })), "true");
        assert_eq!(settled("a=7", &json!({ "type": "number" })), 7);
        assert_eq!(settled("a=7", &json!({ "type": ["string", "integer"] })), 7);
        assert_eq!(settled("a=null", &json!({ "type": ["string", "null"] })), Value::Null);
        assert_eq!(settled("a=7", &json!({})), 7);
        // It does not fit either way: the server says so.
        assert_eq!(settled("a=7", &json!({ "type": "boolean" })), 7);
    }

    #[test]
    fn an_object_is_sent_as_it_is_and_what_is_named_is_looked_at() {
        assert_eq!(typed(&["a=text", "b=7"]).unwrap().names().collect::<Vec<_>>(), ["a", "b"]);
        let whole = Arguments { pairs: Vec::new(), files: Vec::new(), whole: Some(r#"{"a":"7"}"#.to_owned()) };
        assert_eq!(whole.read().unwrap().names().count(), 0);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for senseless in [&["a"][..], &["=7"], &["a=1", "a=2"]] {
            assert!(typed(senseless).is_err(), "{senseless:?}");
        }
    }
}
