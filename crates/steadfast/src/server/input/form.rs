//! Forms derived from Rust types, in the flat schemas that elicitation allows.
//!
//! A struct becomes a form with a field for each of its fields; any other type (an enum, a number, a bool) becomes a
//! form with one field. A type that a form cannot express, such as a struct within a struct, is an error that names the
//! field.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steadfast_model::{FormSchema, JsonObject};

use crate::error::Error;
use crate::server::tool::schema::strip_null;
use crate::validation::form;

/// A type that a user can be asked for: see [`Context::elicit`](crate::server::Context::elicit).
///
/// Every type that derives `Deserialize` and `JsonSchema` implements `Form`, and can be used if a form can express it:
/// a struct of strings, numbers, bools, choices and lists of choices, or one of these alone. A choice is an enum
/// without data; the first line of the documentation of a variant (or its `#[schemars(title = "..")]`) is displayed to
/// people. Fields that are an `Option` or have a default are optional.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use steadfast::server::Form;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Order {
///     /// Where to send it
///     #[schemars(email)]
///     email: String,
///     #[schemars(range(min = 1, max = 9))]
///     pieces: u8,
///     size: Option<Size>,
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(rename_all = "lowercase")]
/// enum Size {
///     /// Fits most
///     Medium,
///     /// Fits all
///     Large,
/// }
///
/// let form = Order::form().unwrap();
/// assert_eq!(form.as_object()["properties"]["email"]["format"], "email");
/// assert_eq!(form.as_object()["properties"]["size"]["oneOf"][0]["title"], "Fits most");
/// assert!(form.is_required("pieces") && !form.is_required("size"));
/// ```
#[diagnostic::on_unimplemented(
    message = "a user cannot be asked for `{Self}`",
    label = "not something that a form can ask for",
    note = "derive `Deserialize` and `JsonSchema` for it; its fields are texts, numbers, `bool`, enums without data, and lists of these enums"
)]
pub trait Form: DeserializeOwned + JsonSchema + Send + 'static {
    /// Returns the form for this type, or an error if a form cannot express the type.
    fn form() -> Result<FormSchema, Error> {
        Ok(of::<Self>()?.0)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Form for T {}

/// The name of the field in a form for a single value.
const SINGLE: &str = "answer";

/// How the content of a form becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormShape {
    /// The form has a field for each member of the value.
    Fields,
    /// The form has one field, and the value of that field is the answer.
    Single,
}

/// Derives the form of a type.
pub(crate) fn of<T: JsonSchema>() -> Result<(FormSchema, FormShape), Error> {
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let object = schema.get("type").and_then(Value::as_str) == Some("object");
    let (properties, required, shape) = if object {
        let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        (properties, schema.get("required").cloned(), FormShape::Fields)
    } else {
        let mut single = schema.as_object().cloned().unwrap_or_default();
        // The name of a type is no title for people.
        single.shift_remove("title");
        (JsonObject::from_iter([(SINGLE.to_owned(), single.into())]), Some(json!([SINGLE])), FormShape::Single)
    };
    let mut fields = JsonObject::new();
    for (name, property) in properties {
        let field = field(&property).map_err(|why| {
            Error::usage(format!("a form cannot express `{}`: the field `{name}` {why}", T::schema_name()))
        })?;
        fields.insert(name, field.into());
    }
    let mut form = JsonObject::new();
    form.insert("type".to_owned(), "object".into());
    form.insert("properties".to_owned(), fields.into());
    if let Some(required) = required {
        form.insert("required".to_owned(), required);
    }
    Ok((form.into(), shape))
}

/// Checks the content of a form and decodes it.
pub(crate) fn read<T: DeserializeOwned>(
    shape: FormShape,
    form: &FormSchema,
    mut content: JsonObject,
) -> Result<T, String> {
    form::check(form, &mut content)?;
    let value = match shape {
        FormShape::Fields => Value::Object(content),
        FormShape::Single => content.shift_remove(SINGLE).unwrap_or_default(),
    };
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        if path == "." { error.inner().to_string() } else { format!("`{path}`: {}", error.inner()) }
    })
}

/// Schema keywords that any field of a form may have: they do not restrict the value, or the Rust type checks them.
const REMARKS: &[&str] = &[
    "type",
    "title",
    "description",
    "default",
    "format",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    "uniqueItems",
];

/// The string formats that a form supports. Other string formats are checked by the type that decodes the user's
/// answer.
const FORMATS: &[&str] = &["email", "uri", "date", "date-time"];

/// Converts the schema of one field into the schema of a form field.
fn field(schema: &Value) -> Result<JsonObject, String> {
    let mut schema = schema.as_object().cloned().ok_or("may be anything")?;
    strip_null(&mut schema);
    let mut field = JsonObject::new();
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let known: &[&str] = if let Some(options) = options_of(&schema)? {
        head(&mut field, "string", &schema);
        options.write(&mut field, "oneOf");
        &["oneOf", "anyOf", "enum", "const"]
    } else {
        match kind {
            "string" | "number" | "integer" | "boolean" => head(&mut field, kind, &schema),
            "array" => {
                let items = schema.get("items").and_then(Value::as_object);
                let options = items.map(options_of).transpose()?.flatten();
                let options =
                    options.ok_or("is a list, and forms support only lists of choices (enums without data)")?;
                head(&mut field, kind, &schema);
                copy(&mut field, &schema, &["minItems", "maxItems"]);
                let mut items = JsonObject::new();
                options.write(&mut items, "anyOf");
                if items.contains_key("enum") {
                    items.shift_insert(0, "type".to_owned(), "string".into());
                }
                field.insert("items".to_owned(), items.into());
            }
            "object" => return Err("is an object, and a form cannot have nested fields".to_owned()),
            _ => return Err("is not a string, a number, a bool or a choice".to_owned()),
        }
        match kind {
            "string" => &["minLength", "maxLength"],
            "array" => &["items", "minItems", "maxItems"],
            "boolean" => &[],
            _ => &["minimum", "maximum"],
        }
    };
    if let Some(unknown) = schema.keys().find(|key| !known.contains(&key.as_str()) && !REMARKS.contains(&key.as_str()))
    {
        return Err(format!("has `{unknown}`, which a form cannot express"));
    }
    if matches!(kind, "string" | "number" | "integer") {
        copy(&mut field, &schema, &["minLength", "maxLength", "minimum", "maximum"]);
    }
    if let Some(format) = schema.get("format").filter(|format| FORMATS.iter().any(|known| *format == known)) {
        field.insert("format".to_owned(), format.clone());
    }
    copy(&mut field, &schema, &["default"]);
    Ok(field)
}

fn head(field: &mut JsonObject, kind: &str, schema: &JsonObject) {
    field.insert("type".to_owned(), kind.into());
    copy(field, schema, &["title", "description"]);
}

fn copy(field: &mut JsonObject, schema: &JsonObject, keys: &[&str]) {
    for key in keys {
        if let Some(value) = schema.get(*key).filter(|value| !value.is_null()) {
            field.insert((*key).to_owned(), value.clone());
        }
    }
}

/// The options of a choice, each with its title.
struct FormFieldChoices(Vec<(String, Option<String>)>);

impl FormFieldChoices {
    /// Writes the options of a choice as an `enum` of names or, if one of them has a title, with titles under the key
    /// `titled`.
    fn write(self, out: &mut JsonObject, titled: &str) {
        if self.0.iter().all(|(_, title)| title.is_none()) {
            out.insert("enum".to_owned(), self.0.into_iter().map(|(name, _)| Value::from(name)).collect());
            return;
        }
        let entry = |(name, title): (String, Option<String>)| {
            let title = title.unwrap_or_else(|| name.clone());
            json!({ "const": name, "title": title })
        };
        out.insert(titled.to_owned(), self.0.into_iter().map(entry).collect());
    }
}

/// Returns the options of a choice, if the schema is a choice of names.
fn options_of(schema: &JsonObject) -> Result<Option<FormFieldChoices>, String> {
    const DATA: &str = "is a choice with data, and forms support only names to choose from";
    let mut options = Vec::new();
    if let Some(entries) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
        for entry in entries {
            let title = entry.get("title").or_else(|| entry.get("description")).and_then(Value::as_str);
            let listed = match (entry.get("const"), entry.get("enum").and_then(Value::as_array)) {
                (Some(name), _) => vec![(name, title)],
                (None, Some(names)) => names.iter().map(|name| (name, None)).collect(),
                (None, None) => return Err(DATA.to_owned()),
            };
            for (name, title) in listed {
                let name = name.as_str().ok_or(DATA)?;
                options.push((name.to_owned(), title.and_then(|title| title.lines().next()).map(str::to_owned)));
            }
        }
        return Ok(Some(FormFieldChoices(options)));
    }
    let single = schema.get("const").map(std::slice::from_ref);
    let Some(names) = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).or(single) else {
        return Ok(None);
    };
    for name in names {
        options.push((name.as_str().ok_or(DATA)?.to_owned(), None));
    }
    Ok(Some(FormFieldChoices(options)))
}

#[cfg(test)]
#[allow(dead_code, reason = "the fields exist only for the derived schema")]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum PlainColor {
        Red,
        Green,
    }

    #[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum TemperatureUnit {
        /// Degrees Celsius
        Celsius,
        #[schemars(title = "Kelvin (absolute)")]
        Kelvin,
    }

    #[derive(Deserialize, JsonSchema)]
    struct All {
        /// Your name
        #[schemars(length(min = 1, max = 50), title = "Name")]
        name: String,
        #[schemars(email)]
        email: Option<String>,
        #[schemars(range(min = 0.5, max = 9.5))]
        score: f64,
        #[serde(default = "thirty")]
        age: u8,
        #[serde(default)]
        verified: bool,
        plain: PlainColor,
        titled: Option<TemperatureUnit>,
        #[schemars(length(min = 1, max = 2))]
        colours: Vec<PlainColor>,
        units: Vec<TemperatureUnit>,
    }

    fn thirty() -> u8 {
        30
    }

    fn field_of<T: JsonSchema>(name: &str) -> Value {
        of::<T>().unwrap().0.as_object()["properties"][name].clone()
    }

    #[test]
    fn every_kind_of_field_has_a_schema() {
        let field = field_of::<All>;
        assert_eq!(
            field("name"),
            json!({"type": "string", "title": "Name", "description": "Your name", "minLength": 1, "maxLength": 50})
        );
        assert_eq!(field("email"), json!({"type": "string", "format": "email"}));
        assert_eq!(field("score"), json!({"type": "number", "minimum": 0.5, "maximum": 9.5}));
        assert_eq!(field("age"), json!({"type": "integer", "minimum": 0, "maximum": 255, "default": 30}));
        assert_eq!(field("verified"), json!({"type": "boolean", "default": false}));
        assert_eq!(field("plain"), json!({"type": "string", "enum": ["red", "green"]}));
        let titles = json!([
            {"const": "celsius", "title": "Degrees Celsius"},
            {"const": "kelvin", "title": "Kelvin (absolute)"},
        ]);
        assert_eq!(field("titled"), json!({"type": "string", "oneOf": titles}));
        assert_eq!(
            field("colours"),
            json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["red", "green"]}})
        );
        assert_eq!(field("units"), json!({"type": "array", "items": {"anyOf": titles}}));
    }

    #[test]
    fn optional_fields_are_not_required() {
        let (form, shape) = of::<All>().unwrap();
        assert_eq!(form.as_object()["required"], json!(["name", "score", "plain", "colours", "units"]));
        assert_eq!(shape, FormShape::Fields);
        assert_eq!(form.fields().count(), 9, "`FormSchema::fields` yields every field of the form");
    }

    #[test]
    fn a_single_value_is_a_form_with_one_field() {
        let (form, shape) = of::<PlainColor>().unwrap();
        assert_eq!(shape, FormShape::Single);
        let content = json!({"answer": "green"}).as_object().cloned().unwrap();
        assert_eq!(read::<PlainColor>(shape, &form, content), Ok(PlainColor::Green));
        let (form, shape) = of::<bool>().unwrap();
        assert_eq!(form.as_object()["properties"], json!({"answer": {"type": "boolean"}}));
        assert!(read::<bool>(shape, &form, JsonObject::new()).is_err());
    }

    #[derive(Deserialize, JsonSchema)]
    struct NestedForm {
        inner: NestedFields,
    }

    #[derive(Deserialize, JsonSchema)]
    struct NestedFields {
        value: String,
    }

    #[derive(Deserialize, JsonSchema)]
    struct FreeTextList {
        tags: Vec<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct ShapeForm {
        shape: GeometricShape,
    }

    #[derive(Deserialize, JsonSchema)]
    enum GeometricShape {
        Circle { radius: f64 },
        Point,
    }

    #[derive(Deserialize, JsonSchema)]
    struct PatternForm {
        #[schemars(regex(pattern = "^a+$"))]
        text: String,
    }

    #[test]
    fn a_type_that_a_form_cannot_express_is_an_error_that_names_the_field() {
        let complaint = |result: Result<(FormSchema, FormShape), Error>| result.unwrap_err().to_string();
        assert_eq!(
            complaint(of::<NestedForm>()),
            "a form cannot express `NestedForm`: the field `inner` is an object, and a form cannot have nested fields"
        );
        assert!(complaint(of::<FreeTextList>()).contains("`tags` is a list"));
        assert!(complaint(of::<ShapeForm>()).contains("`shape` is a choice with data"));
        assert!(complaint(of::<PatternForm>()).contains("`text` has `pattern`"));
    }

    #[test]
    fn an_answer_that_the_type_cannot_decode_is_rejected() {
        let (form, shape) = of::<All>().unwrap();
        let content = json!({"name": "Ann", "score": 1, "plain": "blue", "colours": ["red"], "units": []});
        let complaint = read::<All>(shape, &form, content.as_object().cloned().unwrap()).err().unwrap();
        assert!(complaint.contains("`plain`"), "{complaint}");
    }
}
