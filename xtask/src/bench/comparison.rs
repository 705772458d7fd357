//! Ratios between contestants of one load, taken within a round before the median over rounds is.
//!
//! A figure here is the cost of one request, so that less is better everywhere. Figures of different loads or runs are
//! never compared.

use super::measurements::{Contestant, Load, Round, Start, StartRound};
use super::statistics::Spread;

/// A cost of one request that depends on the machine, and is shown only as a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metric {
    /// CPU time of the contestant.
    Cpu,
    /// Time on the clock.
    Wall,
    /// The median of the latencies.
    Median,
    /// The latency that one request in a hundred exceeds.
    Tail,
}

impl Metric {
    pub(crate) const ALL: [Self; 4] = [Self::Cpu, Self::Wall, Self::Median, Self::Tail];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU time",
            Self::Wall => "wall time",
            Self::Median => "p50",
            Self::Tail => "p99",
        }
    }

    fn of(self, round: &Round) -> Option<f64> {
        match self {
            Self::Cpu => Some(round.cpu_seconds / round.requests),
            Self::Wall => Some(round.wall_seconds / round.requests),
            Self::Median => round.p50_seconds,
            Self::Tail => round.p99_seconds,
        }
    }
}

/// What a ratio is taken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The contestant of this name.
    Named(&'static str),
    /// The form of rmcp that is best by the metric in question.
    BestRmcp,
}

impl Reference {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Named(name) => name,
            Self::BestRmcp => "rmcp",
        }
    }
}

impl Load {
    /// The preferred reference if it takes part in this load, otherwise rmcp.
    pub(crate) fn reference(&self, preferred: &'static str) -> Reference {
        if self.contestant(preferred).is_some() { Reference::Named(preferred) } else { Reference::BestRmcp }
    }

    /// How many times the cost of the reference: the median over rounds of the ratio within a round.
    pub(crate) fn ratio(&self, metric: Metric, name: &str, reference: Reference) -> Option<Spread> {
        let own = self.contestant(name)?;
        let other = match reference {
            Reference::Named(name) => self.contestant(name)?,
            Reference::BestRmcp => best_rmcp(&self.contestants, |one| &one.name, |one| one.cost(metric))?,
        };
        let pairs = own.rounds.iter().zip(&other.rounds);
        Spread::of(pairs.filter_map(|(own, other)| Some(metric.of(own)? / metric.of(other)?)))
    }

    /// Context switches of a request: the median over rounds.
    pub(crate) fn context_switches(&self, name: &str) -> Option<f64> {
        let rounds = self.contestant(name)?.rounds.iter();
        let switches = rounds.filter_map(|round| Some(round.context_switches? / round.requests));
        Spread::of(switches).map(|spread| spread.median)
    }

    fn contestant(&self, name: &str) -> Option<&Contestant> {
        self.contestants.iter().find(|one| one.name == name)
    }
}

impl Contestant {
    fn cost(&self, metric: Metric) -> Option<f64> {
        Spread::of(self.rounds.iter().filter_map(|round| metric.of(round))).map(|spread| spread.median)
    }
}

/// One of the figures of a start.
pub(crate) type StartFigure = fn(&StartRound) -> f64;

/// How many times the figure of rmcp, in the form that is best by it: the median over rounds of the ratio within a
/// round.
pub(crate) fn start_ratio(starts: &[Start], figure: StartFigure, name: &str) -> Option<Spread> {
    let own = starts.iter().find(|one| one.name == name)?;
    let median = |one: &Start| Spread::of(one.rounds.iter().map(figure)).map(|spread| spread.median);
    let other = best_rmcp(starts, |one| &one.name, median)?;
    Spread::of(own.rounds.iter().zip(&other.rounds).map(|(own, other)| figure(own) / figure(other)))
}

/// Whether this is a form of rmcp.
pub(crate) fn is_rmcp(name: &str) -> bool {
    name == "rmcp" || name.starts_with("rmcp ")
}

/// The form of rmcp with the least cost.
fn best_rmcp<T>(all: &[T], name: impl Fn(&T) -> &str, cost: impl Fn(&T) -> Option<f64>) -> Option<&T> {
    let forms = all.iter().filter(|one| is_rmcp(name(one))).filter_map(|one| Some((one, cost(one)?)));
    forms.min_by(|(_, left), (_, right)| left.total_cmp(right)).map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::super::bench_json::StdioRates;
    use super::super::measurements::StdioRun;
    use super::*;

    fn serial() -> Option<Load> {
        let rates: StdioRates = serde_json::from_str(include_str!("fixtures/stdio.json")).ok()?;
        StdioRun::from(rates).loads.into_iter().find(|load| load.load == "add serial")
    }

    fn median(metric: Metric, name: &str, reference: Reference) -> Option<f64> {
        let ratio = serial()?.ratio(metric, name, reference)?.median;
        Some((ratio * 1000.0).round() / 1000.0)
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        // Rounds: 0.24 / 0.20, 0.14 / 0.10, 0.13 / 0.10. The ratio of the medians would be 1.4.
        assert_eq!(median(Metric::Cpu, "steadfast", Reference::Named("bare tokio")), Some(1.3));
        assert_eq!(median(Metric::Median, "steadfast", Reference::Named("bare tokio")), Some(1.1));
    }

    #[test]
    fn rmcp_is_taken_in_the_form_that_is_best_by_the_metric() {
        // By CPU time that is `rmcp pipes`, on the clock `rmcp stdio`.
        assert_eq!(median(Metric::Cpu, "rmcp pipes", Reference::BestRmcp), Some(1.0));
        assert_eq!(median(Metric::Wall, "rmcp stdio", Reference::BestRmcp), Some(1.0));
        assert_eq!(median(Metric::Cpu, "steadfast", Reference::BestRmcp), Some(0.5));
    }

    #[test]
    fn context_switches_are_counted_for_each_request() {
        assert_eq!(serial().and_then(|load| load.context_switches("steadfast")), Some(1.1));
    }

    #[test]
    fn what_did_not_take_part_has_no_ratio() {
        assert_eq!(median(Metric::Cpu, "python", Reference::BestRmcp), None);
        assert_eq!(serial().map(|load| load.reference("bare axum")), Some(Reference::BestRmcp));
    }
}
