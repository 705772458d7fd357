//! What a run says: tables for people, JSON for programs.
//!
//! The tables hold ratios. A time per request is printed only when asked for, under a heading that says what it is
//! worth; counts of instructions and allocations do not depend on the machine's load and are printed as they are.

use crate::counts::Cost;
use crate::figures::{Spread, grouped, significant};
use crate::rates::{Cell, Latency, Metric};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One of the figures that a request costs.
type Figure = fn(&Cost) -> f64;

/// Those that take part: a column each.
pub struct Columns {
    /// What each is called.
    pub names: Vec<String>,
    /// Which of them are rmcp, in whichever form.
    pub rmcp: Vec<usize>,
    /// Which of them is the limit, if there is one.
    pub bare: Option<usize>,
    /// What they are: `server` or `client`.
    pub role: &'static str,
}

/// A row of a table: one load, and what came of it.
pub struct Row<'a, T: ?Sized> {
    /// What was asked, and how.
    pub label: String,
    /// By contestant.
    pub of: &'a T,
}

/// The width of a row's label.
const LABEL: usize = 18;

impl Columns {
    /// rmcp at its best: whichever of its forms is faster in this cell by this metric.
    pub fn best_rmcp(&self, cell: &Cell, metric: Metric) -> Option<usize> {
        cell.best(metric, self.rmcp.iter().copied())
    }

    /// Ratios of requests per CPU second, then per second on the clock; with `absolutes`, the CPU time of a request too.
    pub fn rates(&self, rows: &[Row<'_, Cell>], absolutes: bool) -> String {
        let mut text = String::new();
        let per_cpu_second = format!("Requests per CPU second of the {}", self.role);
        for (metric, heading) in [(Metric::Cpu, per_cpu_second.as_str()), (Metric::Wall, "Requests per second")] {
            let _ = write!(text, "\n{heading}\n{}", self.ratios(metric, rows));
        }
        text.push_str(&self.one_at_a_time(rows));
        if absolutes {
            let heading =
                format!("Microseconds of the {}'s CPU time per request, of this machine in this minute", self.role);
            let _ = write!(text, "\n{heading}\n{}", self.absolutes(rows));
        }
        text
    }

    fn ratios(&self, metric: Metric, rows: &[Row<'_, Cell>]) -> String {
        let mut text = self.head(18);
        let _ = write!(text, "{:<LABEL$}", "");
        for _ in &self.names {
            let _ = match self.bare {
                Some(_) => write!(text, "{:>10}{:>8}", "x rmcp", "x bare"),
                None => write!(text, "{:>18}", "x rmcp"),
            };
        }
        text.push('\n');
        let mut widest: f64 = 0.0;
        for Row { label, of: cell } in rows {
            let _ = write!(text, "{label:<LABEL$}");
            for contestant in 0..self.names.len() {
                let mut column = |reference: Option<usize>, width: usize| {
                    let shown = reference.map_or_else(
                        || "-".to_owned(),
                        |reference| {
                            let ratio = cell.ratio(metric, contestant, reference);
                            widest = widest.max((ratio.upper_quartile - ratio.lower_quartile) / 2.0 / ratio.median);
                            significant(ratio.median)
                        },
                    );
                    let _ = write!(text, "{shown:>width$}");
                };
                let rmcp = self.best_rmcp(cell, metric);
                match self.bare {
                    Some(bare) => {
                        column(rmcp, 10);
                        column(Some(bare), 8);
                    }
                    None => column(rmcp, 18),
                }
            }
            text.push('\n');
        }
        let _ = writeln!(text, "(half of the rounds lie within ±{:.0}% in the noisiest column)", 100.0 * widest);
        text
    }

    /// Context switches, and latencies against the limit, of the rows with one request at a time.
    fn one_at_a_time(&self, rows: &[Row<'_, Cell>]) -> String {
        let serial = || rows.iter().filter(|row| row.of.taken.iter().flatten().all(|taken| taken.latency.is_some()));
        if serial().next().is_none() {
            return String::new();
        }
        let mut text = format!("\nContext switches of the {} per request\n{}", self.role, self.head(18));
        for Row { label, of: cell } in serial() {
            let _ = write!(text, "{label:<LABEL$}");
            for contestant in 0..self.names.len() {
                let _ = write!(text, "{:>18}", significant(cell.context_switches(contestant)));
            }
            text.push('\n');
        }
        let Some(bare) = self.bare else { return text };
        let _ =
            write!(text, "\nTime per request, x bare: median and 99th percentile; less is better\n{}", self.head(18));
        for Row { label, of: cell } in serial() {
            let _ = write!(text, "{label:<LABEL$}");
            for contestant in 0..self.names.len() {
                for figure in [|latency: &Latency| latency.p50, |latency: &Latency| latency.p99] {
                    let ratio = cell.latency_ratio(figure, contestant, bare);
                    let shown = ratio.map_or_else(|| "-".to_owned(), |ratio| significant(ratio.median));
                    let _ = write!(text, "{shown:>9}");
                }
            }
            text.push('\n');
        }
        text
    }

    fn absolutes(&self, rows: &[Row<'_, Cell>]) -> String {
        let mut text = self.head(15);
        for Row { label, of: cell } in rows {
            let _ = write!(text, "{label:<LABEL$}");
            for contestant in 0..self.names.len() {
                let _ = write!(text, "{:>15}", significant(1e6 / cell.median_rate(Metric::Cpu, contestant)));
            }
            text.push('\n');
        }
        text
    }

    /// Instructions and allocations.
    pub fn counts(&self, rows: &[Row<'_, [Cost]>]) -> String {
        let figures: [(&str, Figure); 3] = [
            ("Instructions per request (and rmcp's fewest, divided by them)", |cost| cost.instructions),
            ("Allocations per request (likewise)", |cost| cost.allocations),
            ("Bytes allocated per request (likewise)", |cost| cost.allocated_bytes),
        ];
        let mut text = String::new();
        for (heading, figure) in figures {
            let _ = write!(text, "\n{heading}\n{}", self.head(20));
            for Row { label, of: costs } in rows {
                let _ = write!(text, "{label:<LABEL$}");
                let least = self.rmcp.iter().map(|place| figure(&costs[*place])).min_by(f64::total_cmp);
                for cost in *costs {
                    let value = figure(cost);
                    let shown = match least {
                        Some(least) if value > 0.5 => format!("{} ({})", grouped(value), significant(least / value)),
                        _ => grouped(value),
                    };
                    let _ = write!(text, "{shown:>20}");
                }
                text.push('\n');
            }
        }
        text
    }

    /// Every figure of a cell, also the raw ones.
    pub fn cell_json(&self, cell: &Cell) -> Value {
        let figures = |metric: Metric, contestant: usize| {
            let against = |reference: Option<usize>| -> Option<Spread> {
                reference.map(|reference| cell.ratio(metric, contestant, reference))
            };
            json!({
                "ratio_to_rmcp": against(self.best_rmcp(cell, metric)),
                "ratio_to_bare": against(self.bare),
                "median_rate": cell.median_rate(metric, contestant),
            })
        };
        let contestants = self.names.iter().enumerate().map(|(place, name)| {
            let rounds = cell.taken[place].iter().map(|taken| {
                json!({
                    "requests": taken.requests,
                    "cpu_seconds": taken.cpu.as_secs_f64(),
                    "wall_seconds": taken.wall.as_secs_f64(),
                    "context_switches": taken.context_switches,
                    "p50_seconds": taken.latency.map(|latency| latency.p50.as_secs_f64()),
                    "p99_seconds": taken.latency.map(|latency| latency.p99.as_secs_f64()),
                })
            });
            json!({
                self.role: name,
                "per_cpu_second": figures(Metric::Cpu, place),
                "per_second": figures(Metric::Wall, place),
                "rounds": rounds.collect::<Vec<Value>>(),
            })
        });
        json!({
            "rmcp_by_cpu": self.best_rmcp(cell, Metric::Cpu).map(|place| self.names[place].clone()),
            "rmcp_by_wall": self.best_rmcp(cell, Metric::Wall).map(|place| self.names[place].clone()),
            format!("{}s", self.role): contestants.collect::<Vec<Value>>(),
        })
    }

    /// The counts of one load.
    pub fn costs_json(&self, costs: &[Cost]) -> Value {
        let contestants = self.names.iter().zip(costs);
        contestants.map(|(name, cost)| json!({self.role: name, "per_request": cost})).collect()
    }

    /// The names above their columns.
    pub fn head(&self, width: usize) -> String {
        let mut text = format!("{:<LABEL$}", "");
        for name in &self.names {
            let _ = write!(text, "{name:>width$}");
        }
        text.push('\n');
        text
    }
}
