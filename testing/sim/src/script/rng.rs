//! Numbers that look random and come from a seed: the same seed gives the same numbers on every machine.
//!
//! This is splitmix64. It needs no more than to be well spread; nothing here is a secret.

use std::time::Duration;

/// A generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator of a seed. `stream` tells apart several generators of one seed, so that drawing more from one does
    /// not change the others.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Neighbouring seeds begin far apart.
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero if `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// An index into something of that length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True this often in a hundred.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// A duration up to `most`, short ones more often than long ones: most races are between things that are close.
    pub(crate) fn delay(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let bound = match self.below(4) {
            0 => most.min(2),
            1 => most / 100,
            2 => most / 10,
            _ => most,
        };
        Duration::from_micros(self.below(bound + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_gives_others() {
        let numbers = |seed, stream| {
            let mut random = Random::new(seed, stream);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, 0), numbers(1, 0));
        assert_ne!(numbers(1, 0), numbers(2, 0));
        assert_ne!(numbers(1, 0), numbers(1, 1));
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(3, 0);
        assert!((0..1_000).all(|_| (3..=5).contains(&random.between(3, 5))));
        assert_eq!(random.below(0), 0);
    }
}
