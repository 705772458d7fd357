//! The output schema of a tool, and the check of the tool's results against the schema.

use std::sync::OnceLock;

use serde_json::Value;
use steadfast_model::{CallToolResult, JsonObject};

use crate::error::Error;
use crate::validation::{SchemaValidator, limits};

/// The output schema of a tool, compiled when the tool is first called.
pub(crate) struct CachedOutputSchema {
    /// The JSON text of the schema; `None` if it exceeds the limit for schemas.
    text: Option<Box<str>>,
    /// The validator, or why the schema cannot be compiled.
    compiled: OnceLock<Result<SchemaValidator, Box<str>>>,
}

impl CachedOutputSchema {
    pub(crate) fn new(schema: &JsonObject) -> Self {
        let text = serde_json::to_string(schema).ok().filter(|text| text.len() <= limits::BYTES);
        Self { text: text.map(String::into_boxed_str), compiled: OnceLock::new() }
    }

    /// The size of the output schema, which counts for the byte limit of the cache.
    pub(crate) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    /// Returns an error if the output schema of the tool cannot be compiled. The client does not call a tool whose
    /// output schema cannot be compiled: the result could not be checked, and would have to be accepted unchecked or
    /// thrown away after the tool has done its work.
    pub(crate) fn ensure_usable(&self, tool: &str) -> Result<(), Error> {
        let unusable = |why| Error::uncallable(tool, format_args!("the tool's output schema cannot be used: {why}"));
        self.compiled().map(drop).map_err(unusable)
    }

    /// Checks the result of a tool call against the tool's output schema. The check may take long, so the client does
    /// it where the call is polled, and not on the driver's thread.
    pub(crate) fn check(&self, tool: &str, result: &CallToolResult) -> Result<(), Error> {
        // The schema does not hold for error results, which are text for the model.
        if result.is_error() {
            return Ok(());
        }
        let validator = self.compiled().map_err(|why| Error::invalid_output(tool, why))?;
        validator.check_content(result.structured_content.as_ref()).map_err(|why| Error::invalid_output(tool, why))
    }

    fn compiled(&self) -> Result<&SchemaValidator, &str> {
        self.compiled.get_or_init(|| self.compile().map_err(Into::into)).as_ref().map_err(|why| &**why)
    }

    fn compile(&self) -> Result<SchemaValidator, String> {
        let text = self.text.as_ref().ok_or_else(|| format!("the schema is longer than {} bytes", limits::BYTES))?;
        let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        SchemaValidator::new(schema.as_object().ok_or("the schema is not a JSON object")?)
    }
}

/// Two output schemas are equal if their JSON texts are equal.
impl PartialEq for CachedOutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
