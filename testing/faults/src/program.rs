//! Where the programs under test are: named by `STEADFAST_BIN` and `SUBJECT_BIN`, or built once, both by one cargo.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::failure::{Failure, Verdict, ensure};

static PROGRAMS: OnceLock<Result<Programs, String>> = OnceLock::new();

/// The programs under test.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The `steadfast` command: the server.
    pub(crate) steadfast: PathBuf,
    /// The client.
    pub(crate) subject: PathBuf,
}

/// Where they are.
pub(crate) fn programs() -> Verdict<Programs> {
    PROGRAMS.get_or_init(|| find().map_err(|failure| failure.0)).clone().map_err(Failure)
}

fn find() -> Verdict<Programs> {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let (steadfast, subject) = (named("STEADFAST_BIN"), named("SUBJECT_BIN"));
    // If both were built together, they are in the same folder.
    let beside = || steadfast.as_ref().map(|path| path.with_file_name("subject")).filter(|path| path.exists());
    match (&steadfast, subject.or_else(beside)) {
        (Some(steadfast), Some(subject)) => Ok(Programs { steadfast: steadfast.clone(), subject }),
        (steadfast, subject) => {
            let built = build()?;
            Ok(Programs {
                steadfast: steadfast.clone().unwrap_or(built.steadfast),
                subject: subject.unwrap_or(built.subject),
            })
        }
    }
}

/// Builds them as users do and takes their paths from what cargo says.
fn build() -> Verdict<Programs> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "-p", "steadfast-cli", "-p", "subject", "--bin", "steadfast", "--bin", "subject"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cargo build of steadfast-cli and subject: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let executable = |name: &str| {
        let named = messages.iter().filter(|message| message["target"]["name"] == name);
        let path = named.filter_map(|message| message["executable"].as_str()).next_back();
        path.map(PathBuf::from).ok_or_else(|| Failure(format!("cargo named no executable of {name}")))
    };
    Ok(Programs { steadfast: executable("steadfast")?, subject: executable("subject")? })
}
