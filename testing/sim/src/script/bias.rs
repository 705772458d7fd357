//! Scripts that are changed towards what is rare, after they were drawn.
//!
//! What breaks is mostly what almost never happens: a limit of one, an end in the middle of everything, a cancellation
//! right after its call. Each world has a list of such changes (`bias.rs` in its folder). They are drawn from numbers of
//! their own, so a script that is left as it was is the same as ever.

use std::fmt::Debug;
use std::hash::Hasher;
use std::time::Duration;

use crate::observation::trace::FnvHasher;
use crate::script::rng::Random;

/// The first of the streams of numbers that decide about these changes.
const STREAM: u64 = 77_000;

/// Scripts that stay as they were drawn, in a hundred.
const UNCHANGED: u64 = 45;

/// What decides about the changes of one script. Each change has numbers of its own, so that one that is added or altered
/// leaves the others as they were.
pub(crate) struct Bias {
    seed: u64,
    none: bool,
}

impl Bias {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, none: Random::new(seed, STREAM).chance(UNCHANGED) }
    }

    /// The numbers for a change, if it is to be made: so often in a hundred. Changes are distinguished by their names.
    pub(crate) fn change(&self, name: &str, percent: u64) -> Option<Random> {
        let mut hash = FnvHasher::default();
        hash.write(name.as_bytes());
        let mut random = Random::new(self.seed, STREAM ^ hash.finish());
        (!self.none && random.chance(percent)).then_some(random)
    }
}

/// The name of a variant: what its `Debug` form begins with.
pub(crate) fn kind(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// A short time, as often as not zero: how long after a call it is dropped.
pub(crate) fn soon(random: &mut Random) -> Duration {
    if random.chance(40) { Duration::ZERO } else { random.delay(Duration::from_millis(900)) }
}

/// Puts items into a list, each after the position that `behind` returns for the item before it.
pub(crate) fn insert_behind<T>(items: &mut Vec<T>, mut behind: impl FnMut(&T) -> Option<T>) {
    let before = std::mem::take(items);
    for item in before {
        let more = behind(&item);
        items.push(item);
        items.extend(more);
    }
}
