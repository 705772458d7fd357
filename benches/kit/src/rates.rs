//! Requests per CPU second and per second, in interleaved rounds.
//!
//! Each round drives everyone once, in another order than the last: a disturbance hits all alike, and a ratio is
//! taken within its round before the median over rounds is.

use crate::figures::Spread;
use std::io;
use std::time::Duration;

/// What one drive took. The CPU time is the contestant's own, of all its threads, in user and kernel mode.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Requests that were answered.
    pub requests: u64,
    /// Of the contestant.
    pub cpu: Duration,
    /// On the clock.
    pub wall: Duration,
}

/// What a rate is counted against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// A second of the contestant's own CPU time.
    Cpu,
    /// A second on the clock.
    Wall,
}

impl Metric {
    /// Requests in a second of it.
    pub fn rate(self, taken: &Taken) -> f64 {
        let time = match self {
            Self::Cpu => taken.cpu,
            Self::Wall => taken.wall,
        };
        taken.requests as f64 / time.as_secs_f64()
    }
}

/// The same load on everyone, over rounds.
pub struct Cell {
    /// By contestant, then by round.
    pub taken: Vec<Vec<Taken>>,
}

impl Cell {
    /// Drives so many contestants in so many rounds.
    pub fn measure(
        contestants: usize,
        rounds: u32,
        mut drive: impl FnMut(usize) -> io::Result<Taken>,
    ) -> io::Result<Self> {
        let mut taken = vec![Vec::new(); contestants];
        for round in 0..rounds {
            for turn in order(contestants, round) {
                taken[turn].push(drive(turn)?);
            }
        }
        Ok(Self { taken })
    }

    /// The contestant among `candidates` that does best by this metric, by the median of its rates.
    pub fn best(&self, metric: Metric, candidates: impl Iterator<Item = usize>) -> Option<usize> {
        candidates.max_by(|left, right| self.median_rate(metric, *left).total_cmp(&self.median_rate(metric, *right)))
    }

    /// The rate of one contestant.
    pub fn median_rate(&self, metric: Metric, contestant: usize) -> f64 {
        Spread::of(self.taken[contestant].iter().map(|taken| metric.rate(taken)).collect()).median
    }

    /// How many times the reference's rate, round by round.
    pub fn ratio(&self, metric: Metric, contestant: usize, reference: usize) -> Spread {
        let pairs = self.taken[contestant].iter().zip(&self.taken[reference]);
        Spread::of(pairs.map(|(one, other)| metric.rate(one) / metric.rate(other)).collect())
    }
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
