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
mod stalls;
mod verdict;

use bench_kit::counts::{Cost, Count, Folder};
use bench_kit::endpoint::Endpoint;
use bench_kit::figures::{grouped, significant};
use bench_kit::options::print;
use bench_kit::report::Row;
use clap::Parser;
use contestants::{Contestant, columns};
use load::{Load, LoadKind, Until};
use options::{Options, Part};
use request::Tool;
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

/// One connection and many, stateless and in sessions; and an answer with much text.
fn loads(options: &Options) -> [LoadKind; 5] {
    let many = options.connections;
    let load = |sessions, tool, connections| LoadKind { tool, sessions, connections };
    [
        load(false, Tool::Add, 1),
        load(false, Tool::Add, many),
        load(true, Tool::Add, 1),
        load(true, Tool::Add, many),
        load(false, Tool::Blob, 1),
    ]
}

fn cpu(all: &[Contestant], options: &Options, verdicts: &mut Vec<verdict::Verdict>) -> io::Result<Value> {
    print(&format!(
        "tools/call, stateless of revision {} and in sessions of {}, {}; medians over rounds of the ratio within a round; \
         more is better.\n",
        request::MODERN,
        request::WITH_SESSIONS,
        options.running.conditions(),
    ))?;
    let mut values = Vec::new();
    for kind in loads(options) {
        let some: Vec<&Contestant> = all.iter().filter(|one| kind.is_for(one)).collect();
        let columns = columns(&some);
        let cell = load::measure(&some, kind, options)?;
        let label = kind.label();
        let rows = [Row { label: String::new(), of: &cell }];
        print(&format!("\n== {label}\n{}", columns.rates(&rows, options.running.absolutes)))?;
        if !kind.sessions && kind.connections == options.connections {
            verdicts.extend(verdict::of_cpu(&cell, &some, &columns));
        }
        values.push(json!({"load": label, "of": columns.cell_json(&cell)}));
    }
    Ok(values.into())
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
    let folder = Folder::new(options.running.keep.as_deref())?;
    print("User mode only; less is better.\n")?;
    let mut values = Vec::new();
    for kind in loads(options) {
        let some: Vec<&Contestant> = all.iter().filter(|one| kind.is_for(one)).collect();
        let columns = columns(&some);
        let label = kind.label();
        let cost = |contestant: &&Contestant| {
            let count = Count {
                folder: &folder,
                label: &format!("{}.{}", contestant.name(), label.replace([',', ' '], "-")),
                command_line: &contestant.command_line(),
                requests: options.counted_requests(),
            };
            count.run(|command, requests| {
                let server = Endpoint::start(contestant.name(), command, PATIENCE)?;
                let mut load = Load::connect(&server, kind)?;
                load.drive(&server, Until::Answered(requests))?;
                drop(load);
                server.end()
            })
        };
        let costs = some.iter().map(cost).collect::<io::Result<Vec<Cost>>>()?;
        let rows = [Row { label: String::new(), of: costs.as_slice() }];
        print(&format!("\n== {label}\n{}", columns.counts(&rows)))?;
        values.push(json!({"load": label, "servers": columns.costs_json(&costs)}));
    }
    Ok(values.into())
}
