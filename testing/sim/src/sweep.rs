//! A sweep: many seeds of one world, on all cores, that can be interrupted and taken up again.
//!
//! Seeds are dealt out in chunks and their results are put together in the order of the seeds, so the result, the hash of
//! all traces among it, does not depend on how many threads there are nor on where a sweep was interrupted. What breaks a
//! law is shrunk, and grouped by what it says once it is small.

mod groups;
mod progress;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) use groups::generalized;
pub use groups::{Finding, Group, groups};
pub use progress::ProgressFile;

use crate::coverage::Coverage;
use crate::law::{Law, Violation};
use crate::quiet;
use crate::seed::Seed;
use crate::worlds::{Counts, World};

/// So many seeds are dealt out at once.
const CHUNK: u64 = 250;

/// So many findings are shrunk; of the others only the seed and the message are kept.
const MOST_SHRUNK: u64 = 200;

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
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// How many seeds were run, from the first one on.
    pub done: u64,
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
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.counts += other.counts;
        self.coverage.add(other.coverage);
        self.findings.extend(other.findings);
        self.busy += other.busy;
    }

    /// Seeds per second and core.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn rate(&self) -> f64 {
        let seconds = self.busy.as_secs_f64();
        if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 }
    }
}

impl Sweep {
    /// Runs what is left after `before` on so many threads. `watch` is called with all results so far, now and then.
    pub fn run(self, jobs: usize, before: Results, mut watch: impl FnMut(&Results)) -> Results {
        let (first, chunks) = (before.done, self.seeds.saturating_sub(before.done).div_ceil(CHUNK));
        let (next, shrunk) = (AtomicU64::new(0), AtomicU64::new(0));
        let (sender, receiver) = mpsc::channel();
        let mut all = before;
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                let (sender, next, shrunk) = (sender.clone(), &next, &shrunk);
                scope.spawn(move || {
                    loop {
                        let chunk = next.fetch_add(1, Ordering::Relaxed);
                        if chunk >= chunks || sender.send((chunk, self.chunk(first, chunk, shrunk))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            // Chunks that were done before their turn.
            let mut early = BTreeMap::new();
            let mut turn = 0;
            for (chunk, results) in receiver {
                early.insert(chunk, results);
                while let Some(results) = early.remove(&turn) {
                    all.add(results);
                    turn += 1;
                }
                watch(&all);
            }
        });
        all
    }

    fn chunk(self, first: u64, chunk: u64, shrunk: &AtomicU64) -> Results {
        let begin = first + chunk * CHUNK;
        let end = (begin + CHUNK).min(self.seeds);
        drop(Coverage::take());
        let began = Instant::now();
        let mut results = Results { done: end - begin, ..Results::default() };
        let mut failed = Vec::new();
        for offset in begin..end {
            let seed = Seed { number: self.start.wrapping_add(offset), plain: self.plain };
            match catch_unwind(|| self.world.run(seed)) {
                Ok(Ok(counts)) => results.counts += counts,
                Ok(Err(violation)) => failed.push((seed, violation)),
                Err(panic) => failed.push((seed, panicked(&*panic))),
            }
        }
        results.coverage = Coverage::take();
        results.busy = began.elapsed();
        results.findings.extend(failed.into_iter().map(|(seed, violation)| {
            let few = shrunk.fetch_add(1, Ordering::Relaxed) < MOST_SHRUNK;
            let shrink = || catch_unwind(|| self.world.shrink(seed)).ok().flatten();
            Finding { seed, violation, shrunk: few.then(shrink).flatten() }
        }));
        results
    }
}

/// A panic of the simulator itself, or of what it calls outside of a task.
fn panicked(panic: &(dyn Any + Send)) -> Violation {
    Violation { law: Law::Isolation, what: format!("the run panicked: {}", quiet::text(panic)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: Sweep = Sweep { world: World::Cores, start: 11, seeds: 1_100, plain: false };

    fn run(sweep: Sweep, jobs: usize, before: Results) -> Results {
        sweep.run(jobs, before, |_| {})
    }

    #[test]
    fn the_results_do_not_depend_on_the_number_of_threads() {
        let (one, three) = (run(SWEEP, 1, Results::default()), run(SWEEP, 3, Results::default()));
        assert_eq!((one.done, one.counts, one.coverage), (three.done, three.counts, three.coverage));
    }

    #[test]
    fn a_sweep_that_was_interrupted_comes_to_the_same() {
        let whole = run(SWEEP, 2, Results::default());
        let part = run(Sweep { seeds: 2 * CHUNK, ..SWEEP }, 2, Results::default());
        let rest = run(SWEEP, 2, part);
        assert_eq!((whole.done, whole.counts, whole.coverage), (rest.done, rest.counts, rest.coverage));
    }
}
