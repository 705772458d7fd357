//! Forms of elicitation: flat JSON Schemas of the values that a user is asked to fill in.
//!
//! A form is relayed from server to user, so its text is preserved, including unknown keywords and the order of fields.
//! [`FormField`] reads or builds one field.

use serde::de::Deserializer;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::json::JsonObject;

/// A form: an object schema whose properties are strings, numbers, booleans and choices.
///
/// ```
/// use steadfast_model::{FormField, FormSchema};
/// let form = FormSchema::new()
///     .with_required("email", FormField::string())
///     .with_optional("colour", FormField::choice(["red", "green"]));
/// let names: Vec<_> = form.fields().map(|(name, _)| name).collect();
/// assert_eq!(names, ["email", "colour"]);
/// assert!(form.is_required("email") && !form.is_required("colour"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FormSchema(JsonObject);

impl Default for FormSchema {
    fn default() -> Self {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), JsonObject::new().into());
        Self(schema)
    }
}

impl FormSchema {
    /// An elicitation form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds to this form a field that the user has to fill in.
    pub fn with_required(mut self, name: impl Into<String>, field: FormField) -> Self {
        let name = name.into();
        self.insert(name.clone(), &field);
        let required = self.0.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(required) = required {
            required.push(name.into());
        }
        self
    }

    /// Adds to this form a field that the user may leave empty.
    pub fn with_optional(mut self, name: impl Into<String>, field: FormField) -> Self {
        self.insert(name.into(), &field);
        self
    }

    /// The fields of the form in their order. Properties of the schema that cannot be form fields are skipped.
    pub fn fields(&self) -> impl Iterator<Item = (&str, FormField)> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.as_str(), FormField::deserialize(schema).ok()?)))
    }

    /// True if the user has to fill in the form field `name`.
    pub fn is_required(&self, name: &str) -> bool {
        let required = self.0.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|entry| entry.as_str() == Some(name))
    }

    /// Adds to the user's answer the default values of form fields that it does not have.
    ///
    /// ```
    /// use steadfast_model::{FormField, FormSchema, JsonObject};
    /// let form = FormSchema::new().with_optional("days", FormField::integer().with_default(3));
    /// let mut answer = JsonObject::new();
    /// form.fill_in_defaults(&mut answer);
    /// assert_eq!(answer["days"], 3);
    /// ```
    pub fn fill_in_defaults(&self, answer: &mut JsonObject) {
        let properties = self.0.get("properties").and_then(Value::as_object);
        for (name, field) in properties.into_iter().flatten() {
            if let (Some(default), false) = (field.get("default"), answer.contains_key(name)) {
                answer.insert(name.clone(), default.clone());
            }
        }
    }

    /// The JSON Schema of the form.
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// The JSON Schema of the form, for keywords that [`FormField`] does not have.
    pub fn as_object_mut(&mut self) -> &mut JsonObject {
        &mut self.0
    }

    fn insert(&mut self, name: String, field: &FormField) {
        let properties = self.0.entry("properties").or_insert_with(|| JsonObject::new().into());
        if let (Value::Object(properties), Ok(schema)) = (properties, serde_json::to_value(field)) {
            properties.insert(name, schema);
        }
    }
}

impl From<JsonObject> for FormSchema {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl From<FormSchema> for JsonObject {
    fn from(form: FormSchema) -> Self {
        form.0
    }
}

/// One field of an elicitation form.
///
/// ```
/// use steadfast_model::{FormField, FormFieldKind};
/// let field: FormField = serde_json::from_str(r#"{"type":"string","enum":["a","b"],"title":"Pick"}"#).unwrap();
/// assert_eq!(field.title.as_deref(), Some("Pick"));
/// assert!(matches!(field.kind, FormFieldKind::Choice { .. }));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The display name.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its type.
    pub kind: FormFieldKind,
}

/// The type of a form field, with the limits and the default value of the field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FormFieldKind {
    /// A string.
    #[non_exhaustive]
    Text {
        /// Minimum length.
        min_length: Option<u64>,
        /// Maximum length.
        max_length: Option<u64>,
        /// The format of the text (`email`, `uri`, `date` or `date-time`).
        format: Option<String>,
        /// The default value.
        default: Option<String>,
    },
    /// A number.
    #[non_exhaustive]
    Number {
        /// True if the number has to be an integer.
        integer: bool,
        /// Minimum.
        minimum: Option<Number>,
        /// Maximum.
        maximum: Option<Number>,
        /// The default value.
        default: Option<Number>,
    },
    /// A boolean.
    #[non_exhaustive]
    Boolean {
        /// The default value.
        default: Option<bool>,
    },
    /// A form field in which the user chooses one of several options.
    #[non_exhaustive]
    Choice {
        /// The options.
        options: Vec<FormOption>,
        /// The default choice.
        default: Option<String>,
    },
    /// A form field in which the user may choose several options (since 2025-11-25).
    #[non_exhaustive]
    Choices {
        /// The options.
        options: Vec<FormOption>,
        /// Minimum number of options that the user has to choose.
        min_items: Option<u64>,
        /// Maximum number of options that the user may choose.
        max_items: Option<u64>,
        /// The default choice.
        default: Option<Vec<String>>,
    },
}

/// One of the options that the user can choose from in a form field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormOption {
    /// The value of the form field if the user chooses this option.
    pub value: String,
    /// The display name of the option, if it differs from the value.
    pub title: Option<String>,
}

impl FormOption {
    /// An option whose display name is its value.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), title: None }
    }

    /// Sets the display name of this option.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

impl<T: Into<String>> From<T> for FormOption {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl FormField {
    /// A form field of this type, without title and description.
    pub fn new(kind: FormFieldKind) -> Self {
        Self { title: None, description: None, kind }
    }

    /// Any text.
    pub fn string() -> Self {
        Self::new(FormFieldKind::Text { min_length: None, max_length: None, format: None, default: None })
    }

    /// A form field for text in a format (`email`, `uri`, `date` or `date-time`).
    pub fn formatted(format: impl Into<String>) -> Self {
        let format = Some(format.into());
        Self::new(FormFieldKind::Text { min_length: None, max_length: None, format, default: None })
    }

    /// Any number.
    pub fn number() -> Self {
        Self::new(FormFieldKind::Number { integer: false, minimum: None, maximum: None, default: None })
    }

    /// Any integer.
    pub fn integer() -> Self {
        Self::new(FormFieldKind::Number { integer: true, minimum: None, maximum: None, default: None })
    }

    /// A boolean.
    pub fn boolean() -> Self {
        Self::new(FormFieldKind::Boolean { default: None })
    }

    /// A form field in which the user chooses one of these options.
    pub fn choice<O: Into<FormOption>>(options: impl IntoIterator<Item = O>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self::new(FormFieldKind::Choice { options, default: None })
    }

    /// A form field in which the user may choose several of these options.
    pub fn choices<O: Into<FormOption>>(options: impl IntoIterator<Item = O>) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self::new(FormFieldKind::Choices { options, min_items: None, max_items: None, default: None })
    }

    /// Sets the display name of this form field.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description of this form field.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the default value of this form field. A default value that does not fit the form field is ignored.
    ///
    /// ```
    /// use steadfast_model::FormField;
    /// let field = FormField::integer().with_range(1, 9).with_default(3);
    /// assert_eq!(serde_json::to_string(&field).unwrap(), r#"{"type":"integer","minimum":1,"maximum":9,"default":3}"#);
    /// ```
    pub fn with_default(mut self, value: impl Into<Value>) -> Self {
        let value = value.into();
        let text = || value.as_str().map(str::to_owned);
        match &mut self.kind {
            FormFieldKind::Text { default, .. } | FormFieldKind::Choice { default, .. } => *default = text(),
            FormFieldKind::Number { default, .. } => *default = value.as_number().cloned(),
            FormFieldKind::Boolean { default } => *default = value.as_bool(),
            FormFieldKind::Choices { default, .. } => *default = Vec::deserialize(value).ok(),
        }
        self
    }

    /// Sets the shortest and longest length of a text field. Form fields that are not for text are not changed.
    pub fn with_length(mut self, shortest: u64, longest: u64) -> Self {
        if let FormFieldKind::Text { min_length, max_length, .. } = &mut self.kind {
            (*min_length, *max_length) = (Some(shortest), Some(longest));
        }
        self
    }

    /// Sets the minimum and the maximum of a number field. Form fields that are not for numbers are not changed.
    pub fn with_range(mut self, least: impl Into<Value>, greatest: impl Into<Value>) -> Self {
        if let FormFieldKind::Number { minimum, maximum, .. } = &mut self.kind {
            (*minimum, *maximum) = (least.into().as_number().cloned(), greatest.into().as_number().cloned());
        }
        self
    }

    /// Sets the fewest and the most options that the user may choose. Only fields in which the user may choose several options
    /// are changed.
    pub fn with_count(mut self, fewest: u64, most: u64) -> Self {
        if let FormFieldKind::Choices { min_items, max_items, .. } = &mut self.kind {
            (*min_items, *max_items) = (Some(fewest), Some(most));
        }
        self
    }
}

mod wire;

#[cfg(test)]
mod tests;
