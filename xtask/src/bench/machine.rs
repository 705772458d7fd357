//! Where a run took place: facts about the machine and the versions of what was measured, and never a date.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::markdown::Table;
use crate::failure::{Context, Outcome};
use crate::{paths, process};

const ASKING: Duration = Duration::from_secs(60);

/// What stands where a fact is not known.
const UNKNOWN: &str = "unknown";

/// The facts of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    pub(crate) rustc: String,
    pub(crate) commit: String,
    /// The versions of the other implementations that took part.
    pub(crate) versions: BTreeMap<String, String>,
}

impl Machine {
    /// The facts of this machine. `versions` are those of the other implementations that take part.
    pub(crate) async fn here(versions: BTreeMap<String, String>) -> Outcome<Self> {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism().context(|| "counting cores".to_owned())?.get(),
            cpu: model_name(&processors).unwrap_or(UNKNOWN).to_owned(),
            kernel: if kernel.is_empty() { UNKNOWN.to_owned() } else { kernel.trim().to_owned() },
            rustc: rustc().await?,
            commit: commit().await,
            versions,
        })
    }

    /// The facts as a table. `rounds` is how often each contestant was measured, where there are rounds.
    pub(crate) fn table(&self, rounds: Option<usize>) -> Table {
        let mut table = Table::new(["fact", "value"]);
        let mut push = |name: &str, value: String| table.push(vec![name.to_owned(), value]);
        push("cores", self.cores.to_string());
        push("CPU", self.cpu.clone());
        push("kernel", self.kernel.clone());
        push("compiler", self.rustc.clone());
        push("commit", self.commit.clone());
        for (name, version) in &self.versions {
            push(name, version.clone());
        }
        if let Some(rounds) = rounds {
            push("rounds", rounds.to_string());
        }
        table
    }
}

/// The version of rmcp that the bench in `benches/FOLDER` is built with, under its name.
pub(crate) fn rmcp(folder: &str) -> Option<(String, String)> {
    let lock = paths::root().join("benches").join(folder).join("Cargo.lock");
    let lock = std::fs::read_to_string(lock).ok()?;
    locked_version(&lock, "rmcp").map(|version| ("rmcp".to_owned(), version.to_owned()))
}

/// The compiler in one line, as it names itself.
pub(crate) async fn rustc() -> Outcome<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = process::run_checked(Command::new(rustc).arg("--version").current_dir(paths::root()), ASKING).await?;
    Ok(version.trim().to_owned())
}

/// The commit that is checked out, and whether files differ from it.
async fn commit() -> String {
    let mut command = Command::new("git");
    // Without a lock on the index: someone may be committing.
    command.args(["--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    command.current_dir(paths::root());
    match process::run_checked(&mut command, ASKING).await {
        Ok(commit) => commit.trim().to_owned(),
        // A source archive has no commit.
        Err(_) => UNKNOWN.to_owned(),
    }
}

fn model_name(processors: &str) -> Option<&str> {
    let line = processors.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

/// The version of a package in the text of a `Cargo.lock`.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_once() {
        let processors = "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(model_name(processors), Some("Some CPU @ 2.00GHz"));
        assert_eq!(model_name(""), None);
    }

    #[test]
    fn a_locked_version_is_that_of_the_package_of_that_name() {
        let lock = "name = \"rmcp-macros\"\nversion = \"1.0.0\"\n\nname = \"rmcp\"\nversion = \"3.8.0\"\n";
        assert_eq!(locked_version(lock, "rmcp"), Some("3.8.0"));
        assert_eq!(locked_version(lock, "mcp"), None);
    }
}
