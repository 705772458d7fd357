//! What the user sees and types: tables, contents, progress, hints and questions at the terminal.

pub(crate) mod content;
pub(crate) mod hints;
pub(crate) mod progress;
pub(crate) mod sanitize;
pub(crate) mod server_log;
pub(crate) mod table;
pub(crate) mod terminal;
