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
mod watchdog;
mod workload;

use clap::Parser;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
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
    if options.callgrind {
        let cells = counts::count(&contestants, options)?;
        print(&report::counts_table(&cells, &contestants, options))?;
        write_json(options, &report::counts_json(&cells, &contestants, options))?;
        return Ok(true);
    }
    if options.one_core {
        stay_on_one_core()?;
    }
    let cells = rates::measure(&contestants, options)?;
    print(&report::rates_table(&cells, &contestants, options))?;
    write_json(options, &report::rates_json(&cells, &contestants, options))?;
    let Some(mark) = options.mark else {
        return Ok(true);
    };
    let (lines, reached) = report::marks(&cells, &contestants, mark);
    print(&format!("\n{}\n", lines.join("\n")))?;
    Ok(reached)
}

/// Children inherit it.
fn stay_on_one_core() -> io::Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let mut one = CpuSet::new();
    let last = (0..CpuSet::count())
        .rev()
        .find(|core| allowed.is_set(*core).unwrap_or(false));
    one.set(last.unwrap_or(0))?;
    Ok(sched_setaffinity(this, &one)?)
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
