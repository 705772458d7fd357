//! A seed: the number that decides everything in one run.

use std::fmt;

/// A seed, and how its script is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed {
    /// The number.
    pub number: u64,
    /// The script stays as it is first drawn. Otherwise about half of all scripts are then changed so that what is rare
    /// happens often: limits of one, long poll intervals, an end in the middle, a cancellation right behind each call.
    ///
    /// Seeds that failed before there was such a change keep their meaning with this.
    pub plain: bool,
}

impl Seed {
    /// The seed with the script as it is first drawn.
    pub fn plain(number: u64) -> Self {
        Self { number, plain: true }
    }
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        Self { number, plain: false }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.number, if self.plain { " --plain" } else { "" })
    }
}
