//! The marks, and whether they were reached.

use crate::contestants::Contestant;
use crate::stalls::Streaming;
use bench_kit::figures::{grouped, significant};
use bench_kit::rates::{Cell, Metric};
use bench_kit::report::Columns;
use std::fmt;

/// Requests per CPU second, as a multiple of rmcp's: half of its CPU time for each.
const CPU: f64 = 2.0;
/// Bytes for an open session with its stream.
const SESSION: f64 = 30.0 * 1024.0;
/// How much longer a call may take that streams: a stall would be eight times.
const STREAMING: f64 = 3.0;

/// A figure held against its mark.
pub(crate) struct Verdict {
    sentence: String,
    reached: bool,
}

impl Verdict {
    pub(crate) const fn is_reached(&self) -> bool {
        self.reached
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.reached { "reached" } else { "MISSED" };
        write!(formatter, "{}: {verdict}", self.sentence)
    }
}

pub(crate) fn of_cpu(cell: &Cell, contestants: &[&Contestant], columns: &Columns) -> Vec<Verdict> {
    let Some(rmcp) = columns.best_rmcp(cell, Metric::Cpu) else {
        return vec![Verdict { sentence: "the mark of CPU time needs rmcp".to_owned(), reached: false }];
    };
    ours(contestants, |place| cell.ratio(Metric::Cpu, place, rmcp).median)
        .map(|(name, ratio)| Verdict {
            sentence: format!("{name}: {} times rmcp's requests per CPU second, mark {CPU}", significant(ratio)),
            reached: ratio >= CPU,
        })
        .collect()
}

pub(crate) fn of_memory(bytes: &[f64], contestants: &[&Contestant]) -> Vec<Verdict> {
    ours(contestants, |place| bytes[place])
        .map(|(name, bytes)| Verdict {
            sentence: format!("{name}: {} bytes for a session, mark {}", grouped(bytes), grouped(SESSION)),
            reached: bytes <= SESSION,
        })
        .collect()
}

pub(crate) fn of_stalls(streaming: &[Streaming], contestants: &[&Contestant]) -> Vec<Verdict> {
    ours(contestants, |place| streaming[place].ratio.median)
        .map(|(name, ratio)| Verdict {
            sentence: format!(
                "{name}: a call that streams takes {} times as long, mark {STREAMING}",
                significant(ratio)
            ),
            reached: ratio <= STREAMING,
        })
        .collect()
}

fn ours(contestants: &[&Contestant], figure: impl Fn(usize) -> f64) -> impl Iterator<Item = (&'static str, f64)> {
    let all = contestants.iter().enumerate().filter(|(_, one)| one.kind.is_ours());
    all.map(move |(place, one)| (one.name(), figure(place)))
}
