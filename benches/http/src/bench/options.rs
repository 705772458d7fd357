//! The command line.

use crate::contestants::Kind;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Measures a server on Streamable HTTP against rmcp and against a bare axum endpoint.
///
/// Everything is a ratio within one run, or a count. See README.md beside the source for how to read it.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Takes the release binaries that are there, instead of building them.
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Who takes part, where it can.
    #[arg(long, value_delimiter = ',', default_value = "steadfast,steadfast-axum,rmcp,rmcp-nagle,bare")]
    pub(crate) servers: Vec<Kind>,

    /// What is measured.
    #[arg(long, value_delimiter = ',', default_value = "cpu,memory,stalls")]
    pub(crate) parts: Vec<Part>,

    /// How many rounds; each goes through all servers once.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,

    /// How long each server is driven in a round, in milliseconds.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) slice_ms: u64,

    /// How many connections there are; each has one call in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,

    /// How many sessions are opened, each with its GET stream, to see what memory they take.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=8000))]
    pub(crate) sessions: u32,

    /// Keeps client and servers on one core: steadier figures, since waking another core costs more than a small
    /// request does, above all in a virtual machine, and how often that happens is up to the rest of the machine.
    #[arg(long)]
    pub(crate) one_core: bool,

    /// Seconds in all: shows that everything works, and its figures mean little.
    #[arg(long)]
    pub(crate) smoke: bool,

    /// Counts instructions and allocations per request under valgrind, instead of everything else.
    #[arg(long)]
    pub(crate) callgrind: bool,

    /// Keeps callgrind's files in this folder, for callgrind_annotate.
    #[arg(long, value_name = "FOLDER", requires = "callgrind")]
    pub(crate) keep: Option<PathBuf>,

    /// Also prints the time per request. It says something about this machine in this minute, and is no claim.
    #[arg(long)]
    pub(crate) absolutes: bool,

    /// Fails unless the marks are reached: half of rmcp's CPU time per request, 30 KB for a session, no stall.
    #[arg(long, conflicts_with = "callgrind")]
    pub(crate) marks: bool,

    /// Writes every figure of the run to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A thing to measure.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Requests per CPU second under load.
    Cpu,
    /// What an open session takes.
    Memory,
    /// Whether events wait for acknowledgements.
    Stalls,
}

impl Options {
    pub(crate) fn rounds(&self) -> u32 {
        if self.smoke { 2 } else { self.rounds }
    }

    pub(crate) fn slice(&self) -> Duration {
        Duration::from_millis(if self.smoke { 30 } else { self.slice_ms })
    }

    pub(crate) fn sessions(&self) -> u32 {
        if self.smoke { 100 } else { self.sessions }
    }

    /// How many calls of each kind show whether events wait.
    pub(crate) fn streamed_calls(&self) -> usize {
        if self.smoke { 8 } else { 48 }
    }

    pub(crate) fn counted_requests(&self) -> (u64, u64) {
        if self.smoke { (128, 256) } else { (512, 2560) }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}
