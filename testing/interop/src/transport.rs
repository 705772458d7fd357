//! The transports: the same checks on each.

use std::path::Path;
use std::process::Command;

use crate::Result;

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// The client starts the command and speaks to its standard input and output.
    Stdio,
    /// The command listens, the client has a URL.
    Http,
}

impl Transport {
    /// Those that the command has.
    pub(crate) fn offered_by(program: &Path) -> Result<Vec<Transport>> {
        let help = Command::new(program).args(["serve", "--help"]).output();
        let help = help.map_err(|error| format!("{}: {error}", program.display()))?;
        if String::from_utf8_lossy(&help.stdout).contains("--http") {
            return Ok(vec![Transport::Stdio, Transport::Http]);
        }
        println!("`steadfast serve` has no --http: standard input and output only");
        Ok(vec![Transport::Stdio])
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        }
    }

    /// Streamable HTTP came with 2025-03-26.
    pub(crate) fn carries(self, revision: &str) -> bool {
        self == Transport::Stdio || revision >= "2025-03-26"
    }
}
