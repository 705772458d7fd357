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
mod start;
mod workload;

use bench_kit::options::print;
use clap::Parser;
use options::{Options, Part};
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    bench_kit::options::exit(run(&Options::parse()))
}

/// Whether the mark, if there is one, was reached.
fn run(options: &Options) -> io::Result<bool> {
    let running = &options.running;
    let contestants = contestants::contestants(options)?;
    let columns = report::columns(&contestants);
    if running.callgrind {
        let cells = counts::count(&contestants, options)?;
        print(&report::counts_table(&cells, &columns, options))?;
        running.write_json(&report::counts_json(&cells, &columns, options))?;
        return Ok(true);
    }
    if running.one_core {
        bench_kit::cores::stay_on_one()?;
    }
    if options.has(Part::Start) || options.has(Part::Memory) {
        let (table, json) = start::measure(&contestants, options)?;
        print(&table)?;
        running.write_json(&json)?;
        return Ok(true);
    }
    let cells = rates::measure(&contestants, options)?;
    print(&report::rates_table(&cells, &columns, options))?;
    running.write_json(&report::rates_json(&cells, &columns, options))?;
    let Some(mark) = options.mark else {
        return Ok(true);
    };
    let (lines, reached) = report::marks(&cells, &contestants, &columns, mark);
    print(&format!("\n{}\n", lines.join("\n")))?;
    Ok(reached)
}
