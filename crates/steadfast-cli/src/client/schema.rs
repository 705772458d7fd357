//! What a tool takes, in words: its JSON Schema as far as people need it to fill in arguments. Nothing is checked here; that is
//! the server's part.

use serde_json::Value;
use steadfast::JsonObject;

/// How far references and alternatives are followed.
const DEPTH: usize = 8;
/// How long values may be that are shown among words.
const SHORT: usize = 60;

/// One argument of a tool.
pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    pub(super) required: bool,
    root: &'a JsonObject,
    schema: &'a Value,
}

/// The arguments that a schema speaks of, in its order.
pub(super) fn parameters(root: &JsonObject) -> Vec<Parameter<'_>> {
    let required = |name: &str| {
        let names = root.get("required").and_then(Value::as_array);
        names.into_iter().flatten().any(|entry| entry.as_str() == Some(name))
    };
    let properties = root.get("properties").and_then(Value::as_object);
    let parameters = properties.into_iter().flatten();
    parameters.map(|(name, schema)| Parameter { name, required: required(name), root, schema }).collect()
}

/// What becomes of arguments that a schema does not speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// They are wanted too, or may be.
    Taken,
    /// Nothing is said of them. Most servers do not look at them.
    Unspoken,
    Refused,
}

/// What becomes of arguments that the schema does not speak of.
pub(super) fn others(root: &JsonObject) -> Others {
    // Arguments may be spoken of in these, which are not looked into.
    const ELSEWHERE: [&str; 8] =
        ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "unevaluatedProperties"];
    let lists = root.get("properties").is_some_and(Value::is_object);
    match root.get("additionalProperties") {
        _ if root.contains_key("patternProperties") => Others::Taken,
        Some(Value::Bool(false)) => Others::Refused,
        None if lists && !ELSEWHERE.iter().any(|keyword| root.contains_key(*keyword)) => Others::Unspoken,
        _ => Others::Taken,
    }
}

impl Parameter<'_> {
    /// Its type, whether it has to be given, and what it is for. What a server wrote is in it.
    pub(super) fn in_words(&self) -> String {
        let words = words(self.root, self.schema, DEPTH);
        let words = match self.found("default").filter(|default| !default.is_null()).map(Value::to_string) {
            _ if self.required => format!("{words}, required"),
            Some(default) if default.len() <= SHORT => format!("{words}, default {default}"),
            _ => format!("{words}, optional"),
        };
        match self.found("description").and_then(Value::as_str) {
            Some(description) => format!("{words}: {description}"),
            None => words,
        }
    }

    /// Which types its values may have, as JSON Schema calls them; `None` if it does not say.
    pub(super) fn types(&self) -> Option<Vec<&'static str>> {
        let mut found = Vec::new();
        types(self.root, self.schema, DEPTH, &mut found).then_some(found)
    }

    /// A word about it, beside a reference or behind it.
    fn found(&self, keyword: &str) -> Option<&Value> {
        let schema = self.schema.as_object()?;
        schema.get(keyword).or_else(|| resolved(self.root, self.schema)?.get(keyword))
    }
}

/// What JSON Schema calls the type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

/// False if any value may do. References are followed.
fn types(root: &JsonObject, schema: &Value, depth: usize, found: &mut Vec<&'static str>) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    if let Some(behind) = resolved(root, schema) {
        return types(root, behind, deeper, found);
    }
    if let Some(options) = alternatives(schema) {
        return options.iter().all(|option| types(root, option, deeper, found));
    }
    let values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = values.or_else(|| schema.get("const").map(std::slice::from_ref));
    let named: Vec<&str> = match (schema.get("type"), values) {
        (Some(Value::String(name)), _) => vec![name],
        (Some(Value::Array(names)), _) => names.iter().filter_map(Value::as_str).collect(),
        (_, Some(values)) => values.iter().map(type_of).collect(),
        _ => return false,
    };
    found.extend(TYPES.iter().filter(|known| named.contains(known)));
    true
}

/// What a reference within the schema leads to.
fn resolved<'a>(root: &'a JsonObject, schema: &Value) -> Option<&'a Value> {
    let path = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&steps.next()?)?;
    steps.try_fold(first, |at, step| at.get(&step))
}

/// The schemas of which one has to fit. `allOf` with one entry is how some generators write a reference.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    let several = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    several.or_else(|| schema.get("allOf")?.as_array().filter(|all| all.len() == 1))
}

fn words(root: &JsonObject, schema: &Value, depth: usize) -> String {
    let anything = || "anything".to_owned();
    let Some(deeper) = depth.checked_sub(1) else { return anything() };
    if let Some(behind) = resolved(root, schema) {
        return words(root, behind, deeper);
    }
    if let Some(values) = one_of(schema) {
        return values;
    }
    if let Some(options) = alternatives(schema) {
        return either(options.iter().map(|option| words(root, option, deeper)).collect());
    }
    match schema.get("type") {
        Some(Value::String(name)) => of_type(root, schema, name, deeper),
        Some(Value::Array(names)) => {
            either(names.iter().filter_map(Value::as_str).map(|name| of_type(root, schema, name, deeper)).collect())
        }
        _ if schema.get("properties").is_some() => of_type(root, schema, "object", deeper),
        _ => anything(),
    }
}

/// The values that may be chosen, if there are not too many to be shown. Those with a word for each are alternatives of
/// constants.
fn one_of(schema: &Value) -> Option<String> {
    let listed = schema.get("enum").and_then(Value::as_array).map(|values| values.iter().collect::<Vec<_>>());
    let constants = || alternatives(schema)?.iter().map(|option| option.get("const")).collect::<Option<Vec<_>>>();
    let values = listed.or_else(|| schema.get("const").map(|value| vec![value])).or_else(constants)?;
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<String> = values.into_iter().filter(|value| !value.is_null()).map(shown).collect();
    let joined = values.join(" | ");
    match (values.len(), joined.len() <= SHORT) {
        (0, _) => None,
        (_, true) => Some(joined),
        (count, false) => {
            let first: String = joined.chars().take(SHORT).collect();
            Some(format!("{first}... ({count} in all, see --json)"))
        }
    }
}

/// What may be left out is not spoken of as null.
fn either(mut options: Vec<String>) -> String {
    if options.iter().any(|option| option != "null") {
        options.retain(|option| option != "null");
    }
    let mut told: Vec<String> = Vec::new();
    for option in options {
        if !told.contains(&option) {
            told.push(option);
        }
    }
    told.join(" or ")
}

fn of_type(root: &JsonObject, schema: &Value, name: &str, depth: usize) -> String {
    let limit = |keyword: &str| schema.get(keyword).filter(|limit| limit.is_number());
    match name {
        "integer" | "number" => match (limit("minimum"), limit("maximum")) {
            (Some(least), Some(most)) => format!("{name} from {least} to {most}"),
            (Some(least), None) => format!("{name} from {least}"),
            (None, Some(most)) => format!("{name} up to {most}"),
            (None, None) => name.to_owned(),
        },
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some(format) => format!("string ({format})"),
            None => name.to_owned(),
        },
        "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("list of {}", words(root, items, depth)),
            _ => "list".to_owned(),
        },
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(members) if !members.is_empty() => {
                let names: Vec<&str> = members.keys().map(String::as_str).collect();
                let names = names.join(", ");
                if names.len() <= SHORT { format!("object ({names})") } else { name.to_owned() }
            }
            _ => name.to_owned(),
        },
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(schema: Value) -> String {
        let root = json!({ "properties": { "x": schema }, "$defs": { "Colour": { "enum": ["red", "green"] } } });
        let root = root.as_object().unwrap();
        parameters(root).first().unwrap().in_words()
    }

    #[test]
    fn arguments_are_told_with_their_types_and_what_is_left_out() {
        assert_eq!(said(json!({ "type": "string", "description": "Who" })), "string, optional: Who");
        assert_eq!(said(json!({ "type": "integer", "minimum": 0, "default": 10 })), "integer from 0, default 10");
        assert_eq!(said(json!({ "type": ["boolean", "null"] })), "boolean, optional");
        assert_eq!(said(json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] })), "number, optional");
        assert_eq!(said(json!({ "type": "array", "items": { "type": "string" } })), "list of string, optional");
        assert_eq!(said(json!({ "$ref": "#/$defs/Colour", "default": "red" })), "red | green, default \"red\"");
        assert_eq!(said(json!({ "type": "string", "format": "date" })), "string (date), optional");
        assert_eq!(said(json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] })), "a | b, optional");
        assert_eq!(said(json!({ "properties": { "a": {}, "b": {} } })), "object (a, b), optional");
        assert_eq!(said(json!(true)), "anything, optional");
    }

    #[test]
    fn what_has_to_be_given_says_so() {
        let root = json!({ "properties": { "a": { "type": "number", "default": 1 } }, "required": ["a"] });
        assert_eq!(parameters(root.as_object().unwrap()).first().unwrap().in_words(), "number, required");
    }

    #[test]
    fn a_schema_says_what_becomes_of_other_arguments_or_leaves_it_open() {
        let of = |root: Value| others(root.as_object().unwrap());
        assert_eq!(of(json!({ "properties": {} })), Others::Unspoken);
        assert_eq!(of(json!({ "properties": {}, "additionalProperties": false })), Others::Refused);
        assert_eq!(of(json!({ "properties": {}, "allOf": [], "additionalProperties": false })), Others::Refused);
        for taken in [
            json!({ "type": "object" }),
            json!({ "properties": {}, "additionalProperties": true }),
            json!({ "properties": {}, "additionalProperties": { "type": "string" } }),
            json!({ "properties": {}, "patternProperties": { "^x": {} }, "additionalProperties": false }),
            json!({ "properties": {}, "anyOf": [{ "properties": { "a": {} } }] }),
        ] {
            assert_eq!(of(taken.clone()), Others::Taken, "{taken}");
        }
    }

    #[test]
    fn a_reference_to_itself_comes_to_an_end() {
        let root = json!({ "properties": { "x": { "$ref": "#/properties/x" } } });
        let parameters = parameters(root.as_object().unwrap());
        assert_eq!(parameters.first().unwrap().in_words(), "anything, optional");
        assert_eq!(parameters.first().unwrap().types(), None);
    }

    #[test]
    fn the_types_of_an_argument_are_known_through_references_and_alternatives() {
        let types = |schema: Value| {
            let root = json!({ "properties": { "x": schema }, "$defs": { "T": { "enum": ["red", 7] } } });
            parameters(root.as_object().unwrap()).first().unwrap().types()
        };
        assert_eq!(types(json!({ "type": "string" })), Some(vec!["string"]));
        assert_eq!(types(json!({ "$ref": "#/$defs/T" })), Some(vec!["integer", "string"]));
        assert_eq!(types(json!({ "anyOf": [{ "type": "null" }, { "type": "object" }] })), Some(vec!["null", "object"]));
        assert_eq!(types(json!({})), None);
        assert_eq!(types(json!({ "anyOf": [{ "type": "null" }, {}] })), None);
    }
}
