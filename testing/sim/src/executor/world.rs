//! What all worlds on the executor share: a script is drawn from a seed, played until nothing will ever happen again, and
//! made as small as it gets if it breaks a law.

use std::fmt;

use crate::executor::Executor;
use crate::law::{Law, Violation};
use crate::observation::record::Record;
use crate::panics;
use crate::seed::Seed;
use crate::sweep::generalized;
use crate::worlds::Shrunk;

/// More steps than this, and it will never come to rest.
const MOST_STEPS: u64 = 2_000_000;

/// What happens in one run, before anything runs.
pub(crate) trait Script: Clone + fmt::Display {
    /// What can be left out.
    type Step: Clone;

    /// What kind of step it is, for people.
    fn kind(step: &Self::Step) -> String;

    fn steps(&self) -> &[Self::Step];

    /// The same with these steps instead.
    fn with_steps(&self, steps: &[Self::Step]) -> Self;
}

/// A run that can be played.
pub(crate) trait World: Sized {
    type Script: Script;
    /// What a run came to.
    type Totals;

    /// The script of a seed.
    fn script(seed: Seed) -> Self::Script;

    /// Builds the world; `kept` records the lines, too.
    fn new(script: &Self::Script, kept: bool) -> Self;

    fn executor(&self) -> &Executor;

    fn with_record<T>(&self, body: impl FnOnce(&mut Record) -> T) -> T;

    /// Nothing will ever happen again: the checks that are left.
    fn at_last(&self);

    fn totals(&self, trace: u64) -> Self::Totals;
}

/// Runs a seed, and checks every law.
pub(crate) fn run_seed<W: World>(seed: Seed) -> Result<W::Totals, Violation> {
    let (totals, violation, _) = run::<W>(&W::script(seed), false);
    violation.map_or(Ok(totals), Err)
}

/// Makes the script of a seed that fails as small as it gets while it fails in the same way. `None` if it does not fail.
pub(crate) fn shrink<W: World>(seed: Seed) -> Option<Shrunk> {
    let script = W::script(seed);
    let cause = |violation: Violation| (violation.law, generalized(&violation.what));
    let first = run::<W>(&script, false).1.map(cause)?;
    let steps = crate::script::shrink::shrink(script.steps(), |steps| {
        run::<W>(&script.with_steps(steps), false).1.map(cause).is_some_and(|found| found == first)
    });
    let small = script.with_steps(&steps);
    let (_, violation, lines) = run::<W>(&small, true);
    let steps = steps.iter().map(W::Script::kind).collect();
    Some(Shrunk { violation: violation?, steps, text: format!("{small}{}\n", lines.join("\n")) })
}

/// What happens under a seed, for people to read.
pub(crate) fn lines<W: World>(seed: Seed) -> Vec<String> {
    run::<W>(&W::script(seed), true).2
}

fn run<W: World>(script: &W::Script, kept: bool) -> (W::Totals, Option<Violation>, Vec<String>) {
    panics::quietly(|| {
        let world = W::new(script, kept);
        play(&world);
        let steps = world.executor().steps();
        let trace = world.with_record(|record| record.trace(steps));
        let totals = world.totals(trace);
        let (violation, lines) = world.with_record(|record| (record.violation().cloned(), record.take_lines()));
        let executor = world.executor().clone();
        executor.clear();
        drop(world);
        // Whatever still refers to it will never be dropped: a leak, here or in what is simulated.
        let leaked = executor.references() > 1;
        let leak = || Violation {
            law: Law::Closing,
            what: "expected no references at the end of the run, observed a leak".to_owned(),
        };
        let violation = violation.or_else(|| leaked.then(leak));
        (totals, violation, lines)
    })
}

fn play<W: World>(world: &W) {
    while world.executor().turn() {
        if world.with_record(|record| record.violation().is_some()) {
            return;
        }
        if world.executor().steps() > MOST_STEPS {
            return world.with_record(|record| {
                record.broken(Law::Isolation, "expected the run to come to rest, observed more steps than the limit");
            });
        }
    }
    world.at_last();
}
