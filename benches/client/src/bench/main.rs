//! Has each client call the same server, and says how they compare.
//!
//! Either it measures rates, or it counts instructions and allocations under valgrind. What counts is the client's own
//! work: the server runs in a process of its own and is not in any figure. It never judges a figure by itself.

mod client;
mod contestants;
mod options;
mod server;

use bench_client::{Order, Until};
use bench_kit::counts::{Cost, Count, Folder};
use bench_kit::era::Era;
use bench_kit::mode::Mode;
use bench_kit::options::print;
use bench_kit::rates::{Cell, Taken};
use bench_kit::report::Row;
use clap::Parser;
use client::Client;
use contestants::{Contestants, Kind};
use options::{Options, Transport};
use serde_json::{Value, json};
use server::Server;
use std::io;
use std::process::{Command, ExitCode};
use std::time::Duration;

fn main() -> ExitCode {
    bench_kit::options::exit(run(&Options::parse()).map(|()| true))
}

fn run(options: &Options) -> io::Result<()> {
    let contestants = Contestants::find(options)?;
    let (kind, of_transport): (&str, Measure) = if options.running.callgrind {
        ("counts", counts)
    } else {
        if options.running.one_core {
            bench_kit::cores::stay_on_one()?;
        }
        ("rates", rates)
    };
    let mut transports = Vec::new();
    for &transport in &options.transports {
        transports
            .push(json!({"transport": transport.name(), "cells": of_transport(&contestants, transport, options)?}));
    }
    print(options.running.caution())?;
    options.running.write_json(&json!({
        "kind": kind,
        "rounds": options.running.rounds(),
        "slice_milliseconds": options.running.slice().as_secs_f64() * 1e3,
        "window": options.window,
        "one_core": options.running.one_core,
        "smoke": options.running.smoke,
        "transports": transports,
    }))
}

type Measure = fn(&Contestants, Transport, &Options) -> io::Result<Value>;

/// One revision, in one way: a row of a table.
#[derive(Clone, Copy)]
struct Load {
    era: Era,
    mode: Mode,
}

impl Load {
    fn all(options: &Options) -> impl Iterator<Item = Self> {
        options.eras.iter().flat_map(|&era| Mode::ALL.map(|mode| Self { era, mode }))
    }

    fn label(self) -> String {
        format!("{} {}", self.era.name(), self.mode.name())
    }

    fn order(self, until: Until, options: &Options) -> Order {
        Order { window: self.mode.window(options.window.into()), until }
    }

    fn json(self, mut of: Value) -> Value {
        of["revision"] = json!(self.era.revision());
        of["mode"] = json!(self.mode);
        of
    }
}

fn rates(contestants: &Contestants, transport: Transport, options: &Options) -> io::Result<Value> {
    let kinds = contestants.on(transport);
    let mut cells: Vec<(Load, Cell)> = Vec::new();
    for load in Load::all(options) {
        let drive = |turn: usize| drive(contestants, kinds[turn], transport, load, options);
        cells.push((load, Cell::measure(kinds.len(), options.running.rounds(), drive)?));
    }
    let columns = contestants::columns(&kinds);
    let rows: Vec<Row<'_, Cell>> = cells.iter().map(|(load, of)| Row { label: load.label(), of }).collect();
    print(&format!(
        "\nClients on {}, {}, window {}; medians over rounds of the ratio within a round; more is better.\n\
         x rmcp: times the rate of rmcp's faster form in that row.\n{}",
        transport.name(),
        options.running.conditions(),
        options.window,
        columns.rates(&rows, options.running.absolutes),
    ))?;
    Ok(cells.iter().map(|(load, cell)| load.json(columns.cell_json(cell))).collect())
}

/// One client once, in a new process with a new server: where a process happens to lie in memory is worth a tenth and more.
fn drive(
    contestants: &Contestants,
    kind: Kind,
    transport: Transport,
    load: Load,
    options: &Options,
) -> io::Result<Taken> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let slice = options.running.slice();
    let server = Server::start(contestants, transport, load.era, PATIENCE)?;
    let line = contestants.command_line(kind, load.era, &server);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    let mut client = Client::connect(kind.name(), &mut command, PATIENCE + slice)?;
    client.drive(load.order(Until::Elapsed(slice / 3), options))?;
    let taken = client.drive(load.order(Until::Elapsed(slice), options))?;
    client.end()?;
    server.end()?;
    Ok(taken)
}

fn counts(contestants: &Contestants, transport: Transport, options: &Options) -> io::Result<Value> {
    let kinds = contestants.on(transport);
    let folder = Folder::new(options.running.keep.as_deref())?;
    let mut cells: Vec<(Load, Vec<Cost>)> = Vec::new();
    for load in Load::all(options) {
        let cost = |&kind: &Kind| count(contestants, kind, transport, load, options, &folder);
        cells.push((load, kinds.iter().map(cost).collect::<io::Result<_>>()?));
    }
    let columns = contestants::columns(&kinds);
    let rows: Vec<Row<'_, [Cost]>> =
        cells.iter().map(|(load, costs)| Row { label: load.label(), of: costs.as_slice() }).collect();
    print(&format!(
        "\nClients on {}, window {}; user mode only; less is better.\n{}",
        transport.name(),
        options.window,
        columns.counts(&rows)
    ))?;
    Ok(cells.iter().map(|(load, costs)| load.json(json!({"clients": columns.costs_json(costs)}))).collect())
}

fn count(
    contestants: &Contestants,
    kind: Kind,
    transport: Transport,
    load: Load,
    options: &Options,
    folder: &Folder,
) -> io::Result<Cost> {
    const PATIENCE: Duration = Duration::from_secs(300);
    // One server for all of them: it runs as it is, and is not counted.
    let server = Server::start(contestants, transport, load.era, PATIENCE)?;
    let count = Count {
        folder,
        label: &format!("{}.{}.{}", kind.name(), transport.name(), load.label()),
        command_line: &contestants.command_line(kind, load.era, &server),
        requests: if options.running.smoke { (64, 128) } else { (512, 2560) },
    };
    let cost = count.run(|command, calls| {
        let mut client = Client::connect(kind.name(), command, PATIENCE)?;
        client.drive(load.order(Until::Answered(calls), options))?;
        client.end()
    })?;
    server.end()?;
    Ok(cost)
}
