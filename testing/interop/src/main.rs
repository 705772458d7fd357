//! Real MCP clients, as their registries have them, against `steadfast serve`.
//!
//! Every client runs every check that it can, on every transport and in every revision that it speaks. The clients' own
//! scripts, in `python` and `typescript`, only report what they saw; what they should have seen is said here.
#![forbid(unsafe_code)]

mod check;
mod client;
mod cutter;
mod inspector;
mod install;
mod line;
mod process;
mod program;
mod report;
mod room;
mod transport;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::client::Client;
use crate::install::Installed;
use crate::line::Line;
use crate::report::{Report, Verdict};
use crate::transport::Transport;

const USAGE: &str = "\
Runs real MCP clients against `steadfast serve` and prints a table.

Usage: interop [--quick] [--filter TEXT] [--list]

  --quick        only the newest revision of each era
  --filter TEXT  only what has TEXT in its client/transport/revision/check
  --list         print those names, run nothing

The clients are installed from PyPI and npm into target/interop, once. Needs python3 (or what PYTHON names) with venv, and
npm. The command is the one named by STEADFAST_BIN, or is built with cargo.";

/// Whatever went wrong, in words for a person.
type Result<T = (), E = String> = std::result::Result<T, E>;

/// What the command line asks for.
#[derive(Default)]
struct Options {
    filter: String,
    only_list: bool,
    quick: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--filter" => options.filter = arguments.next()?,
                "--list" => options.only_list = true,
                "--quick" => options.quick = true,
                _ => return None,
            }
        }
        Some(options)
    }

    /// What is to be done, in the order of the table.
    fn lines(&self, transports: &[Transport]) -> Vec<Line> {
        let revisions: fn(&str) -> bool = if self.quick { Client::is_newest } else { |_| true };
        let mut lines: Vec<Line> = Line::all(transports, revisions).collect();
        for line in &mut lines {
            let name = line.name();
            line.checks.retain(|check| format!("{name}/{}", check.name).contains(&self.filter));
        }
        lines.retain(|line| !line.checks.is_empty());
        lines
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [help] = arguments.as_slice()
        && ["--help", "-h"].contains(&help.as_str())
    {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(arguments.into_iter()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("interop: {words}");
            ExitCode::FAILURE
        }
    }
}

/// True if everything that should pass did, and something ran.
fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let program = program::path()?;
    let lines = options.lines(&Transport::offered_by(&program)?);
    if options.only_list {
        for line in &lines {
            line.checks.iter().for_each(|check| println!("{}/{}", line.name(), check.name));
        }
        return Ok(true);
    }
    let base = base()?;
    let installed = install::all(|client| lines.iter().any(|line| line.client == client), &base)?;
    println!("installed after {} s", start.elapsed().as_secs());
    let report = Report::new(run_all(lines, &installed, &base, &program));
    println!("\n{report}in {} s", start.elapsed().as_secs());
    Ok(report.is_good())
}

/// Runs lines side by side: each of them waits more than it works.
fn run_all(
    lines: Vec<Line>,
    installed: &BTreeMap<&str, Result<Installed>>,
    base: &Path,
    program: &Path,
) -> Vec<(Line, Vec<Verdict>)> {
    let at_once = std::thread::available_parallelism().map_or(2, |cores| cores.get() + 1);
    let waiting = Mutex::new(lines.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((place, line)) = next() {
                    let verdicts = match installed.get(line.client.name) {
                        Some(Ok(installed)) => line.run(installed, base, program),
                        // Not to be had is not to be passed over: it was not checked.
                        Some(Err(words)) => line.checks.iter().map(|_| Verdict::failed(words.clone())).collect(),
                        None => Vec::new(),
                    };
                    println!("{}", report::summary(&line, &verdicts));
                    done.lock().unwrap_or_else(PoisonError::into_inner).insert(place, (line, verdicts));
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Where clients are installed and rooms are made: beside what cargo builds, so that it goes when that goes.
fn base() -> Result<PathBuf> {
    let this_program = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = this_program.ancestors().nth(2).ok_or("this program is not in a target folder")?;
    Ok(target.join("interop"))
}
