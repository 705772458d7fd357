//! Describes the arguments of a tool from its JSON Schema, for help texts. The values of the arguments are not validated here:
//! the server validates them.

use serde_json::Value;
use steadfast::JsonObject;

/// Limit of nested references and alternatives in a JSON Schema.
const MAX_DEPTH: usize = 8;
/// Limit of the length of the default or the allowed values in the description of an argument.
const MAX_VALUE_LENGTH: usize = 60;

/// An argument of a tool, with its JSON Schema.
pub(crate) struct ToolArgumentSchema<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    root: &'a JsonObject,
    schema: &'a Value,
}

/// The arguments that a tool's schema lists, in the order of the schema.
pub(crate) fn parameters(root: &JsonObject) -> Vec<ToolArgumentSchema<'_>> {
    let required = |name: &str| {
        let names = root.get("required").and_then(Value::as_array);
        names.into_iter().flatten().any(|entry| entry.as_str() == Some(name))
    };
    let properties = root.get("properties").and_then(Value::as_object);
    let parameters = properties.into_iter().flatten();
    parameters.map(|(name, schema)| ToolArgumentSchema { name, required: required(name), root, schema }).collect()
}

/// How a tool's schema treats arguments that it does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdditionalArguments {
    /// The schema allows additional arguments, or may list them in a part that is not examined here.
    Allowed,
    /// The schema does not say whether it allows arguments that it does not list. Most servers ignore arguments that
    /// the schema does not list.
    Unspecified,
    Rejected,
}

/// How the tool's schema treats arguments that it does not list.
pub(crate) fn additional_arguments(root: &JsonObject) -> AdditionalArguments {
    // These may list arguments, and are not examined.
    const ELSEWHERE: [&str; 8] =
        ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "unevaluatedProperties"];
    let lists = root.get("properties").is_some_and(Value::is_object);
    match root.get("additionalProperties") {
        _ if root.contains_key("patternProperties") => AdditionalArguments::Allowed,
        Some(Value::Bool(false)) => AdditionalArguments::Rejected,
        None if lists && !ELSEWHERE.iter().any(|keyword| root.contains_key(*keyword)) => {
            AdditionalArguments::Unspecified
        }
        _ => AdditionalArguments::Allowed,
    }
}

impl ToolArgumentSchema<'_> {
    /// The type of the argument, whether it is required, and its description. The returned text contains unsanitized text of
    /// the server.
    pub(crate) fn describe(&self) -> String {
        let text = describe_type(self.root, self.schema, MAX_DEPTH);
        let text = match self.keyword("default").filter(|default| !default.is_null()).map(Value::to_string) {
            _ if self.required => format!("{text}, required"),
            Some(default) if default.len() <= MAX_VALUE_LENGTH => format!("{text}, default {default}"),
            _ => format!("{text}, optional"),
        };
        match self.keyword("description").and_then(Value::as_str) {
            Some(description) => format!("{text}: {description}"),
            None => text,
        }
    }

    /// The JSON Schema types that the values of the argument may have; `None` if any type is allowed.
    pub(crate) fn types(&self) -> Option<Vec<&'static str>> {
        let mut found = Vec::new();
        types(self.root, self.schema, MAX_DEPTH, &mut found).then_some(found)
    }

    /// The value of a JSON Schema keyword, next to a reference (`$ref`) or in the schema that the reference refers to.
    fn keyword(&self, keyword: &str) -> Option<&Value> {
        let schema = self.schema.as_object()?;
        schema.get(keyword).or_else(|| resolved(self.root, self.schema)?.get(keyword))
    }
}

/// The JSON Schema type of a value.
pub(crate) fn type_of(value: &Value) -> &'static str {
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

/// Collects the types that a JSON Schema allows, through references. Returns false if the schema allows any value.
fn types(root: &JsonObject, schema: &Value, depth: usize, found: &mut Vec<&'static str>) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    if let Some(target) = resolved(root, schema) {
        return types(root, target, deeper, found);
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

/// The target of a reference (`$ref`) within the JSON Schema.
fn resolved<'a>(root: &'a JsonObject, schema: &Value) -> Option<&'a Value> {
    let path = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&steps.next()?)?;
    steps.try_fold(first, |at, step| at.get(&step))
}

/// The alternatives of `anyOf` or `oneOf` in a JSON Schema, or the entry of an `allOf` with one entry, which some generators
/// write for a reference.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    let several = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    several.or_else(|| schema.get("allOf")?.as_array().filter(|all| all.len() == 1))
}

fn describe_type(root: &JsonObject, schema: &Value, depth: usize) -> String {
    let anything = || "anything".to_owned();
    let Some(deeper) = depth.checked_sub(1) else { return anything() };
    if let Some(target) = resolved(root, schema) {
        return describe_type(root, target, deeper);
    }
    if let Some(values) = one_of(schema) {
        return values;
    }
    if let Some(options) = alternatives(schema) {
        return either(options.iter().map(|option| describe_type(root, option, deeper)).collect());
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

/// The values that a JSON Schema allows, as a text that is shortened if it is too long. In a JSON Schema, values with titles
/// are written as alternatives of constants.
fn one_of(schema: &Value) -> Option<String> {
    let listed = schema.get("enum").and_then(Value::as_array).map(|values| values.iter().collect::<Vec<_>>());
    let constants = || alternatives(schema)?.iter().map(|option| option.get("const")).collect::<Option<Vec<_>>>();
    let values = listed.or_else(|| schema.get("const").map(|value| vec![value])).or_else(constants)?;
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<String> = values.into_iter().filter(|value| !value.is_null()).map(shown).collect();
    let joined = values.join(" | ");
    match (values.len(), joined.len() <= MAX_VALUE_LENGTH) {
        (0, _) => None,
        (_, true) => Some(joined),
        (count, false) => {
            let first: String = joined.chars().take(MAX_VALUE_LENGTH).collect();
            Some(format!("{first}... ({count} values in all, see --json)"))
        }
    }
}

/// Joins the alternative types of a tool argument with "or", without duplicates. The alternative `null` is omitted if
/// there are others: it means that the argument is optional.
fn either(mut options: Vec<String>) -> String {
    if options.iter().any(|option| option != "null") {
        options.retain(|option| option != "null");
    }
    let mut distinct: Vec<String> = Vec::new();
    for option in options {
        if !distinct.contains(&option) {
            distinct.push(option);
        }
    }
    distinct.join(" or ")
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
            Some(items) if items.is_object() => format!("list of {}", describe_type(root, items, depth)),
            _ => "list".to_owned(),
        },
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(members) if !members.is_empty() => {
                let names: Vec<&str> = members.keys().map(String::as_str).collect();
                let names = names.join(", ");
                if names.len() <= MAX_VALUE_LENGTH { format!("object ({names})") } else { name.to_owned() }
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

    fn describe(schema: Value) -> String {
        let root = json!({ "properties": { "x": schema }, "$defs": { "Colour": { "enum": ["red", "green"] } } });
        let root = root.as_object().unwrap();
        parameters(root).first().unwrap().describe()
    }

    #[test]
    fn arguments_are_described_with_type_default_and_description() {
        assert_eq!(describe(json!({ "type": "string", "description": "Who" })), "string, optional: Who");
        assert_eq!(describe(json!({ "type": "integer", "minimum": 0, "default": 10 })), "integer from 0, default 10");
        assert_eq!(describe(json!({ "type": ["boolean", "null"] })), "boolean, optional");
        assert_eq!(describe(json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] })), "number, optional");
        assert_eq!(describe(json!({ "type": "array", "items": { "type": "string" } })), "list of string, optional");
        assert_eq!(describe(json!({ "$ref": "#/$defs/Colour", "default": "red" })), "red | green, default \"red\"");
        assert_eq!(describe(json!({ "type": "string", "format": "date" })), "string (date), optional");
        assert_eq!(describe(json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] })), "a | b, optional");
        assert_eq!(describe(json!({ "properties": { "a": {}, "b": {} } })), "object (a, b), optional");
        assert_eq!(describe(json!(true)), "anything, optional");
    }

    #[test]
    fn a_required_argument_is_marked() {
        let root = json!({ "properties": { "a": { "type": "number", "default": 1 } }, "required": ["a"] });
        assert_eq!(parameters(root.as_object().unwrap()).first().unwrap().describe(), "number, required");
    }

    #[test]
    fn a_schema_allows_rejects_or_does_not_specify_additional_arguments() {
        let of = |root: Value| additional_arguments(root.as_object().unwrap());
        assert_eq!(of(json!({ "properties": {} })), AdditionalArguments::Unspecified);
        assert_eq!(of(json!({ "properties": {}, "additionalProperties": false })), AdditionalArguments::Rejected);
        assert_eq!(
            of(json!({ "properties": {}, "allOf": [], "additionalProperties": false })),
            AdditionalArguments::Rejected
        );
        for taken in [
            json!({ "type": "object" }),
            json!({ "properties": {}, "additionalProperties": true }),
            json!({ "properties": {}, "additionalProperties": { "type": "string" } }),
            json!({ "properties": {}, "patternProperties": { "^x": {} }, "additionalProperties": false }),
            json!({ "properties": {}, "anyOf": [{ "properties": { "a": {} } }] }),
        ] {
            assert_eq!(of(taken.clone()), AdditionalArguments::Allowed, "{taken}");
        }
    }

    #[test]
    fn a_recursive_reference_terminates() {
        let root = json!({ "properties": { "x": { "$ref": "#/properties/x" } } });
        let parameters = parameters(root.as_object().unwrap());
        assert_eq!(parameters.first().unwrap().describe(), "anything, optional");
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
