//! Checks of values against the JSON Schemas of builder tools.
//!
//! A schema is compiled once, when its tool is made. References to other documents are never followed: a schema that
//! needs one is refused. Without the feature `schema-validation` every check passes.

use serde_json::Value;
use steadfast_model::JsonObject;

/// A compiled schema.
pub(crate) struct Validator {
    #[cfg(feature = "schema-validation")]
    compiled: jsonschema::Validator,
}

#[cfg(feature = "schema-validation")]
impl Validator {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn new(schema: &JsonObject) -> Result<Self, String> {
        let compiled = jsonschema::options()
            .offline()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(&Value::Object(schema.clone()))
            .map_err(|error| at(error.instance_path().segments(), &error.to_string()))?;
        Ok(Self { compiled })
    }

    /// Checks a value; the error names every member that is wrong, up to a few.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        const SHOWN: usize = 5;
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        let errors = self.compiled.iter_errors(value);
        let lines: Vec<String> =
            errors.take(SHOWN).map(|error| at(error.instance_path().segments(), &reason(&error))).collect();
        Err(lines.join("; "))
    }
}

#[cfg(not(feature = "schema-validation"))]
#[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "the same face as with the feature")]
impl Validator {
    /// Takes any schema.
    pub(crate) fn new(_schema: &JsonObject) -> Result<Self, String> {
        Ok(Self {})
    }

    /// Takes any value.
    pub(crate) fn check(&self, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// The reason, without a copy of a large value.
#[cfg(feature = "schema-validation")]
fn reason(error: &jsonschema::ValidationError<'_>) -> String {
    const LONGEST: usize = 300;
    let text = error.to_string();
    if text.len() <= LONGEST { text } else { error.masked_with("the value").to_string() }
}

/// `stops[1].hour: reason`, or the reason alone at the root.
#[cfg(feature = "schema-validation")]
fn at<'a>(path: impl Iterator<Item = jsonschema::paths::LocationSegment<'a>>, reason: &str) -> String {
    use jsonschema::paths::LocationSegment;
    let mut text = String::new();
    for segment in path {
        match segment {
            LocationSegment::Index(index) => text = format!("{text}[{index}]"),
            LocationSegment::Property(name) if text.is_empty() => text.push_str(&name),
            LocationSegment::Property(name) => text = format!("{text}.{name}"),
        }
    }
    if text.is_empty() { reason.to_owned() } else { format!("`{text}`: {reason}") }
}

#[cfg(all(test, feature = "schema-validation"))]
mod tests {
    use serde_json::json;

    use super::*;

    fn validator(schema: Value) -> Result<Validator, String> {
        Validator::new(schema.as_object().unwrap())
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": { "stops": { "items": { "properties": { "hour": { "maximum": 23 } } } } },
            "required": ["city"],
        });
        let validator = validator(schema).unwrap();
        assert_eq!(validator.check(&json!({ "city": "Ulm", "stops": [{ "hour": 3 }] })), Ok(()));
        let complaint = validator.check(&json!({ "stops": [{}, { "hour": 24 }] })).unwrap_err();
        assert!(complaint.contains("`stops[1].hour`: 24 is greater than the maximum of 23"), "{complaint}");
        assert!(complaint.contains("\"city\" is a required property"), "{complaint}");
    }

    #[test]
    fn other_documents_are_never_fetched() {
        assert!(validator(json!({ "$ref": "https://example.com/schema.json" })).is_err());
        assert!(validator(json!({ "$ref": "file:///etc/passwd" })).is_err());
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(validator(json!({ "type": "objekt" })).is_err());
    }

    #[test]
    fn a_large_value_is_not_repeated() {
        let validator = validator(json!({ "properties": { "a": { "maxLength": 3 } } })).unwrap();
        let complaint = validator.check(&json!({ "a": "x".repeat(10_000) })).unwrap_err();
        assert!(complaint.len() < 200, "{complaint}");
    }
}
