//! The seeded simulator over the pure cores: a client and a server joined by a link that misbehaves.

mod bias;
mod both;
mod lines;
mod link;
mod nemesis;
mod party;
mod script;
mod workload;
mod world;

use std::fmt;

use crate::law::{Law, Violation};
use crate::observation::trace::Trace;
use crate::script::shrink::shrink;
use crate::seed::Seed;
use crate::sweep::generalized;
use crate::worlds::Shrunk;
use script::{Part, Script};

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// What was broken.
    pub violations: Vec<Violation>,
    /// The hash of everything that was observed.
    pub hash: u64,
    /// Requests that were accepted.
    pub requests: u64,
    /// Cancellations that arrived, in time or late.
    pub cancels: u64,
    /// Connections that closed.
    pub closes: u64,
    /// Messages that arrived.
    pub messages: u64,
}

impl Run {
    /// Whether this law is among those that were broken.
    pub fn breaks(&self, law: Law) -> bool {
        self.violations.iter().any(|violation| violation.law == law)
    }
}

/// Runs a seed.
pub fn run(seed: impl Into<Seed>) -> Run {
    summary(world::run(&Script::new(seed.into()), Trace::default()))
}

fn summary(outcome: world::Outcome) -> Run {
    let world::Outcome { violations, hash, requests, cancels, closes, messages, .. } = outcome;
    Run { violations, hash, requests, cancels, closes, messages }
}

/// A seed that breaks a law, with the smallest part of its script that still does.
#[derive(Debug, Clone)]
pub struct Failure {
    seed: Seed,
    violations: Vec<Violation>,
    /// The places of the parts that matter, and the script of them.
    kept: Vec<usize>,
    script: String,
    steps: Vec<String>,
    trace: Vec<String>,
}

/// What a script breaks first: the law, and the message without what differs from run to run.
type Cause = (Law, String);

fn cause(script: &Script) -> Option<Cause> {
    let first = world::run(script, Trace::default()).violations.into_iter().next()?;
    Some((first.law, generalized(&first.what)))
}

/// Looks closely at a seed that breaks a law. `keep` names the parts of its script to look at, all if there are none. A part is
/// left out only if what is left still fails for the same cause.
pub fn examine(seed: impl Into<Seed>, keep: Option<&[usize]>) -> Option<Failure> {
    let seed = seed.into();
    let whole = Script::new(seed);
    let places: Vec<usize> = keep.map_or_else(|| (0..whole.parts.len()).collect(), <[usize]>::to_vec);
    let first = cause(&whole.keeping(&places))?;
    let kept = if keep.is_some() { places } else { smallest(&places, &first, |places| cause(&whole.keeping(places))) };
    let mut script = whole.keeping(&kept);
    let ideal = script.with_ideal_links();
    if keep.is_none() && cause(&ideal).as_ref() == Some(&first) {
        script = ideal;
    }
    let outcome = world::run(&script, Trace::kept());
    let steps = script.parts.iter().map(Part::kind).collect();
    let text = script.to_string();
    Some(Failure { seed, violations: outcome.violations, kept, script: text, steps, trace: outcome.lines })
}

/// The smallest selection of parts that still fails for this cause.
fn smallest(places: &[usize], first: &Cause, cause: impl Fn(&[usize]) -> Option<Cause>) -> Vec<usize> {
    shrink(places, |places| cause(places).as_ref() == Some(first))
}

/// The whole trace of a seed, for people.
pub fn trace(seed: impl Into<Seed>) -> Vec<String> {
    world::run(&Script::new(seed.into()), Trace::kept()).lines
}

impl Failure {
    /// The same as every world tells it.
    pub(crate) fn shrunk(&self) -> Shrunk {
        let unknown = || Violation {
            law: Law::Isolation,
            what: "expected the same violation in a second run of the seed, observed none".to_owned(),
        };
        let violation = self.violations.first().cloned().unwrap_or_else(unknown);
        Shrunk { violation, steps: self.steps.clone(), text: self.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "seed {} breaks", self.seed)?;
        for violation in &self.violations {
            writeln!(formatter, "  {violation}")?;
        }
        let kept: Vec<String> = self.kept.iter().map(usize::to_string).collect();
        writeln!(formatter, "  reproduce: cargo run --release -p sim -- --world cores --seed {}", self.seed)?;
        writeln!(
            formatter,
            "  shrunk:    cargo run --release -p sim -- --world cores --seed {} --keep {}",
            self.seed,
            kept.join(",")
        )?;
        writeln!(formatter, "the script, shrunk:")?;
        for line in self.script.lines() {
            writeln!(formatter, "  {line}")?;
        }
        writeln!(formatter, "as it was seen:")?;
        for line in &self.trace {
            writeln!(formatter, "  {line}")?;
        }
        Ok(())
    }
}

impl Part {
    /// What kind of part it is, for people.
    fn kind(&self) -> String {
        match self {
            Self::Item(item) => crate::script::bias::kind(&item.action),
            Self::Fault(fault) => crate::script::bias::kind(&fault.strikes),
        }
    }

    #[cfg(test)]
    fn is_fault(&self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_byte_for_byte() {
        for seed in 0..200 {
            assert_eq!(run(seed).hash, run(seed).hash, "seed {seed}");
        }
    }

    #[test]
    fn another_seed_is_another_run() {
        let mut hashes: Vec<u64> = (0..200).map(|seed| run(seed).hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 200);
    }

    #[test]
    fn a_part_without_which_the_script_fails_for_another_cause_is_kept() {
        let lost = (Law::Order, "message # was lost".to_owned());
        let other = [(Law::Order, "message # came twice".to_owned()), (Law::Closing, "message # was lost".to_owned())];
        let kept = smallest(&[0, 1, 2, 3], &lost, |places| match places {
            places if !places.contains(&1) => Some(other[0].clone()),
            places if !places.contains(&2) => Some(other[1].clone()),
            _ => Some(lost.clone()),
        });
        assert_eq!(kept, [1, 2]);
    }

    #[test]
    fn scripts_have_faults_and_do_without() {
        let with = (0..100).filter(|seed| Script::new(Seed::plain(*seed)).parts.iter().any(Part::is_fault)).count();
        assert!((20..80).contains(&with), "{with}");
    }
}
