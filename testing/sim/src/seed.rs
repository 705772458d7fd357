//! A seed: the number that decides everything in one run.

use std::fmt;

/// A seed, and how its script is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed {
    /// The number.
    pub number: u64,
    /// The script stays as it is first drawn (`--no-bias`). Otherwise `bias.rs` of the world may change it afterwards, so that
    /// rare situations occur often.
    ///
    /// Seeds that failed before there was a bias are listed with `plain`, and draw the same script as they did then.
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
        write!(formatter, "{}{}", self.number, if self.plain { " --no-bias" } else { "" })
    }
}
