//! Where the command under test is: named by `STEADFAST_BIN`, or built.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;

/// The path of the `steadfast` command.
pub(crate) fn path() -> Result<PathBuf> {
    // Clients start it in fixtures of their own.
    let named = |path| std::path::absolute(PathBuf::from(path)).map_err(|error| format!("STEADFAST_BIN: {error}"));
    std::env::var_os("STEADFAST_BIN").map_or_else(build, named)
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-p", "steadfast-cli", "--bin", "steadfast", "--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo build of steadfast-cli: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut executables = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    executables.next_back().ok_or_else(|| "cargo named no executable".to_owned())
}
