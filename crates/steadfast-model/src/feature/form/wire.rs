//! Decodes and encodes the JSON Schema of a form field.

use super::{
    Deserialize, Deserializer, FormField, FormFieldKind, FormOption, JsonObject, Number, Serialize, SerializeMap,
    Serializer, Value,
};
use serde::de::Error as _;

impl Serialize for FormField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.type_name())?;
        some(&mut map, "title", self.title.as_ref())?;
        some(&mut map, "description", self.description.as_ref())?;
        match &self.kind {
            FormFieldKind::Text { min_length, max_length, format, default } => {
                some(&mut map, "minLength", min_length.as_ref())?;
                some(&mut map, "maxLength", max_length.as_ref())?;
                some(&mut map, "format", format.as_ref())?;
                some(&mut map, "default", default.as_ref())?;
            }
            FormFieldKind::Number { minimum, maximum, default, .. } => {
                some(&mut map, "minimum", minimum.as_ref())?;
                some(&mut map, "maximum", maximum.as_ref())?;
                some(&mut map, "default", default.as_ref())?;
            }
            FormFieldKind::Boolean { default } => some(&mut map, "default", default.as_ref())?,
            FormFieldKind::Choice { options, default } => {
                map.serialize_entry(if titled(options) { "oneOf" } else { "enum" }, &FormOptionsSchema(options))?;
                some(&mut map, "default", default.as_ref())?;
            }
            FormFieldKind::Choices { options, min_items, max_items, default } => {
                some(&mut map, "minItems", min_items.as_ref())?;
                some(&mut map, "maxItems", max_items.as_ref())?;
                map.serialize_entry("items", &MultiSelectItems(options))?;
                some(&mut map, "default", default.as_ref())?;
            }
        }
        map.end()
    }
}

impl FormFieldKind {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Text { .. } | Self::Choice { .. } => "string",
            Self::Number { integer: false, .. } => "number",
            Self::Number { integer: true, .. } => "integer",
            Self::Boolean { .. } => "boolean",
            Self::Choices { .. } => "array",
        }
    }
}

fn some<M: SerializeMap, T: Serialize>(map: &mut M, key: &str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

fn titled(options: &[FormOption]) -> bool {
    options.iter().any(|option| option.title.is_some())
}

/// Encodes the options of a form field: as plain values, or as values with titles if any option has a title.
struct FormOptionsSchema<'a>(&'a [FormOption]);

impl Serialize for FormOptionsSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Titled<'a> {
            r#const: &'a str,
            title: &'a str,
        }
        if titled(self.0) {
            serializer.collect_seq(
                self.0.iter().map(|option| Titled {
                    r#const: &option.value,
                    title: option.title.as_ref().unwrap_or(&option.value),
                }),
            )
        } else {
            serializer.collect_seq(self.0.iter().map(|option| &option.value))
        }
    }
}

struct MultiSelectItems<'a>(&'a [FormOption]);

impl Serialize for MultiSelectItems<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if titled(self.0) {
            map.serialize_entry("anyOf", &FormOptionsSchema(self.0))?;
        } else {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("enum", &FormOptionsSchema(self.0))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for FormField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let schema = JsonObject::deserialize(deserializer)?;
        let kind =
            kind_of(&schema).ok_or_else(|| D::Error::custom("the JSON Schema does not describe a form field"))?;
        Ok(Self { title: text(&schema, "title"), description: text(&schema, "description"), kind })
    }
}

fn kind_of(schema: &JsonObject) -> Option<FormFieldKind> {
    Some(match schema.get("type")?.as_str()? {
        "string" => match single_options(schema) {
            Some(options) => FormFieldKind::Choice { options, default: text(schema, "default") },
            None => FormFieldKind::Text {
                min_length: whole(schema, "minLength"),
                max_length: whole(schema, "maxLength"),
                format: text(schema, "format"),
                default: text(schema, "default"),
            },
        },
        name @ ("number" | "integer") => FormFieldKind::Number {
            integer: name == "integer",
            minimum: number(schema, "minimum"),
            maximum: number(schema, "maximum"),
            default: number(schema, "default"),
        },
        "boolean" => FormFieldKind::Boolean { default: schema.get("default").and_then(Value::as_bool) },
        "array" => FormFieldKind::Choices {
            options: items_options(schema.get("items")?.as_object()?)?,
            min_items: whole(schema, "minItems"),
            max_items: whole(schema, "maxItems"),
            default: schema.get("default").and_then(texts),
        },
        _ => return None,
    })
}

/// Reads the options of a single-choice form field: `oneOf` with titles, `enum`, or the older `enum` with `enumNames`.
fn single_options(schema: &JsonObject) -> Option<Vec<FormOption>> {
    if let Some(titled) = schema.get("oneOf") {
        return titled_options(titled);
    }
    let mut options: Vec<_> = texts(schema.get("enum")?)?.into_iter().map(FormOption::new).collect();
    let names = schema.get("enumNames").and_then(texts).unwrap_or_default();
    for (option, name) in options.iter_mut().zip(names) {
        option.title = Some(name);
    }
    Some(options)
}

fn items_options(items: &JsonObject) -> Option<Vec<FormOption>> {
    match items.get("anyOf") {
        Some(titled) => titled_options(titled),
        None => Some(texts(items.get("enum")?)?.into_iter().map(FormOption::new).collect()),
    }
}

fn titled_options(list: &Value) -> Option<Vec<FormOption>> {
    let option = |entry: &Value| {
        let value = entry.get("const")?.as_str()?.to_owned();
        let title = entry.get("title").and_then(Value::as_str).map(str::to_owned);
        Some(FormOption { value, title })
    };
    list.as_array()?.iter().map(option).collect()
}

fn text(schema: &JsonObject, key: &str) -> Option<String> {
    schema.get(key)?.as_str().map(str::to_owned)
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
}

fn whole(schema: &JsonObject, key: &str) -> Option<u64> {
    schema.get(key)?.as_u64()
}

fn number(schema: &JsonObject, key: &str) -> Option<Number> {
    schema.get(key)?.as_number().cloned()
}
