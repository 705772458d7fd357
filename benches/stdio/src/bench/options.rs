//! The command line.

use crate::contestants::{Kind, Peer};
use crate::workload::Tool;
use bench_kit::era::Era;
use bench_kit::options::Running;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Measures `steadfast serve` on stdio against rmcp and against a server that only moves lines.
///
/// Everything is a ratio within one run. See README.md beside the source for how to read it.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) running: Running,

    /// The steadfast binary; otherwise the environment variable STEADFAST_BIN, otherwise one is built.
    #[arg(long, value_name = "PATH")]
    pub(crate) steadfast: Option<PathBuf>,

    /// Measures the others only.
    #[arg(long, conflicts_with_all = ["steadfast", "mark"])]
    pub(crate) without_steadfast: bool,

    /// Who takes part.
    #[arg(long, value_delimiter = ',', default_value = "steadfast,rmcp-pipes,rmcp-stdio,bare-tokio,bare")]
    pub(crate) servers: Vec<Kind>,

    /// A server of another SDK that takes part too, by its name and the command that starts it.
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    pub(crate) peers: Vec<Peer>,

    /// What is measured.
    #[arg(long, value_delimiter = ',', default_value = "rates")]
    pub(crate) parts: Vec<Part>,

    /// What they are asked.
    #[arg(long, value_delimiter = ',', default_value = "echo,add,blob")]
    pub(crate) tools: Vec<Tool>,

    /// 2025: the handshake of 2025-11-25. 2026: the stateless form of 2026-07-28.
    #[arg(long, default_value = "2025")]
    pub(crate) era: Era,

    /// How many calls are in flight when pipelined. All of them have to fit into a pipe.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) window: u8,

    /// Fails unless steadfast does this many times rmcp's pipelined requests per CPU second, for each tool.
    #[arg(long, value_name = "RATIO", conflicts_with = "callgrind")]
    pub(crate) mark: Option<f64>,
}

/// A thing to measure.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Requests per CPU second and per second, context switches and latencies.
    Rates,
    /// How long a server takes from its start to its first answer, and what memory it has then.
    Start,
    /// What memory a call in flight takes, and what is kept of it after the call was cancelled.
    Memory,
}

impl Options {
    /// How many calls are in flight at once to see what memory they take.
    pub(crate) fn calls_in_flight(&self) -> u64 {
        if self.running.smoke { 500 } else { 10_000 }
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds = self.servers.clone();
        kinds.dedup();
        kinds.retain(|kind| !(self.without_steadfast && *kind == Kind::Steadfast));
        kinds
    }
}
