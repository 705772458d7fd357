//! What can be said of any run on the command line, and what follows from it.

use clap::Args;
use serde_json::Value;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The options that every bench has; each flattens them into its own.
#[derive(Args)]
pub struct Running {
    /// Takes the release binaries that are there, instead of building them.
    #[arg(long)]
    pub no_build: bool,

    /// How many rounds; each goes through all contestants once.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long each contestant is measured in a round, in milliseconds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    slice_ms: u64,

    /// Keeps clients and servers on one core: steadier figures, since waking another core costs more than a small
    /// request does, above all in a virtual machine, and how often that happens is up to the rest of the machine.
    #[arg(long)]
    pub one_core: bool,

    /// Seconds in all: shows that everything works, and its figures mean little.
    #[arg(long)]
    pub smoke: bool,

    /// Counts instructions and allocations per request under valgrind, instead of measuring anything else.
    #[arg(long)]
    pub callgrind: bool,

    /// Keeps callgrind's files in this folder, for callgrind_annotate.
    #[arg(long, value_name = "FOLDER", requires = "callgrind")]
    pub keep: Option<PathBuf>,

    /// Also prints the time per request. It says something about this machine in this minute, and is no claim.
    #[arg(long)]
    pub absolutes: bool,

    /// Writes every figure of the run to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Running {
    /// How many rounds there are.
    pub fn rounds(&self) -> u32 {
        if self.smoke { 2 } else { self.rounds }
    }

    /// How long each contestant is measured in a round.
    pub fn slice(&self) -> Duration {
        Duration::from_millis(if self.smoke { 30 } else { self.slice_ms })
    }

    /// How figures of this run came about, for the head of a table.
    pub fn conditions(&self) -> String {
        let core = if self.one_core { "one core" } else { "any core" };
        format!("{} rounds of {} ms, {core}", self.rounds(), self.slice().as_millis())
    }

    /// What has to be said below the figures of this run.
    pub fn caution(&self) -> &'static str {
        if self.smoke { "\nA smoke run: far too short to conclude anything from.\n" } else { "" }
    }

    /// Writes the figures to the file that was named, if one was.
    pub fn write_json(&self, report: &Value) -> io::Result<()> {
        match &self.json {
            Some(file) => std::fs::write(file, format!("{report:#}\n")),
            None => Ok(()),
        }
    }
}

/// Says something to the user.
pub fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// How a bench ends: well if all that was demanded of the figures was reached.
pub fn exit(outcome: io::Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
