//! The command line.

use crate::contestants::Kind;
use bench_kit::options::Running;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Measures a server on Streamable HTTP against rmcp and against a bare axum endpoint.
///
/// Everything is a ratio within one run, or a count. See README.md beside the source for how to read it.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) running: Running,

    /// Who takes part, where it can.
    #[arg(long, value_delimiter = ',', default_value = "steadfast,steadfast-axum,rmcp,rmcp-nagle,bare")]
    pub(crate) servers: Vec<Kind>,

    /// The `steadfast-server` of this bench at another commit, to be measured beside the others: before and after in one run.
    #[arg(long, value_name = "PATH")]
    pub(crate) before: Option<PathBuf>,

    /// What is measured.
    #[arg(long, value_delimiter = ',', default_value = "cpu,memory,stalls")]
    pub(crate) parts: Vec<Part>,

    /// How many connections there are; each has one call in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,

    /// How many sessions are opened, each with its GET stream, to see what memory they take.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=8000))]
    pub(crate) sessions: u32,

    /// Fails unless the marks are reached: half of rmcp's CPU time per request, 30 KB for a session, no stall.
    #[arg(long, conflicts_with = "callgrind")]
    pub(crate) marks: bool,
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
    pub(crate) fn sessions(&self) -> u32 {
        if self.running.smoke { 100 } else { self.sessions }
    }

    /// How many calls of each kind show whether events wait.
    pub(crate) fn streamed_calls(&self) -> usize {
        if self.running.smoke { 8 } else { 48 }
    }

    pub(crate) fn counted_requests(&self) -> (u64, u64) {
        if self.running.smoke { (128, 256) } else { (512, 2560) }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}
