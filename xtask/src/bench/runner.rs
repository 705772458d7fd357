//! Starts a bench in its folder, and reads what it measured.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::failure::{Context, Outcome};
use crate::{cargo, paths, process};

/// The first run of a bench builds it, and what it measures.
const RUNNING: Duration = Duration::from_secs(60 * 60);

/// Runs benches, all in the same way.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The `steadfast` command that the stdio bench measures.
    steadfast: Option<PathBuf>,
    /// Whether runs are too short to mean anything.
    smoke: bool,
}

impl Runner {
    /// For benches that build everything that they measure.
    pub(crate) fn new(smoke: bool) -> Self {
        Self { steadfast: None, smoke }
    }

    /// Also builds the `steadfast` command, with the profile that equals the one of the benches: counts depend on it.
    pub(crate) async fn with_steadfast(smoke: bool) -> Outcome<Self> {
        eprintln!("bench: building steadfast");
        let cargo = cargo::command_with_profiles_of_manifest();
        let steadfast = cargo::build(cargo, "dist", "steadfast-cli", "steadfast").await?;
        Ok(Self { steadfast: Some(steadfast), smoke })
    }

    /// Runs the bench in `benches/FOLDER`. `name` tells its runs apart; the JSON stays in a file of that name.
    pub(crate) async fn run<T: DeserializeOwned>(&self, folder: &str, name: &str, arguments: &[String]) -> Outcome<T> {
        let file = paths::bench().join("results").join(format!("{name}.json"));
        // A file that an earlier run left is never taken for this run's.
        super::write(&file, "")?;
        let mut command = cargo::command_with_profiles_of_manifest();
        command.args(["run", "--release", "--"]).args(arguments);
        if self.smoke {
            command.arg("--smoke");
        }
        command.arg("--json").arg(&file).current_dir(paths::root().join("benches").join(folder));
        if let Some(steadfast) = &self.steadfast {
            command.env("STEADFAST_BIN", steadfast);
        }
        eprintln!("bench: {name}");
        let begun = Instant::now();
        process::run_checked(&mut command, RUNNING).await?;
        eprintln!("bench: {name} took {} s", begun.elapsed().as_secs());
        let text = std::fs::read_to_string(&file).context(|| format!("reading {}", file.display()))?;
        serde_json::from_str(&text).context(|| format!("reading {}", file.display()))
    }
}

/// Words of a command line, as they are passed to a bench.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
