//! JSON Schemas derived from Rust types, in a form that strict clients accept.
//!
//! The derived schemas are of draft 2020-12, simplified: subschemas are inlined (a `$ref` remains only if a type
//! contains itself), an optional argument is not `required` and never `type: [T, "null"]`, formats that only Rust has
//! (`uint8`) are omitted because the bounds say the same, and an enum of names is an `enum` even if its names have
//! descriptions. The schema of arguments is always an object.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steadfast_model::JsonObject;

use super::parameters;

/// The formats that JSON Schema defines. Validators may reject a schema with a format that JSON Schema does not
/// define.
const STANDARD_FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The schema of arguments that are decoded into one `T`.
pub(crate) fn of_input<T: JsonSchema>() -> JsonObject {
    let mut schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>();
    SimplifySchema { nulls_mean_absent: true }.transform(&mut schema);
    let mut object = into_object(schema);
    let kind = object.shift_remove("type").unwrap_or_else(|| "object".into());
    object.shift_insert(0, "type".to_owned(), kind);
    object
}

/// The schema of a structured result.
pub(crate) fn of_output<T: JsonSchema>() -> JsonObject {
    let mut schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    SimplifySchema { nulls_mean_absent: false }.transform(&mut schema);
    into_object(schema)
}

/// The schema of a tool without arguments, as the specification recommends it.
pub(crate) fn of_nothing() -> JsonObject {
    let mut object = JsonObject::new();
    object.insert("type".to_owned(), "object".into());
    object.insert("properties".to_owned(), json!({}));
    object.insert("additionalProperties".to_owned(), false.into());
    object
}

/// Builds the schema of arguments that are declared one by one, as by `#[tool]`.
pub struct ArgumentSchemaBuilder {
    generator: SchemaGenerator,
    members: JsonObject,
    required: Vec<Value>,
}

impl Default for ArgumentSchemaBuilder {
    fn default() -> Self {
        let generator = SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true)
            .for_deserialize()
            .into_generator();
        Self { generator, members: JsonObject::new(), required: Vec::new() }
    }
}

impl ArgumentSchemaBuilder {
    /// Adds an argument: required, unless its type can be absent, like `Option`.
    pub fn argument<T: DeserializeOwned + JsonSchema>(mut self, name: &str, description: &str) -> Self {
        if !parameters::may_be_absent::<T>() {
            self.required.push(name.into());
        }
        self.add::<T>(name, description, None)
    }

    /// Adds an argument with a default value; the schema has the value if it can be encoded as JSON.
    pub fn argument_or<T: JsonSchema>(self, name: &str, description: &str, default: Option<Value>) -> Self {
        self.add::<T>(name, description, default)
    }

    fn add<T: JsonSchema>(mut self, name: &str, description: &str, default: Option<Value>) -> Self {
        let mut schema = self.generator.subschema_for::<T>();
        let members = schema.ensure_object();
        strip_null(members);
        if !description.is_empty() {
            members.insert("description".to_owned(), description.into());
        }
        if let Some(default) = default {
            members.insert("default".to_owned(), default);
        }
        self.members.insert(name.to_owned(), schema.to_value());
        self
    }

    /// Builds the schema.
    pub fn finish(mut self) -> JsonObject {
        if self.members.is_empty() {
            return of_nothing();
        }
        let definitions = self.generator.take_definitions(true);
        let mut schema = schemars::json_schema!({ "type": "object", "properties": self.members });
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), definitions.into());
        }
        SimplifySchema { nulls_mean_absent: true }.transform(&mut schema);
        into_object(schema)
    }
}

fn into_object(mut schema: Schema) -> JsonObject {
    schema.remove("$schema");
    schema.remove("title");
    std::mem::take(schema.ensure_object())
}

/// Simplifies a JSON Schema and all of its subschemas, for example by removing formats that are not standard.
struct SimplifySchema {
    nulls_mean_absent: bool,
}

impl Transform for SimplifySchema {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(members) = schema.as_object_mut() {
            let standard = |format: &Value| format.as_str().is_some_and(|name| STANDARD_FORMATS.contains(&name));
            if members.get("format").is_some_and(|format| !standard(format)) {
                members.shift_remove("format");
            }
            collapse_names(members);
            if self.nulls_mean_absent {
                strip_null_of_optional_properties(members);
            }
        }
        transform_subschemas(self, schema);
    }
}

fn strip_null_of_optional_properties(members: &mut JsonObject) {
    let required: Vec<String> = members
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    for (name, property) in properties {
        match property {
            Value::Bool(true) => *property = json!({}),
            Value::Object(property) if !required.contains(name) => {
                strip_null(property);
            }
            _ => {}
        }
    }
}

/// Removes `null` from the values that a schema allows.
pub(crate) fn strip_null(members: &mut JsonObject) {
    let mut stripped = false;
    if let Some(Value::Array(types)) = members.get_mut("type") {
        let before = types.len();
        types.retain(|name| name != "null");
        stripped |= types.len() < before;
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        let before = values.len();
        values.retain(|value| !value.is_null());
        stripped |= values.len() < before;
    }
    for choice in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = members.get_mut(choice) else { continue };
        let before = choices.len();
        choices
            .retain(|choice| choice.get("type") != Some(&json!("null")) && choice.get("const") != Some(&Value::Null));
        stripped |= choices.len() < before;
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            members.shift_remove(choice);
            for (key, value) in only {
                members.entry(key).or_insert(value);
            }
        }
    }
    if stripped && members.get("default") == Some(&Value::Null) {
        members.shift_remove("default");
    }
}

/// A `oneOf` of constant names, which schemars generates for an enum whose variants have descriptions, becomes an
/// `enum`; the descriptions become lines of its description.
fn collapse_names(members: &mut JsonObject) {
    let Some(Value::Array(choices)) = members.get("oneOf") else { return };
    let mut names = Vec::new();
    let mut lines = String::new();
    for choice in choices {
        let listed = match (choice.get("const"), choice.get("enum")) {
            (Some(name), None) => vec![name.clone()],
            (None, Some(Value::Array(names))) => names.clone(),
            _ => return,
        };
        if !listed.iter().all(Value::is_string) {
            return;
        }
        if let (Some(description), [Value::String(name)]) = (choice.get("description"), listed.as_slice()) {
            lines = format!("{lines}\n- {name}: {}", description.as_str().unwrap_or_default());
        }
        names.extend(listed);
    }
    members.shift_remove("oneOf");
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), names.into());
    if !lines.is_empty() {
        let before = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{before}{lines}");
        members.insert("description".to_owned(), description.trim_start().into());
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Query {
        /// What to look for
        text: String,
        limit: Option<u8>,
        filter: Option<Filter>,
        #[serde(default)]
        unit: Option<Unit>,
        tags: Vec<Option<String>>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Filter {
        since: Option<i64>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        /// Degrees Celsius
        Celsius,
        /// Celsius from absolute zero
        Kelvin,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
    }

    #[test]
    fn optional_members_are_never_nullable_and_never_required() {
        let schema = Value::Object(of_input::<Query>());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["text", "tags"]));
        assert_eq!(schema["properties"]["limit"], json!({"type": "integer", "minimum": 0, "maximum": 255}));
        assert_eq!(schema["properties"]["filter"]["type"], "object");
        assert_eq!(schema["properties"]["filter"]["properties"]["since"], json!({"type": "integer"}));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }

    #[test]
    fn a_nullable_element_stays_nullable() {
        let schema = Value::Object(of_input::<Query>());
        assert_eq!(schema["properties"]["tags"]["items"]["type"], json!(["string", "null"]));
    }

    #[test]
    fn described_names_are_an_enum() {
        let schema = Value::Object(of_input::<Query>());
        assert_eq!(
            schema["properties"]["unit"],
            json!({
                "type": "string",
                "enum": ["celsius", "kelvin"],
                "description": "- celsius: Degrees Celsius\n- kelvin: Celsius from absolute zero",
            })
        );
    }

    #[test]
    fn output_schemas_keep_null() {
        let schema = Value::Object(of_output::<Filter>());
        assert_eq!(schema["properties"]["since"]["type"], json!(["integer", "null"]));
    }

    #[test]
    fn a_recursive_type_is_a_reference() {
        let schema =
            ArgumentSchemaBuilder::default().argument::<Tree>("tree", "").argument::<Tree>("other", "").finish();
        let schema = Value::Object(schema);
        let reference = schema.to_string();
        assert!(reference.contains("\"$ref\":\"#/$defs/Tree\""), "{reference}");
        assert!(schema["$defs"]["Tree"]["properties"]["children"].is_object());
    }

    #[test]
    fn arguments_have_descriptions_defaults_and_their_order() {
        let schema = ArgumentSchemaBuilder::default()
            .argument::<String>("city", "City name")
            .argument_or::<u8>("days", "", Some(json!(3)))
            .argument::<Option<bool>>("verbose", "")
            .finish();
        assert_eq!(
            serde_json::to_string(&schema).unwrap(),
            r#"{"type":"object","properties":{"city":{"type":"string","description":"City name"},"days":{"type":"integer","minimum":0,"maximum":255,"default":3},"verbose":{"type":"boolean"}},"required":["city"]}"#
        );
    }

    #[test]
    fn any_value_is_an_empty_schema() {
        let schema = ArgumentSchemaBuilder::default().argument::<Value>("any", "").finish();
        assert_eq!(Value::Object(schema)["properties"]["any"], json!({}));
    }

    #[test]
    fn no_arguments_is_a_closed_object() {
        let schema = Value::Object(ArgumentSchemaBuilder::default().finish());
        assert_eq!(schema, json!({"type": "object", "properties": {}, "additionalProperties": false}));
    }
}
