//! What all worlds on the executor share: a script is drawn from a seed, played until nothing will ever happen again, and
//! made as small as it gets if it breaks a law.

use std::fmt;

use crate::executor::Executor;
use crate::law::{Law, Violation};
use crate::quiet;
use crate::record::Record;

/// More steps than this, and it will never come to rest.
const MOST_STEPS: u64 = 2_000_000;

/// What happens in one run, before anything runs.
pub(crate) trait Script: Clone + fmt::Display {
    /// What can be left out.
    type Step: Clone;

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
    fn script(seed: u64) -> Self::Script;

    /// Sets the stage; `kept` keeps the lines of the record.
    fn new(script: &Self::Script, kept: bool) -> Self;

    fn executor(&self) -> &Executor;

    fn with_record<T>(&self, body: impl FnOnce(&mut Record) -> T) -> T;

    /// Nothing will ever happen again: the checks that are left.
    fn at_last(&self);

    fn totals(&self, trace: u64) -> Self::Totals;
}

/// Runs a seed, and checks every law.
pub(crate) fn run_seed<W: World>(seed: u64) -> Result<W::Totals, Violation> {
    let (totals, violation, _) = run::<W>(&W::script(seed), false);
    violation.map_or(Ok(totals), Err)
}

/// Makes the script of a seed that fails as small as it gets, and tells what happens in it. `None` if it does not fail.
pub(crate) fn shrink<W: World>(seed: u64) -> Option<String> {
    let script = W::script(seed);
    let law = run::<W>(&script, false).1?.law;
    let steps = crate::shrink::shrink(script.steps(), |steps| {
        run::<W>(&script.with_steps(steps), false).1.is_some_and(|violation| violation.law == law)
    });
    let small = script.with_steps(&steps);
    let (_, violation, lines) = run::<W>(&small, true);
    let what = violation.map_or_else(String::new, |violation| violation.to_string());
    Some(format!("{what}\n{small}{}\n", lines.join("\n")))
}

/// What happens under a seed, for people to read.
pub(crate) fn lines<W: World>(seed: u64) -> Vec<String> {
    run::<W>(&W::script(seed), true).2
}

fn run<W: World>(script: &W::Script, kept: bool) -> (W::Totals, Option<Violation>, Vec<String>) {
    quiet::quietly(|| {
        let world = W::new(script, kept);
        play(&world);
        let steps = world.executor().steps();
        let trace = world.with_record(|record| record.trace(steps));
        let totals = world.totals(trace);
        let (violation, lines) = world.with_record(|record| (record.violation().cloned(), record.take_lines()));
        world.executor().clear();
        (totals, violation, lines)
    })
}

fn play<W: World>(world: &W) {
    while world.executor().turn() {
        if world.with_record(|record| record.violation().is_some()) {
            return;
        }
        if world.executor().steps() > MOST_STEPS {
            return world.with_record(|record| record.broken(Law::Isolation, "it never comes to rest"));
        }
    }
    world.at_last();
}
