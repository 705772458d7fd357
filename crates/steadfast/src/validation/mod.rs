//! Checks of values against JSON Schemas that somebody else has written: a server's tools, seen from either side.
//!
//! A schema is compiled once, when its tool is made or first called, by the dialect that it declares: 2020-12 if it declares none, or
//! 2019-09, draft-07, draft-06 or draft-04. References to other documents are never followed: a schema that needs one is
//! refused, and so is one that is too large or could be too costly.
//!
//! Without the feature `schema-validation` no schema can be compiled: a server cannot have a tool that needs one, and a client
//! does not check results. Forms and conversations are checked with and without it.

pub(crate) mod conversation;
#[cfg(feature = "schema-validation")]
mod dialect;
#[cfg(feature = "schema-validation")]
mod document;
pub(crate) mod form;
pub mod limits;
#[cfg(feature = "schema-validation")]
mod measure;
#[cfg(feature = "schema-validation")]
mod size;

use serde_json::Value;
use steadfast_model::JsonObject;

#[cfg(feature = "schema-validation")]
use dialect::Dialect;
#[cfg(feature = "schema-validation")]
use measure::Measure;

/// A compiled schema.
#[cfg(feature = "schema-validation")]
pub(crate) struct Validator {
    compiled: jsonschema::Validator,
    measure: Measure,
}

/// There is none without the feature.
#[cfg(not(feature = "schema-validation"))]
pub(crate) enum Validator {}

#[cfg(feature = "schema-validation")]
impl Validator {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn new(schema: &JsonObject) -> Result<Self, String> {
        let schema = Value::Object(schema.clone());
        let draft = match Dialect::of(&schema)? {
            Dialect::Draft4 => jsonschema::Draft::Draft4,
            Dialect::Draft6 => jsonschema::Draft::Draft6,
            Dialect::Draft7 => jsonschema::Draft::Draft7,
            Dialect::Draft2019 => jsonschema::Draft::Draft201909,
            Dialect::Draft2020 => jsonschema::Draft::Draft202012,
        };
        let measure = Measure::of(&schema)?;
        let compiled = jsonschema::options()
            .offline()
            .with_draft(draft)
            .build(&schema)
            .map_err(|error| at(error.instance_path().segments(), &error.to_string()))?;
        Ok(Self { compiled, measure })
    }

    /// Checks a value; the error names every member that is wrong, up to a few.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        const SHOWN: usize = 5;
        // How often the value may be looked at to find what is wrong with it. All of it is collected before some is shown.
        const LOOKS: usize = 20_000;
        let size = size::Size::of(value, self.measure.ways);
        if size.levels.saturating_mul(self.measure.chain) > limits::STEPS {
            return Err(format!("it is nested {} levels deep, which is too deep to be checked", size.levels));
        }
        if self.compiled.is_valid(value) {
            return Ok(());
        }
        if size.looks > LOOKS {
            return Err("it does not fit the schema, and is too large to say where".to_owned());
        }
        let errors = self.compiled.iter_errors(value);
        let lines: Vec<String> =
            errors.take(SHOWN).map(|error| at(error.instance_path().segments(), &reason(&error))).collect();
        Err(lines.join("; "))
    }

    /// Checks the structured content of a result: where a schema promises some, there has to be some.
    pub(crate) fn check_content(&self, content: Option<&Value>) -> Result<(), String> {
        content.map_or_else(|| Err("there is no structured content".to_owned()), |value| self.check(value))
    }
}

#[cfg(not(feature = "schema-validation"))]
impl Validator {
    /// Always an error, so that no schema is taken whose promise is not kept.
    pub(crate) fn new(_schema: &JsonObject) -> Result<Self, String> {
        Err("values are checked against it by the feature `schema-validation` of the crate `steadfast`, which is off: \
             turn it on, or use a type (`#[tool]`, `ToolBuilder::input`, `Structured`)"
            .to_owned())
    }

    pub(crate) fn check(&self, _value: &Value) -> Result<(), String> {
        match *self {}
    }

    pub(crate) fn check_content(&self, _content: Option<&Value>) -> Result<(), String> {
        match *self {}
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
mod tests;
