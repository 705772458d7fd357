//! What a run says: tables for people, JSON for programs.
//!
//! The tables hold ratios. A time per request is printed only when asked for, under a heading that says what it is
//! worth; counts of instructions and allocations do not depend on the machine's load and are printed as they are.

use crate::contestants::{Contestant, Kind};
use crate::counts::{self, Cost};
use crate::options::Options;
use crate::rates::{self, Metric, Spread};
use crate::workload::Mode;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One of the figures that a request costs.
type Figure = fn(&Cost) -> f64;

/// Who the others are compared with.
struct References {
    rmcp: Vec<usize>,
    bare: Option<usize>,
}

impl References {
    fn among(contestants: &[Contestant]) -> Self {
        let places = |wanted: fn(Kind) -> bool| {
            contestants
                .iter()
                .enumerate()
                .filter(move |(_, one)| wanted(one.kind))
                .map(|(place, _)| place)
        };
        Self {
            rmcp: places(Kind::is_rmcp).collect(),
            bare: places(|kind| kind == Kind::Bare).next(),
        }
    }

    /// rmcp at its best: whichever of its forms is faster in this cell by this metric.
    fn rmcp(&self, cell: &rates::Cell, metric: Metric) -> Option<usize> {
        cell.best(metric, self.rmcp.iter().copied())
    }
}

pub(crate) fn rates_table(
    cells: &[rates::Cell],
    contestants: &[Contestant],
    options: &Options,
) -> String {
    let mut text = format!(
        "Revision {}, {} rounds of {} ms, window {}, {}; medians over rounds of the ratio within a round; more is better.\n\
         x rmcp: times the rate of rmcp's faster form in that row. x bare: times the rate of the limit.\n",
        options.era.revision(),
        options.rounds(),
        options.slice().as_millis(),
        options.window,
        if options.one_core {
            "one core"
        } else {
            "any core"
        },
    );
    for (metric, heading) in [
        (Metric::Cpu, "Requests per CPU second of the server"),
        (Metric::Wall, "Requests per second"),
    ] {
        let _ = write!(
            text,
            "\n{heading}\n{}",
            ratio_rows(metric, cells, contestants)
        );
    }
    if options.absolutes {
        let _ = write!(
            text,
            "\nMicroseconds of the server's CPU time per request, of this machine in this minute\n{}",
            absolute_rows(cells, contestants)
        );
    }
    if options.smoke {
        text.push_str("\nA smoke run: far too short to conclude anything from.\n");
    }
    text
}

fn ratio_rows(metric: Metric, cells: &[rates::Cell], contestants: &[Contestant]) -> String {
    let references = References::among(contestants);
    let mut text = head(contestants, 18);
    let _ = write!(text, "{:<16}", "");
    for _ in contestants {
        let _ = write!(text, "{:>10}{:>8}", "x rmcp", "x bare");
    }
    text.push('\n');
    let mut widest: f64 = 0.0;
    for cell in cells {
        let _ = write!(text, "{:<6}{:<10}", cell.tool.name(), cell.mode.name());
        for contestant in 0..contestants.len() {
            let mut column = |reference: Option<usize>, width: usize| {
                let shown = reference.map_or_else(
                    || "-".to_owned(),
                    |reference| {
                        let ratio = cell.ratio(metric, contestant, reference);
                        widest = widest.max(
                            (ratio.upper_quartile - ratio.lower_quartile) / 2.0 / ratio.median,
                        );
                        significant(ratio.median)
                    },
                );
                let _ = write!(text, "{shown:>width$}");
            };
            column(references.rmcp(cell, metric), 10);
            column(references.bare, 8);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "(half of the rounds lie within ±{:.0}% in the noisiest column)",
        100.0 * widest
    );
    text
}

fn absolute_rows(cells: &[rates::Cell], contestants: &[Contestant]) -> String {
    let mut text = head(contestants, 15);
    for cell in cells {
        let _ = write!(text, "{:<6}{:<10}", cell.tool.name(), cell.mode.name());
        for contestant in 0..contestants.len() {
            let _ = write!(
                text,
                "{:>15}",
                significant(1e6 / cell.median_rate(Metric::Cpu, contestant))
            );
        }
        text.push('\n');
    }
    text
}

pub(crate) fn counts_table(
    cells: &[counts::Cell],
    contestants: &[Contestant],
    options: &Options,
) -> String {
    let references = References::among(contestants);
    let mut text = format!(
        "Revision {}, window {}; user mode only; less is better.\n",
        options.era.revision(),
        options.window
    );
    let figures: [(&str, Figure); 3] = [
        (
            "Instructions per request (and rmcp's fewest, divided by them)",
            |cost| cost.instructions,
        ),
        ("Allocations per request (likewise)", |cost| {
            cost.allocations
        }),
        ("Bytes allocated per request (likewise)", |cost| {
            cost.allocated_bytes
        }),
    ];
    for (heading, figure) in figures {
        let _ = write!(text, "\n{heading}\n{}", head(contestants, 20));
        for cell in cells {
            let _ = write!(text, "{:<6}{:<10}", cell.tool.name(), cell.mode.name());
            let least = references
                .rmcp
                .iter()
                .map(|place| figure(&cell.costs[*place]))
                .min_by(f64::total_cmp);
            for cost in &cell.costs {
                let value = figure(cost);
                let shown = match least {
                    Some(least) if value > 0.5 => {
                        format!("{} ({})", grouped(value), significant(least / value))
                    }
                    _ => grouped(value),
                };
                let _ = write!(text, "{shown:>20}");
            }
            text.push('\n');
        }
    }
    text
}

/// Which pipelined rows miss the mark, each as a sentence; and the sentences for those that reach it.
pub(crate) fn marks(
    cells: &[rates::Cell],
    contestants: &[Contestant],
    mark: f64,
) -> (Vec<String>, bool) {
    let references = References::among(contestants);
    let steadfast = contestants
        .iter()
        .position(|one| one.kind == Kind::Steadfast);
    let mut reached = true;
    let mut lines = Vec::new();
    for cell in cells.iter().filter(|cell| cell.mode == Mode::Pipelined) {
        let (Some(steadfast), Some(rmcp)) = (steadfast, references.rmcp(cell, Metric::Cpu)) else {
            return (
                vec!["the mark needs both steadfast and rmcp".to_owned()],
                false,
            );
        };
        let ratio = cell.ratio(Metric::Cpu, steadfast, rmcp).median;
        let verdict = if ratio >= mark { "reached" } else { "MISSED" };
        reached &= ratio >= mark;
        lines.push(format!(
            "{} pipelined: {} times {} per CPU second, mark {mark}: {verdict}",
            cell.tool.name(),
            significant(ratio),
            contestants[rmcp].name(),
        ));
    }
    (lines, reached)
}

pub(crate) fn rates_json(
    cells: &[rates::Cell],
    contestants: &[Contestant],
    options: &Options,
) -> Value {
    let references = References::among(contestants);
    let figures = |cell: &rates::Cell, metric: Metric, contestant: usize| {
        let against = |reference: Option<usize>| -> Option<Spread> {
            reference.map(|reference| cell.ratio(metric, contestant, reference))
        };
        json!({
            "ratio_to_rmcp": against(references.rmcp(cell, metric)),
            "ratio_to_bare": against(references.bare),
            "median_rate": cell.median_rate(metric, contestant),
        })
    };
    let cells: Vec<Value> = cells
        .iter()
        .map(|cell| {
            let servers: Vec<Value> = contestants
                .iter()
                .enumerate()
                .map(|(place, contestant)| {
                    let rounds: Vec<Value> = cell.taken[place]
                        .iter()
                        .map(|taken| {
                            json!({
                                "requests": taken.requests,
                                "cpu_seconds": taken.cpu.as_secs_f64(),
                                "wall_seconds": taken.wall.as_secs_f64(),
                            })
                        })
                        .collect();
                    json!({
                        "server": contestant.name(),
                        "per_cpu_second": figures(cell, Metric::Cpu, place),
                        "per_second": figures(cell, Metric::Wall, place),
                        "rounds": rounds,
                    })
                })
                .collect();
            json!({
                "tool": cell.tool,
                "mode": cell.mode,
                "rmcp_by_cpu": references.rmcp(cell, Metric::Cpu).map(|place| contestants[place].name()),
                "rmcp_by_wall": references.rmcp(cell, Metric::Wall).map(|place| contestants[place].name()),
                "servers": servers,
            })
        })
        .collect();
    json!({
        "kind": "rates",
        "revision": options.era.revision(),
        "rounds": options.rounds(),
        "slice_milliseconds": options.slice().as_secs_f64() * 1e3,
        "window": options.window,
        "one_core": options.one_core,
        "smoke": options.smoke,
        "cells": cells,
    })
}

pub(crate) fn counts_json(
    cells: &[counts::Cell],
    contestants: &[Contestant],
    options: &Options,
) -> Value {
    let cells: Vec<Value> = cells
        .iter()
        .map(|cell| {
            let servers: Vec<Value> = contestants
                .iter()
                .zip(&cell.costs)
                .map(|(contestant, cost)| json!({"server": contestant.name(), "per_request": cost}))
                .collect();
            json!({"tool": cell.tool, "mode": cell.mode, "servers": servers})
        })
        .collect();
    json!({
        "kind": "counts",
        "revision": options.era.revision(),
        "window": options.window,
        "smoke": options.smoke,
        "cells": cells,
    })
}

fn head(contestants: &[Contestant], width: usize) -> String {
    let mut text = format!("{:<16}", "");
    for contestant in contestants {
        let _ = write!(text, "{:>width$}", contestant.name());
    }
    text.push('\n');
    text
}

/// Three digits that mean something, for a ratio or a small time.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A count with its thousands apart; a fraction of one is shown below ten.
fn grouped(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0
            && digit.is_ascii_digit()
            && (digits.len() - place).is_multiple_of(3)
            && !text.ends_with('-')
        {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
