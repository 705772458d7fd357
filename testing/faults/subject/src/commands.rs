//! The commands of the client under test.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One line of standard input.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum ClientCommand {
    /// Opens a connection. Later commands wait until it is open or has failed.
    Connect(ConnectCommand),
    /// Calls a tool. Its outcome is reported when it ends.
    Call(CallCommand),
    /// Drops a call that waits.
    DropCall { call: String },
    /// Says when a connection has ended, by whichever side.
    AwaitEnd { connection: String },
    /// Closes a connection, and waits until it is closed.
    Close { connection: String },
}

#[derive(Deserialize)]
pub(crate) struct ConnectCommand {
    pub(crate) connection: String,
    pub(crate) to: Target,
    /// 2026-07-28, an older one for its handshake, or anything else for whichever the server speaks.
    pub(crate) revision: String,
    #[serde(default = "ten_seconds", rename = "opening_ms")]
    pub(crate) within_ms: u64,
    #[serde(default)]
    pub(crate) errors: StderrMode,
    /// The number of reconnect attempts; the default of the library if absent.
    #[serde(default)]
    pub(crate) reconnect: Option<u32>,
    /// Headers of every request.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// For a server that wants its requests authorized: they are, again and again.
    #[serde(default)]
    pub(crate) token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// A program and its arguments.
    Command(Vec<String>),
    Url(String),
}

/// What is done with the standard error of a child process.
#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StderrMode {
    #[default]
    Log,
    /// Each line is given to a function.
    Lines,
    /// To a function that does not return.
    Stuck,
    Null,
}

#[derive(Deserialize)]
pub(crate) struct CallCommand {
    pub(crate) connection: String,
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// So many bytes more of arguments.
    #[serde(default)]
    pub(crate) pad: usize,
    pub(crate) deadline_ms: u64,
    /// It does no harm when it is made twice.
    #[serde(default)]
    pub(crate) idempotent: bool,
    /// Asks for progress, and says it.
    #[serde(default)]
    pub(crate) progress: bool,
}

fn ten_seconds() -> u64 {
    10_000
}
