//! The client side of the command: connects to a server, runs one request and prints the result.

pub(crate) mod commands;

mod arguments;
mod connection;
mod display;
mod elicitation;
mod exit;
mod schema;

pub(crate) use connection::target::{CliConnectOptions, ServerCommand};
pub(crate) use exit::{CliCommandFailure, CliExitStatus, help};

/// Timeout of a request that only improves the messages of this command: a list to suggest names from, or the log level.
const HINT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
