//! Requests per CPU second and per second, in interleaved rounds.
//!
//! Each round drives everyone once, in another order than the last: a disturbance hits all alike, and a ratio is
//! taken within its round before the median over rounds is.

use crate::figures::Spread;
use std::io;
use std::time::Duration;

/// What one drive took. The CPU time and the context switches are the contestant's own, of all its threads; the CPU time is
/// that of user and kernel mode.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Requests that were answered.
    pub requests: u64,
    /// Of the contestant.
    pub cpu: Duration,
    /// On the clock.
    pub wall: Duration,
    /// How often a thread of the contestant stopped to run, because it waited or because another thread was given its core.
    pub context_switches: u64,
    /// How long a request took; `None` if more than one was in flight.
    pub latency: Option<Latency>,
}

/// How long requests took that were made one at a time.
#[derive(Clone, Copy)]
pub struct Latency {
    /// Half of the requests took less.
    pub p50: Duration,
    /// One of a hundred requests took longer.
    pub p99: Duration,
}

impl Latency {
    /// The percentiles of these times; `None` if there are none.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        let last = times.len().checked_sub(1)?;
        times.sort_unstable();
        Some(Self { p50: times[last / 2], p99: times[last * 99 / 100] })
    }
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

    /// The context switches of one contestant for each request.
    pub fn context_switches(&self, contestant: usize) -> f64 {
        let each = |taken: &Taken| taken.context_switches as f64 / taken.requests as f64;
        Spread::of(self.taken[contestant].iter().map(each).collect()).median
    }

    /// How many times the reference's latency, round by round; `None` if more than one request was in flight.
    pub fn latency_ratio(
        &self,
        figure: fn(&Latency) -> Duration,
        contestant: usize,
        reference: usize,
    ) -> Option<Spread> {
        let pairs = self.taken[contestant].iter().zip(&self.taken[reference]);
        let ratio = |one: &Latency, other: &Latency| figure(one).as_secs_f64() / figure(other).as_secs_f64();
        let ratios: Option<Vec<f64>> =
            pairs.map(|(one, other)| Some(ratio(one.latency.as_ref()?, other.latency.as_ref()?))).collect();
        ratios.map(Spread::of)
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

#[cfg(test)]
mod tests {
    use super::Latency;
    use std::time::Duration;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let latency = Latency::of((1..=201).rev().map(Duration::from_micros).collect());
        let micros = latency.map(|latency| (latency.p50.as_micros(), latency.p99.as_micros()));
        assert_eq!(micros, Some((101, 199)));
        assert!(Latency::of(Vec::new()).is_none());
    }
}
