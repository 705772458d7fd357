//! What a tool says that its answers look like, and whether they do.

use std::sync::OnceLock;

use serde_json::Value;
use steadfast_model::{CallToolResult, JsonObject};

use crate::error::Error;
use crate::validation::{Validator, limits};

/// The output schema of a tool, compiled when the tool is first called.
pub(crate) struct OutputSchema {
    /// `None` if it is too large to be kept.
    text: Option<Box<str>>,
    /// Or why nothing can be checked by it.
    compiled: OnceLock<Result<Validator, Box<str>>>,
}

impl OutputSchema {
    pub(crate) fn new(schema: &JsonObject) -> Self {
        let text = serde_json::to_string(schema).ok().filter(|text| text.len() <= limits::BYTES);
        Self { text: text.map(String::into_boxed_str), compiled: OnceLock::new() }
    }

    /// How much is kept of it.
    pub(crate) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    /// Whether answers can be checked by it. A tool of which they cannot is not called: its answer would have to be taken for
    /// one that fits, or thrown away when the tool has done its work.
    pub(crate) fn can_be_read(&self, tool: &str) -> Result<(), Error> {
        let unreadable = |why| Error::uncallable(tool, format_args!("its output schema cannot be read: {why}"));
        self.compiled().map(drop).map_err(unreadable)
    }

    /// Whether the answer is what the schema says. Called where the call is awaited: it may take its time.
    pub(crate) fn check(&self, tool: &str, answer: &CallToolResult) -> Result<(), Error> {
        // A failure is for the model to read, and looks as it likes.
        if answer.is_error() {
            return Ok(());
        }
        let validator = self.compiled().map_err(|why| Error::invalid_output(tool, why))?;
        validator.check_content(answer.structured_content.as_ref()).map_err(|why| Error::invalid_output(tool, why))
    }

    fn compiled(&self) -> Result<&Validator, &str> {
        self.compiled.get_or_init(|| self.compile().map_err(Into::into)).as_ref().map_err(|why| &**why)
    }

    fn compile(&self) -> Result<Validator, String> {
        let text = self.text.as_ref().ok_or_else(|| format!("it is longer than {} bytes", limits::BYTES))?;
        let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Validator::new(schema.as_object().ok_or("it is no object")?)
    }
}

/// Whether they are the same schema.
impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
