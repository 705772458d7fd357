//! The command line.

use crate::contestants::Kind;
use crate::workload::{Era, Tool};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Measures `steadfast serve` on stdio against rmcp and against a server that only moves lines.
///
/// Everything is a ratio within one run. See README.md beside the source for how to read it.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// The steadfast binary; otherwise the environment variable STEADFAST_BIN, otherwise one is built.
    #[arg(long, value_name = "PATH")]
    pub(crate) steadfast: Option<PathBuf>,

    /// Measures the others only.
    #[arg(long, conflicts_with_all = ["steadfast", "mark"])]
    pub(crate) without_steadfast: bool,

    /// Takes the release binaries that are there, instead of building them.
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Who takes part.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "steadfast,rmcp-pipes,rmcp-stdio,bare"
    )]
    pub(crate) servers: Vec<Kind>,

    /// What they are asked.
    #[arg(long, value_delimiter = ',', default_value = "echo,add,blob")]
    pub(crate) tools: Vec<Tool>,

    /// 2025: the handshake of 2025-11-25. 2026: the stateless form of 2026-07-28.
    #[arg(long, default_value = "2025")]
    pub(crate) era: Era,

    /// How many rounds; each goes through all servers once.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,

    /// How long each server is driven in a round, in milliseconds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) slice_ms: u64,

    /// How many calls are in flight when pipelined. All of them have to fit into a pipe.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) window: u8,

    /// Keeps client and servers on one core: steadier figures, since waking another core costs more than a small
    /// request does, above all in a virtual machine, and how often that happens is up to the rest of the machine.
    #[arg(long)]
    pub(crate) one_core: bool,

    /// A few seconds in all: shows that everything works, and its figures mean little.
    #[arg(long)]
    pub(crate) smoke: bool,

    /// Counts instructions and allocations per request under valgrind, instead of measuring time.
    #[arg(long)]
    pub(crate) callgrind: bool,

    /// Keeps callgrind's files in this folder, for callgrind_annotate.
    #[arg(long, value_name = "FOLDER", requires = "callgrind")]
    pub(crate) keep: Option<PathBuf>,

    /// Also prints the time per request. It says something about this machine in this minute, and is no claim.
    #[arg(long)]
    pub(crate) absolutes: bool,

    /// Fails unless steadfast does this many times rmcp's pipelined requests per CPU second, for each tool.
    #[arg(long, value_name = "RATIO", conflicts_with = "callgrind")]
    pub(crate) mark: Option<f64>,

    /// Writes every figure of the run to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn rounds(&self) -> u32 {
        if self.smoke { 2 } else { self.rounds }
    }

    pub(crate) fn slice(&self) -> Duration {
        Duration::from_millis(if self.smoke { 30 } else { self.slice_ms })
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.servers.clone();
        kinds.dedup();
        kinds.retain(|kind| !(self.without_steadfast && *kind == Kind::Steadfast));
        kinds
    }
}
