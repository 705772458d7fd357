//! A sweep: many seeds of one world, on all cores, that can be interrupted and resumed.
//!
//! Workers take seeds in chunks, and the results of the chunks are merged in the order of the seeds. Which findings are shrunk
//! is decided when they are merged, by their position. So the results, findings and the hash of all traces among them, do not
//! depend on the number of threads nor on where a sweep was interrupted. Only the time that it took does.

mod groups;
mod progress;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) use groups::generalized;
pub use groups::{Finding, Group, groups};
pub use progress::ProgressFile;

use crate::coverage::Coverage;
use crate::law::Violation;
use crate::seed::Seed;
use crate::worlds::{Counts, Shrunk, World};

/// The commit that this program was built from, with a `+` if `crates` or `testing/sim` had uncommitted changes then. `unknown`
/// if it was built outside of a git repository.
pub const COMMIT: &str = match option_env!("SIM_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// How many seeds a worker takes at once.
const CHUNK: u64 = 250;

/// How many findings of a sweep are shrunk: the first ones. Of the others only the seed and the message are recorded.
const MOST_SHRUNK: usize = 200;

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// The world.
    pub world: World,
    /// The first seed.
    pub start: u64,
    /// How many.
    pub seeds: u64,
    /// Scripts stay as they are first drawn.
    pub plain: bool,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    /// How many seeds were run, from the first one on.
    pub done: u64,
    /// How many of them have a line in the record.
    pub recorded: u64,
    /// What they came to.
    pub counts: Counts,
    /// What they exercised.
    pub coverage: Coverage,
    /// What broke a law.
    pub findings: Vec<Finding>,
    /// How long they took, added up over all threads.
    pub busy: Duration,
}

impl Results {
    /// Adds the results of the seeds that follow.
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.counts += other.counts;
        self.coverage.add(other.coverage);
        self.findings.extend(other.findings);
        self.busy += other.busy;
    }

    /// Seeds per second per core.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn rate(&self) -> f64 {
        let seconds = self.busy.as_secs_f64();
        if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 }
    }
}

impl Sweep {
    /// Runs the seeds that follow those of `resumed`, on so many threads. `on_progress` is called with all results so far
    /// whenever a chunk is done.
    pub fn run(self, jobs: usize, resumed: Results, on_progress: impl FnMut(&Results)) -> Results {
        let world = self.world;
        self.run_with(
            Runner { run: &|seed| world.run(seed), shrink: &|seed| world.shrink(seed) },
            jobs,
            resumed,
            on_progress,
        )
    }

    fn run_with(
        self,
        runner: Runner<'_>,
        jobs: usize,
        resumed: Results,
        mut on_progress: impl FnMut(&Results),
    ) -> Results {
        let (first, chunks) = (resumed.done, self.seeds.saturating_sub(resumed.done).div_ceil(CHUNK));
        let next = AtomicU64::new(0);
        let (sender, receiver) = mpsc::channel();
        let mut all = resumed;
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let chunk = next.fetch_add(1, Ordering::Relaxed);
                        if chunk >= chunks || sender.send((chunk, self.chunk(runner, first, chunk))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            // Chunks that were done before an earlier one.
            let mut out_of_order = BTreeMap::new();
            let mut turn = 0;
            for (chunk, results) in receiver {
                out_of_order.insert(chunk, results);
                while let Some(mut results) = out_of_order.remove(&turn) {
                    let room = MOST_SHRUNK.saturating_sub(all.findings.len());
                    for finding in results.findings.iter_mut().take(room) {
                        finding.shrunk = (runner.shrink)(finding.seed);
                    }
                    all.add(results);
                    turn += 1;
                }
                on_progress(&all);
            }
        });
        all
    }

    fn chunk(self, runner: Runner<'_>, first: u64, chunk: u64) -> Results {
        let begin = first + chunk * CHUNK;
        let end = (begin + CHUNK).min(self.seeds);
        drop(Coverage::take());
        let began = Instant::now();
        let mut results = Results { done: end - begin, ..Results::default() };
        for offset in begin..end {
            let seed = Seed { number: self.start.wrapping_add(offset), plain: self.plain };
            match (runner.run)(seed) {
                Ok(counts) => results.counts += counts,
                Err(violation) => results.findings.push(Finding { seed, violation, shrunk: None }),
            }
        }
        results.coverage = Coverage::take();
        results.busy = began.elapsed();
        results
    }

    /// How many of these findings are of seeds that have no line in the record yet.
    pub fn unrecorded(self, results: &Results) -> usize {
        let offset = |finding: &&Finding| finding.seed.number.wrapping_sub(self.start);
        results.findings.iter().filter(|finding| offset(finding) >= results.recorded).count()
    }
}

/// How a seed is run and how a finding is shrunk. Tests bring their own.
#[derive(Clone, Copy)]
struct Runner<'a> {
    run: &'a (dyn Fn(Seed) -> Result<Counts, Violation> + Sync),
    shrink: &'a (dyn Fn(Seed) -> Option<Shrunk> + Sync),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Law;

    const SWEEP: Sweep = Sweep { world: World::Cores, start: 11, seeds: 1_100, plain: false };

    /// Everything but the time.
    fn run(sweep: Sweep, jobs: usize, resumed: Results) -> Results {
        Results { busy: Duration::ZERO, ..sweep.run(jobs, resumed, |_| {}) }
    }

    /// Every third seed breaks a law, which is more than are shrunk. The first chunk takes longest.
    fn run_broken(sweep: Sweep, jobs: usize, resumed: Results) -> Results {
        let broken = |seed: Seed| Violation { law: Law::Order, what: format!("message {} was lost", seed.number) };
        let run = |seed: Seed| {
            if seed.number == SWEEP.start {
                std::thread::sleep(Duration::from_millis(30));
            }
            if seed.number.is_multiple_of(3) {
                Err(broken(seed))
            } else {
                Ok(Counts { trace: seed.number, ..Counts::default() })
            }
        };
        let shrink = |seed: Seed| Some(Shrunk { violation: broken(seed), steps: Vec::new(), text: String::new() });
        let results = sweep.run_with(Runner { run: &run, shrink: &shrink }, jobs, resumed, |_| {});
        Results { busy: Duration::ZERO, ..results }
    }

    #[test]
    fn the_results_do_not_depend_on_the_number_of_threads() {
        assert_eq!(run(SWEEP, 1, Results::default()), run(SWEEP, 3, Results::default()));
        let one = run_broken(SWEEP, 1, Results::default());
        assert_eq!(one, run_broken(SWEEP, 3, Results::default()));
        assert!(one.findings.len() > MOST_SHRUNK);
        let shrunk: Vec<bool> = one.findings.iter().map(|finding| finding.shrunk.is_some()).collect();
        assert!(
            shrunk[..MOST_SHRUNK].iter().all(|shrunk| *shrunk) && shrunk[MOST_SHRUNK..].iter().all(|shrunk| !shrunk)
        );
    }

    #[test]
    fn a_sweep_that_was_interrupted_comes_to_the_same() {
        for run in [run, run_broken] {
            let part = run(Sweep { seeds: 2 * CHUNK, ..SWEEP }, 2, Results::default());
            assert_eq!(run(SWEEP, 2, part), run(SWEEP, 2, Results::default()));
        }
    }

    #[test]
    fn findings_of_seeds_that_were_recorded_are_not_counted_again() {
        let part = run_broken(Sweep { seeds: 500, ..SWEEP }, 1, Results::default());
        let recorded = Results { recorded: part.done, ..part.clone() };
        let all = run_broken(SWEEP, 1, recorded);
        assert_eq!(SWEEP.unrecorded(&all) + part.findings.len(), all.findings.len());
    }
}
