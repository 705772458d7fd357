//! The command line.

use crate::contestants::Kind;
use bench_kit::era::Era;
use bench_kit::options::Running;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Measures the client against rmcp's, on stdio and on HTTP.
///
/// Everything is a ratio within one run, or a count. See README.md beside the source for how to read it.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) running: Running,

    /// Who takes part, where it can.
    #[arg(long, value_delimiter = ',', default_value = "steadfast,rmcp,rmcp-pooled")]
    pub(crate) clients: Vec<Kind>,

    /// The `steadfast-client` of this bench at another commit, to be measured beside the others: before and after in one run.
    #[arg(long, value_name = "PATH")]
    pub(crate) before: Option<PathBuf>,

    /// By which way they call.
    #[arg(long, value_delimiter = ',', default_value = "stdio,http")]
    pub(crate) transports: Vec<Transport>,

    /// 2025: the handshake of 2025-11-25. 2026: the stateless form of 2026-07-28.
    #[arg(long, value_delimiter = ',', default_value = "2025,2026")]
    pub(crate) eras: Vec<Era>,

    /// How many calls are in flight when pipelined.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) window: u16,
}

/// The way to the server.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A child process of the client.
    Stdio,
    /// Streamable HTTP, over loopback.
    Http,
}

impl Transport {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}
