//! The load generator: drives each server as a child process over pipes and says how they compare.
//!
//! Either it measures rates (`rates`), or it counts instructions and allocations under valgrind (`counts`); `report`
//! says what came out. It never judges a figure by itself: only ratios within one run mean anything.

mod child;
mod contestants;
mod counts;
mod inbox;
mod options;
mod rates;
mod report;
mod workload;

use clap::Parser;
use options::Options;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the mark, if there is one, was reached.
fn run(options: &Options) -> io::Result<bool> {
    let contestants = contestants::contestants(options)?;
    let columns = report::columns(&contestants);
    if options.callgrind {
        let cells = counts::count(&contestants, options)?;
        print(&report::counts_table(&cells, &columns, options))?;
        write_json(options, &report::counts_json(&cells, &columns, options))?;
        return Ok(true);
    }
    if options.one_core {
        bench_kit::cores::stay_on_one()?;
    }
    let cells = rates::measure(&contestants, options)?;
    print(&report::rates_table(&cells, &columns, options))?;
    write_json(options, &report::rates_json(&cells, &columns, options))?;
    let Some(mark) = options.mark else {
        return Ok(true);
    };
    let (lines, reached) = report::marks(&cells, &contestants, &columns, mark);
    print(&format!("\n{}\n", lines.join("\n")))?;
    Ok(reached)
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

fn write_json(options: &Options, report: &Value) -> io::Result<()> {
    match &options.json {
        Some(file) => std::fs::write(file, format!("{report:#}\n")),
        None => Ok(()),
    }
}
