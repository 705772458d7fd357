//! What a tool says that its answers look like, and whether they do.

use std::sync::OnceLock;

use serde_json::Value;
use steadfast_model::{CallToolResult, JsonObject};

use crate::error::Error;
use crate::validation::{Validator, limits};

/// The output schema of a tool, compiled when an answer is first checked by it.
pub(super) struct OutputSchema {
    /// `None` if it is too large to be kept.
    text: Option<Box<str>>,
    /// `None` if nothing can be checked by it.
    compiled: OnceLock<Option<Validator>>,
}

impl OutputSchema {
    pub(super) fn new(schema: &JsonObject) -> Self {
        let text = serde_json::to_string(schema).ok().filter(|text| text.len() <= limits::BYTES);
        Self { text: text.map(String::into_boxed_str), compiled: OnceLock::new() }
    }

    /// How much is kept of it.
    pub(super) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    /// Whether the answer is what the schema says. Called where the call is awaited: it may take its time.
    pub(super) fn check(&self, tool: &str, answer: &CallToolResult) -> Result<(), Error> {
        // A failure is for the model to read, and looks as it likes.
        if answer.failed() {
            return Ok(());
        }
        let Some(validator) = self.compiled.get_or_init(|| self.compile(tool)) else { return Ok(()) };
        validator.check_content(answer.structured_content.as_ref()).map_err(|why| Error::invalid_output(tool, why))
    }

    /// Says so, once, if it cannot be.
    fn compile(&self, tool: &str) -> Option<Validator> {
        let compiled = match &self.text {
            Some(text) => compile(text),
            None => Err(format!("it is longer than {} bytes", limits::BYTES)),
        };
        compiled
            .inspect_err(|why| tracing::warn!(%tool, %why, "answers of this tool are not checked: its output schema"))
            .ok()
    }
}

fn compile(text: &str) -> Result<Validator, String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    schema.as_object().ok_or_else(|| "it is no object".to_owned()).and_then(Validator::new)
}

/// Whether they are the same schema.
impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
