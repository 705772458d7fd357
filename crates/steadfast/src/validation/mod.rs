//! Checks of values against JSON Schemas: the arguments and results of tools, on the server and on the client.
//!
//! A schema is compiled once, when its tool is built or first called, in the dialect that it declares: 2020-12 by
//! default, or 2019-09, draft-07, draft-06 or draft-04. References to other documents are never followed: a schema that
//! needs another document is rejected, and so is a schema that is too large or could be too costly to check.
//!
//! Without the feature `schema-validation` no schema can be compiled: a server cannot have a tool that needs a compiled
//! schema, and a client does not check results. Elicitation forms and sampling conversations are checked even without
//! the feature `schema-validation`.

pub(crate) mod conversation;
#[cfg(feature = "schema-validation")]
mod dialect;
#[cfg(feature = "schema-validation")]
mod document;
pub(crate) mod form;
pub(crate) mod limits;
#[cfg(feature = "schema-validation")]
mod schema_cost;
#[cfg(feature = "schema-validation")]
mod value_size;

use serde_json::Value;
use steadfast_model::JsonObject;

#[cfg(feature = "schema-validation")]
use dialect::Dialect;
#[cfg(feature = "schema-validation")]
use schema_cost::SchemaCost;

/// A compiled schema.
#[cfg(feature = "schema-validation")]
pub(crate) struct SchemaValidator {
    compiled: jsonschema::Validator,
    cost: SchemaCost,
}

/// Without the feature `schema-validation` no value of this type exists.
#[cfg(not(feature = "schema-validation"))]
pub(crate) enum SchemaValidator {}

#[cfg(feature = "schema-validation")]
impl SchemaValidator {
    /// Compiles a JSON Schema; the error says what is wrong with the schema.
    pub(crate) fn new(schema: &JsonObject) -> Result<Self, String> {
        let schema = Value::Object(schema.clone());
        let draft = match Dialect::of(&schema)? {
            Dialect::Draft4 => jsonschema::Draft::Draft4,
            Dialect::Draft6 => jsonschema::Draft::Draft6,
            Dialect::Draft7 => jsonschema::Draft::Draft7,
            Dialect::Draft2019 => jsonschema::Draft::Draft201909,
            Dialect::Draft2020 => jsonschema::Draft::Draft202012,
        };
        let cost = SchemaCost::of(&schema)?;
        let compiled = jsonschema::options()
            .offline()
            .with_draft(draft)
            .build(&schema)
            .map_err(|error| with_path(error.instance_path().segments(), &error.to_string()))?;
        Ok(Self { compiled, cost })
    }

    /// Checks a value against the schema; the error names the members that are wrong, up to a limit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        const MAX_ERRORS: usize = 5;
        // How many times parts of the value may be visited to find its errors: all errors are collected before the
        // first few are reported.
        const MAX_VISITS: usize = 20_000;
        let size = value_size::ValueValidationCost::of(value, self.cost.branching);
        if size.levels.saturating_mul(self.cost.chain) > limits::STEPS {
            return Err(format!("the value is nested {} levels deep, which is too deep to be validated", size.levels));
        }
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        if size.visits > MAX_VISITS {
            return Err("the value does not match the schema, and is too large to say where".to_owned());
        }
        let errors = self.compiled.iter_errors(value);
        let lines: Vec<String> =
            errors.take(MAX_ERRORS).map(|error| with_path(error.instance_path().segments(), &reason(&error))).collect();
        Err(lines.join("; "))
    }

    /// Checks the structured content of a tool's result: if the tool has an output schema, the content must be present.
    pub(crate) fn check_content(&self, content: Option<&Value>) -> Result<(), String> {
        content.map_or_else(|| Err("the result has no structured content".to_owned()), |value| self.check(value))
    }
}

#[cfg(not(feature = "schema-validation"))]
impl SchemaValidator {
    /// Always returns an error: without the feature `schema-validation`, schemas cannot be enforced.
    pub(crate) fn new(_schema: &JsonObject) -> Result<Self, String> {
        Err("checking values against it requires the feature `schema-validation` of the crate `steadfast`, which is disabled: \
             enable it, or use a Rust type (`#[tool]`, `ServerToolBuilder::input`, `Structured`)"
            .to_owned())
    }

    pub(crate) fn check(&self, _value: &Value) -> Result<(), String> {
        match *self {}
    }

    pub(crate) fn check_content(&self, _content: Option<&Value>) -> Result<(), String> {
        match *self {}
    }
}

/// The reason of a validation error as text, without a copy of a large value.
#[cfg(feature = "schema-validation")]
fn reason(error: &jsonschema::ValidationError<'_>) -> String {
    const MAX_BYTES: usize = 300;
    let text = error.to_string();
    if text.len() <= MAX_BYTES { text } else { error.masked_with("the value").to_string() }
}

/// Puts the path of the wrong member before the reason, as in `stops[1].hour: reason`; at the root, returns only the
/// reason.
#[cfg(feature = "schema-validation")]
fn with_path<'a>(path: impl Iterator<Item = jsonschema::paths::LocationSegment<'a>>, reason: &str) -> String {
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
mod tests;
