//! Cargo, as this command calls it: the same cargo that started it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::failure::{Failure, Outcome};
use crate::{paths, process};

const BUILDING: Duration = Duration::from_secs(60 * 60);

/// Cargo without arguments.
pub(crate) fn command() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Cargo without arguments, whose profiles are those of the manifest: variables that change a profile, as CI sets them
/// to build faster, are not passed on. For programs that are measured.
pub(crate) fn command_with_profiles_of_manifest() -> Command {
    let mut command = command();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PROFILE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Builds a program of this workspace with a profile, and returns where it is.
pub(crate) async fn build(mut cargo: Command, profile: &str, package: &str, binary: &str) -> Outcome<PathBuf> {
    cargo.args(["build", "--profile", profile, "--package", package, "--bin", binary]);
    cargo.args(["--message-format", "json-render-diagnostics"]).current_dir(paths::root());
    let text = process::run_checked(&mut cargo, BUILDING).await?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    executables.next_back().ok_or_else(|| Failure::new("cargo named no executable"))
}
