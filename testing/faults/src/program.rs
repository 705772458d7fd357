//! Where the command under test is: named by `STEADFAST_BIN`, or built once.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::failure::{Failure, Verdict, ensure};

static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// The path of the `steadfast` command.
pub(crate) fn path() -> Verdict<PathBuf> {
    PROGRAM.get_or_init(|| find().map_err(|failure| failure.0)).clone().map_err(Failure)
}

fn find() -> Verdict<PathBuf> {
    match std::env::var_os("STEADFAST_BIN") {
        Some(path) => Ok(PathBuf::from(path)),
        None => build(),
    }
}

/// Builds the command as users do and takes its path from what cargo says.
fn build() -> Verdict<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "-p", "steadfast-cli", "--bin", "steadfast"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cargo build of steadfast-cli: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .next_back()
        .ok_or_else(|| Failure("cargo named no executable".to_owned()))
}
