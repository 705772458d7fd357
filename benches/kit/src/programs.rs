//! Programs to measure, built by cargo with the release profile, so that no stale or debug build is measured by accident.

use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds in release mode and says which executables came out of it.
pub fn build(folder: &Path, what: &[&str]) -> io::Result<Vec<PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--message-format=json-render-diagnostics"])
        .args(what)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo build {} failed", what.join(" "))));
    }
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    Ok(messages.filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from)).collect())
}

/// The program of this name among those that were built, otherwise the one beside the bench itself.
pub fn find(name: &str, built: &[PathBuf]) -> io::Result<PathBuf> {
    let program = match built.iter().find(|path| path.ends_with(name)) {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name(name),
    };
    exists(name, program)
}

/// The program itself, or an error that says where it is not.
pub fn exists(name: &str, program: PathBuf) -> io::Result<PathBuf> {
    if program.is_file() {
        return Ok(program);
    }
    let message = format!("{name}: no program at {}", program.display());
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}
