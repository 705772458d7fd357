//! The load generator: drives each server as a child process over loopback and says how they compare.
//!
//! It measures what requests cost (`load`), what sessions take (`memory`) and whether events wait (`stalls`), or counts
//! instructions and allocations under valgrind. It judges a figure only when asked to, against the marks.

mod contestants;
mod line;
mod load;
mod memory;
mod options;
mod request;
mod response;
mod stalls;
mod verdict;

use bench_kit::counts::{Cost, Count, Folder};
use bench_kit::endpoint::Endpoint;
use bench_kit::figures::{grouped, significant};
use bench_kit::options::print;
use bench_kit::rates::Cell;
use bench_kit::report::Row;
use clap::Parser;
use contestants::{Contestant, columns};
use load::{Load, Until};
use options::{Options, Part};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    bench_kit::options::exit(run(&Options::parse()))
}

/// Whether the marks were reached, if that was asked.
fn run(options: &Options) -> io::Result<bool> {
    let contestants = contestants::contestants(options)?;
    let mut json = Map::new();
    json.insert("smoke".into(), options.running.smoke.into());
    if options.running.callgrind {
        json.insert("counts".into(), counts(&contestants, options)?);
        options.running.write_json(&json.into())?;
        return Ok(true);
    }
    if options.running.one_core {
        bench_kit::cores::stay_on_one()?;
    }
    let mut verdicts = Vec::new();
    for (part, name, measure) in PARTS {
        if options.has(part) {
            json.insert(name.to_owned(), measure(&contestants, options, &mut verdicts)?);
        }
    }
    print(options.running.caution())?;
    options.running.write_json(&json.into())?;
    if !options.marks {
        return Ok(true);
    }
    let lines: Vec<String> = verdicts.iter().map(ToString::to_string).collect();
    print(&format!("\n{}\n", lines.join("\n")))?;
    Ok(verdicts.iter().all(verdict::Verdict::is_reached))
}

type Measure = fn(&[Contestant], &Options, &mut Vec<verdict::Verdict>) -> io::Result<Value>;

const PARTS: [(Part, &str, Measure); 3] =
    [(Part::Cpu, "cpu", cpu), (Part::Memory, "memory", memory), (Part::Stalls, "stalls", stalls)];

/// One connection, and many.
fn loads(options: &Options) -> [(u16, String); 2] {
    let many = options.connections;
    [(1, "add, 1 connection".to_owned()), (many, format!("add, {many} conn."))]
}

fn cpu(all: &[Contestant], options: &Options, verdicts: &mut Vec<verdict::Verdict>) -> io::Result<Value> {
    let some: Vec<&Contestant> = all.iter().filter(|one| one.kind.is_loaded()).collect();
    let columns = columns(&some);
    let cells: Vec<(String, Cell)> = loads(options)
        .into_iter()
        .map(|(connections, label)| Ok((label, load::measure(&some, connections, options)?)))
        .collect::<io::Result<_>>()?;
    let rows: Vec<Row<'_, Cell>> = cells.iter().map(|(label, of)| Row { label: label.clone(), of }).collect();
    print(&format!(
        "Stateless tools/call of revision {}, {}; medians over rounds of the ratio within a round; \
         more is better.\n{}",
        request::MODERN,
        options.running.conditions(),
        columns.rates(&rows, options.running.absolutes)
    ))?;
    if let Some((_, cell)) = cells.last() {
        verdicts.extend(verdict::of_cpu(cell, &some, &columns));
    }
    Ok(cells.iter().map(|(label, cell)| json!({"load": label, "of": columns.cell_json(cell)})).collect())
}

fn memory(all: &[Contestant], options: &Options, verdicts: &mut Vec<verdict::Verdict>) -> io::Result<Value> {
    let some: Vec<&Contestant> = all.iter().filter(|one| one.kind.has_sessions()).collect();
    let bytes = memory::measure(&some, options)?;
    let mut text = format!(
        "\nBytes of memory for an open session of revision {} with its GET stream, over {} of them; less is better\n{}{:<18}",
        request::WITH_SESSIONS,
        options.sessions(),
        columns(&some).head(18),
        ""
    );
    for bytes in &bytes {
        let _ = write!(text, "{:>18}", grouped(*bytes));
    }
    print(&format!("{text}\n"))?;
    verdicts.extend(verdict::of_memory(&bytes, &some));
    Ok(some.iter().zip(bytes).map(|(one, bytes)| json!({"server": one.name(), "bytes": bytes})).collect())
}

fn stalls(all: &[Contestant], options: &Options, verdicts: &mut Vec<verdict::Verdict>) -> io::Result<Value> {
    let some: Vec<&Contestant> = all.iter().filter(|one| one.kind.streams()).collect();
    let streaming = stalls::measure(&some, options)?;
    let mut text = format!(
        "\nTime of a call that streams two events, divided by that of one as slow that does not; 1 is best\n{}{:<18}",
        columns(&some).head(18),
        ""
    );
    for one in &streaming {
        let _ = write!(text, "{:>18}", significant(one.ratio.median));
    }
    let _ = write!(text, "\n{:<18}", "reads of the client");
    for one in &streaming {
        let _ = write!(text, "{:>18}", significant(one.reads));
    }
    print(&format!("{text}\n"))?;
    verdicts.extend(verdict::of_stalls(&streaming, &some));
    Ok(some.iter().zip(streaming).map(|(one, of)| json!({"server": one.name(), "of": of})).collect())
}

fn counts(all: &[Contestant], options: &Options) -> io::Result<Value> {
    const PATIENCE: Duration = Duration::from_secs(300);
    let some: Vec<&Contestant> = all.iter().filter(|one| one.kind.is_loaded()).collect();
    let columns = columns(&some);
    let folder = Folder::new(options.running.keep.as_deref())?;
    let mut cells: Vec<(String, Vec<Cost>)> = Vec::new();
    for (connections, label) in loads(options) {
        let cost = |contestant: &&Contestant| {
            let count = Count {
                folder: &folder,
                label: &format!("{}.{connections}", contestant.name()),
                command_line: &contestant.command_line(),
                requests: options.counted_requests(),
            };
            count.run(|command, requests| {
                let server = Endpoint::start(contestant.name(), command, PATIENCE)?;
                let mut load = Load::connect(&server, connections)?;
                load.drive(&server, Until::Answered(requests))?;
                drop(load);
                server.end()
            })
        };
        cells.push((label, some.iter().map(cost).collect::<io::Result<_>>()?));
    }
    let rows: Vec<Row<'_, [Cost]>> =
        cells.iter().map(|(label, costs)| Row { label: label.clone(), of: costs.as_slice() }).collect();
    let revision = request::MODERN;
    print(&format!("Revision {revision}; user mode only; less is better.\n{}", columns.counts(&rows)))?;
    Ok(cells.iter().map(|(label, costs)| json!({"load": label, "servers": columns.costs_json(costs)})).collect())
}
