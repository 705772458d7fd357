//! Requests per CPU second and per second, in interleaved rounds.
//!
//! Each round drives every server once, in another order than the last: a disturbance hits all alike, and a ratio is
//! taken within its round before the median over rounds is.

use crate::child::{Server, Taken, Until};
use crate::contestants::Contestant;
use crate::options::Options;
use crate::workload::{Mode, Tool};
use std::io;
use std::process::Command;
use std::time::Duration;

/// One tool asked in one way, of everyone.
pub(crate) struct Cell {
    pub(crate) tool: Tool,
    pub(crate) mode: Mode,
    /// By contestant, then by round.
    pub(crate) taken: Vec<Vec<Taken>>,
}

/// What a rate is counted against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    /// A second of the server's own CPU time.
    Cpu,
    /// A second on the clock.
    Wall,
}

/// A server hung if a step takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn measure(contestants: &[Contestant], options: &Options) -> io::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for &tool in &options.tools {
        for mode in Mode::ALL {
            let mut taken = vec![Vec::new(); contestants.len()];
            for round in 0..options.rounds() {
                for (contestant, one) in measure_round(contestants, tool, mode, round, options)? {
                    taken[contestant].push(one);
                }
            }
            cells.push(Cell { tool, mode, taken });
        }
    }
    Ok(cells)
}

/// Everyone once, each in a new process: where a process happens to lie in memory is worth a tenth and more.
fn measure_round(
    contestants: &[Contestant],
    tool: Tool,
    mode: Mode,
    round: u32,
    options: &Options,
) -> io::Result<Vec<(usize, Taken)>> {
    let window = mode.window(options.window.into());
    let patience = PATIENCE + options.slice();
    let mut taken = Vec::new();
    for turn in order(contestants.len(), round) {
        let contestant = &contestants[turn];
        let line = contestant.command_line(options.era, tool);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        let mut server =
            Server::open(contestant.name(), &mut command, options.era, tool, patience)?;
        server.drive(window, Until::Elapsed(options.slice() / 3))?;
        taken.push((turn, server.drive(window, Until::Elapsed(options.slice()))?));
        server.end()?;
    }
    Ok(taken)
}

/// Who comes when in a round: shuffled, so that nobody always follows the same one, and alike in each run.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut state = u64::from(round).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below
    };
    let mut order: Vec<usize> = (0..count).collect();
    for end in (1..count).rev() {
        order.swap(end, random(end + 1));
    }
    order
}

impl Metric {
    pub(crate) fn rate(self, taken: &Taken) -> f64 {
        let time = match self {
            Self::Cpu => taken.cpu,
            Self::Wall => taken.wall,
        };
        taken.requests as f64 / time.as_secs_f64()
    }
}

impl Cell {
    /// The contestant among `candidates` that does best by this metric, by the median of its rates.
    pub(crate) fn best(
        &self,
        metric: Metric,
        candidates: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        candidates.max_by(|left, right| {
            self.median_rate(metric, *left)
                .total_cmp(&self.median_rate(metric, *right))
        })
    }

    pub(crate) fn median_rate(&self, metric: Metric, contestant: usize) -> f64 {
        Spread::of(
            self.taken[contestant]
                .iter()
                .map(|taken| metric.rate(taken))
                .collect(),
        )
        .median
    }

    /// How many times the reference's rate, round by round.
    pub(crate) fn ratio(&self, metric: Metric, contestant: usize, reference: usize) -> Spread {
        let pairs = self.taken[contestant].iter().zip(&self.taken[reference]);
        Spread::of(
            pairs
                .map(|(one, other)| metric.rate(one) / metric.rate(other))
                .collect(),
        )
    }
}

/// A figure over rounds.
#[derive(Clone, Copy, serde::Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) lower_quartile: f64,
    pub(crate) upper_quartile: f64,
}

impl Spread {
    /// Of at least one value.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        // At a fraction of the way from the first to the last, between two neighbours if need be.
        let at = |fraction: (usize, usize)| {
            let place = (values.len() - 1) * fraction.0;
            let (below, part) = (place / fraction.1, place % fraction.1);
            let above = (below + 1).min(values.len() - 1);
            values[below] + (values[above] - values[below]) * part as f64 / fraction.1 as f64
        };
        Self {
            median: at((1, 2)),
            lower_quartile: at((1, 4)),
            upper_quartile: at((3, 4)),
        }
    }
}
