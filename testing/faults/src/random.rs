//! A small seeded generator, so that a failing round can be run again with the same choices.

use std::time::{Duration, Instant};

/// The end of a pause is spent spinning: a sleeping thread wakes up too late to hit a race of a few microseconds.
const SPIN: Duration = Duration::from_micros(150);

/// SplitMix64. Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A place in something of that length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// Waits between nothing and that many microseconds; nothing at all in one case of four.
    pub(crate) fn pause(&mut self, most_microseconds: u64) {
        if self.below(4) == 0 {
            return;
        }
        wait_exactly(Duration::from_micros(self.below(most_microseconds)));
    }
}

/// Waits that long, to the microsecond as far as the machine can.
pub(crate) fn wait_exactly(time: Duration) {
    let start = Instant::now();
    std::thread::sleep(time.saturating_sub(SPIN));
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A seed of its own for each check and round, so that they can be run alone with the same choices.
pub(crate) fn derive_seed(seed: u64, name: &str, round: usize) -> u64 {
    let mut random = Random::new(seed ^ (round as u64));
    let mut mixed = random.next();
    for byte in name.bytes() {
        mixed = Random::new(mixed ^ u64::from(byte)).next();
    }
    mixed
}
