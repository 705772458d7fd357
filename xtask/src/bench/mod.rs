//! `cargo xtask bench`: runs the benches of `benches/` and turns what they measured into documents.
//!
//! The benches measure and write JSON; this module starts them, compares within a run, and renders. It never measures
//! anything by itself, and no figure of it is a time: a ratio within one run, a count, or bytes.

mod bench_json;
mod budget;
mod comparison;
mod document;
mod full;
mod growth;
mod json_lines;
mod machine;
mod markdown;
mod marks;
mod measurements;
mod numbers;
mod peers;
mod quick;
mod runner;
mod sections;
mod statistics;
mod svg;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::{Context, Outcome};
use crate::paths;

/// What `cargo xtask bench` is told on the command line.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Count instructions and allocations of steadfast only, and compare with `benches/budget.json`: for CI.
    #[arg(long, conflicts_with_all = ["growth", "render", "out", "rounds", "only", "smoke", "without_peers"])]
    quick: bool,
    /// Write the counts into `benches/budget.json` instead of comparing them with it.
    #[arg(long, requires = "quick")]
    update: bool,
    /// Measure how costs grow with the size of the load, and write `growth.md` and its plots.
    #[arg(long, conflicts_with_all = ["render", "rounds", "only", "without_peers"])]
    growth: bool,
    /// Leave out rmcp.
    #[arg(long, requires = "growth")]
    without_rmcp: bool,
    /// Render the document again from a `performance.json`, without measuring anything.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rounds", "only", "smoke", "without_peers"])]
    render: Option<PathBuf>,
    /// Write into this folder instead of `docs`.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many rounds; each measures every server or client once.
    #[arg(long, default_value_t = DEFAULT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run only these parts and print their tables; nothing is written unless these are all.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    only: Vec<Part>,
    /// Seconds for each part: shows that everything works, and the figures mean nothing.
    #[arg(long, requires = "out")]
    smoke: bool,
    /// Leave out the servers on the Python and TypeScript SDKs.
    #[arg(long)]
    without_peers: bool,
}

const DEFAULT_ROUNDS: u32 = 11;

/// A part of the full bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Servers on stdio: CPU time, wall time, latency, context switches.
    Stdio,
    /// Servers on HTTP: the same, and memory for each session.
    Http,
    /// Clients on stdio and HTTP.
    Client,
    /// Instructions and allocations of a request.
    Counts,
    /// Time to the first answer, and memory.
    Start,
}

impl BenchArgs {
    /// The folder that documents are written to.
    fn folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| paths::root().join("docs"))
    }

    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Runs the benches; false if a figure is worse than it may be.
pub(crate) async fn run(arguments: BenchArgs) -> Outcome<bool> {
    if arguments.quick {
        return quick::run(arguments.update).await;
    }
    if arguments.growth {
        return growth::run(&arguments).await;
    }
    if let Some(file) = &arguments.render {
        return document::write(file, &arguments.folder()).map(|_| true);
    }
    full::run(&arguments).await.map(|()| true)
}

/// Writes a file, and the folders above it where they are missing.
fn write(file: &Path, text: &str) -> Outcome<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).context(|| format!("making {}", folder.display()))?;
    }
    std::fs::write(file, text).context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn parsed(arguments: &[&str]) -> Result<BenchArgs, clap::Error> {
        CommandLine::try_parse_from(std::iter::once("bench").chain(arguments.iter().copied())).map(|line| line.bench)
    }

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_smoke_run_never_overwrites_the_documents() {
        assert!(parsed(&["--smoke"]).is_err());
        assert!(parsed(&["--smoke", "--growth"]).is_err());
        assert!(parsed(&["--smoke", "--out", "try"]).is_ok());
    }

    #[test]
    fn a_budget_is_only_updated_by_a_quick_run() {
        assert!(parsed(&["--update"]).is_err());
        assert!(parsed(&["--quick", "--update"]).is_ok_and(|arguments| arguments.quick && arguments.update));
        assert!(parsed(&["--quick", "--growth"]).is_err());
    }

    #[test]
    fn all_parts_run_unless_some_are_picked() {
        let picked = |arguments: &[&str]| {
            let arguments = parsed(arguments).ok()?;
            Some(Part::value_variants().iter().filter(|part| arguments.has(**part)).count())
        };
        assert_eq!(picked(&[]), Some(5));
        assert_eq!(picked(&["--only", "stdio,start"]), Some(2));
    }
}
