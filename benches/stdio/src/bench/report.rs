//! What a run says: tables for people, JSON for programs.

use crate::contestants::{Contestant, Kind};
use crate::counts;
use crate::options::Options;
use crate::rates;
use crate::workload::Tool;
use bench_kit::counts::Cost;
use bench_kit::figures::significant;
use bench_kit::mode::Mode;
use bench_kit::rates::{Cell, Metric};
use bench_kit::report::{Columns, Row};
use serde_json::{Value, json};

pub(crate) fn columns(contestants: &[Contestant]) -> Columns {
    let place = |wanted: Kind| contestants.iter().position(|one| one.is(wanted));
    let rmcp = contestants.iter().enumerate().filter(|(_, one)| one.is_rmcp());
    Columns {
        names: contestants.iter().map(|one| one.name().to_owned()).collect(),
        rmcp: rmcp.map(|(place, _)| place).collect(),
        bare: place(Kind::BareTokio).or_else(|| place(Kind::Bare)),
        role: "server",
    }
}

fn label(tool: Tool, mode: Mode) -> String {
    format!("{:<6}{}", tool.name(), mode.name())
}

pub(crate) fn rates_table(cells: &[rates::Cell], columns: &Columns, options: &Options) -> String {
    let mut text = format!(
        "Revision {}, {}, window {}; medians over rounds of the ratio within a round; more is better.\n\
         x rmcp: times the rate of rmcp's faster form in that row. x bare: times the rate of the limit, on tokio if it takes part.\n",
        options.era.revision(),
        options.running.conditions(),
        options.window,
    );
    let row = |cell: &'_ rates::Cell| label(cell.tool, cell.mode);
    let rows: Vec<Row<'_, Cell>> = cells.iter().map(|cell| Row { label: row(cell), of: &cell.rates }).collect();
    text.push_str(&columns.rates(&rows, options.running.absolutes));
    text.push_str(options.running.caution());
    text
}

pub(crate) fn counts_table(cells: &[counts::Cell], columns: &Columns, options: &Options) -> String {
    let rows: Vec<Row<'_, [Cost]>> =
        cells.iter().map(|cell| Row { label: label(cell.tool, cell.mode), of: &cell.costs[..] }).collect();
    format!(
        "Revision {}, window {}; user mode only; less is better.\n{}",
        options.era.revision(),
        options.window,
        columns.counts(&rows)
    )
}

/// Which pipelined rows miss the mark, each as a sentence; and the sentences for those that reach it.
pub(crate) fn marks(
    cells: &[rates::Cell],
    contestants: &[Contestant],
    columns: &Columns,
    mark: f64,
) -> (Vec<String>, bool) {
    let steadfast = contestants.iter().position(|one| one.is(Kind::Steadfast));
    let mut reached = true;
    let mut lines = Vec::new();
    for cell in cells.iter().filter(|cell| cell.mode == Mode::Pipelined) {
        let rmcp = columns.best_rmcp(&cell.rates, Metric::Cpu);
        let (Some(steadfast), Some(rmcp)) = (steadfast, rmcp) else {
            return (vec!["the mark needs both steadfast and rmcp".to_owned()], false);
        };
        let ratio = cell.rates.ratio(Metric::Cpu, steadfast, rmcp).median;
        let verdict = if ratio >= mark { "reached" } else { "MISSED" };
        reached &= ratio >= mark;
        lines.push(format!(
            "{} pipelined: {} times {} per CPU second, mark {mark}: {verdict}",
            cell.tool.name(),
            significant(ratio),
            columns.names[rmcp],
        ));
    }
    (lines, reached)
}

pub(crate) fn rates_json(cells: &[rates::Cell], columns: &Columns, options: &Options) -> Value {
    let cells: Vec<Value> = cells
        .iter()
        .map(|cell| {
            let mut value = columns.cell_json(&cell.rates);
            value["tool"] = json!(cell.tool);
            value["mode"] = json!(cell.mode);
            value
        })
        .collect();
    json!({
        "kind": "rates",
        "revision": options.era.revision(),
        "rounds": options.running.rounds(),
        "slice_milliseconds": options.running.slice().as_secs_f64() * 1e3,
        "window": options.window,
        "one_core": options.running.one_core,
        "smoke": options.running.smoke,
        "cells": cells,
    })
}

pub(crate) fn counts_json(cells: &[counts::Cell], columns: &Columns, options: &Options) -> Value {
    let cells: Vec<Value> = cells
        .iter()
        .map(|cell| json!({"tool": cell.tool, "mode": cell.mode, "servers": columns.costs_json(&cell.costs)}))
        .collect();
    json!({
        "kind": "counts",
        "revision": options.era.revision(),
        "window": options.window,
        "smoke": options.running.smoke,
        "cells": cells,
    })
}
