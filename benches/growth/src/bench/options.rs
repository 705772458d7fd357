//! The command line.

use crate::dimension::Dimension;
use clap::{Parser, ValueEnum};
use serde_json::Value;
use std::io;
use std::path::PathBuf;

/// Measures how the cost of a server grows with n, beside rmcp.
///
/// Costs are the server's own CPU time, or its resident memory. See README.md beside the source for how to read them.
#[derive(Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Two small n for each dimension, seconds in all: shows that everything works, and its figures mean little.
    #[arg(long)]
    pub(crate) smoke: bool,

    /// Measures steadfast only.
    #[arg(long)]
    pub(crate) without_rmcp: bool,

    /// What is measured; everything by default.
    #[arg(long, value_delimiter = ',', value_name = "DIMENSIONS")]
    dimensions: Vec<Dimension>,

    /// Lets the bench and the servers use all cores. By default they stay on one, since waking another core costs more
    /// than a small call does, and how often that happens is up to the rest of the machine.
    #[arg(long)]
    pub(crate) any_core: bool,

    /// Writes every figure of the run to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Takes the release binaries that are there, instead of building them.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Options {
    /// Those that were asked for, in the order of the report.
    pub(crate) fn dimensions(&self) -> Vec<Dimension> {
        let all = Dimension::value_variants().iter().copied();
        all.filter(|one| self.dimensions.is_empty() || self.dimensions.contains(one)).collect()
    }

    /// Writes the figures to the file that was named, if one was.
    pub(crate) fn write_json(&self, report: &Value) -> io::Result<()> {
        match &self.json {
            Some(file) => std::fs::write(file, format!("{report:#}\n")),
            None => Ok(()),
        }
    }
}
