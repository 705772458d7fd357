//! Whether the first poll of a handler is quick, judged by those before.
//!
//! Each tool, prompt and resource has a history. The first polls of a handler run on the workers until enough of them
//! were ready at once and quick; from then on they run on the thread of an I/O loop. A slow or pending poll counts
//! against the handler, and one for which the loop had to be taken over bars it for a while, for longer each time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::runtime::tokio::since_origin;

/// A first poll that takes longer than this is not quick.
const QUICK: Duration = Duration::from_micros(200);

/// When the count of a handler's quick first polls, which each slow poll halves, has reached this number, the next
/// first poll is expected to be quick.
const REQUIRED: u32 = 16;

/// The count does not exceed this, so that a few slow polls in a row always show.
const MAX_COUNT: u32 = 64;

/// For how long a handler is barred after a takeover: the first time, and at most.
const MIN_BAR: Duration = Duration::from_millis(500);
const MAX_BAR: Duration = Duration::from_secs(60);

/// A bar that ended this many times its own length ago is forgotten: the next bar is the first again.
const BAR_MEMORY: u64 = 10;

/// How quick the first polls of one handler were.
#[derive(Debug, Default)]
pub(crate) struct FirstPollHistory {
    /// Quick polls, halved by each slow or pending one.
    count: AtomicU32,
    /// The mean time of quick polls, in nanoseconds.
    mean: AtomicU32,
    /// Until when quick polls do not count, in milliseconds since the origin of the process's clock.
    barred_until: AtomicU64,
    /// The length of the last bar, in milliseconds.
    bar: AtomicU64,
}

impl FirstPollHistory {
    /// Whether the next first poll is expected to be quick.
    pub(crate) fn is_quick(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= REQUIRED
    }

    /// How long the next first poll is expected to take.
    pub(crate) fn expected(&self) -> Duration {
        Duration::from_nanos(self.mean.load(Ordering::Relaxed).into())
    }

    /// Counts a first poll of the handler as quick or slow. Several threads may count polls at once: a count that is
    /// lost does not matter.
    pub(crate) fn record(&self, took: Duration, ready: bool) {
        let count = self.count.load(Ordering::Relaxed);
        if !ready || took > QUICK {
            self.count.store(count / 2, Ordering::Relaxed);
            return;
        }
        let (mean, nanos) = (self.mean.load(Ordering::Relaxed), u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
        self.mean.store(mean - mean / 8 + nanos / 8, Ordering::Relaxed);
        if count < MAX_COUNT && (count >= REQUIRED || !self.is_barred()) {
            self.count.store(count + 1, Ordering::Relaxed);
        }
    }

    /// The loop was taken over because a poll of the handler lasted too long.
    pub(super) fn bar(&self) {
        self.bar_at(since_origin());
    }

    /// [`FirstPollHistory::bar`] at this time since the origin of the process's clock.
    fn bar_at(&self, now: Duration) {
        let (now, last) = (millis(now), self.bar.load(Ordering::Relaxed));
        let is_forgotten = now > self.barred_until.load(Ordering::Relaxed) + last * BAR_MEMORY;
        let length = if is_forgotten { 0 } else { last * 2 }.clamp(millis(MIN_BAR), millis(MAX_BAR));
        self.bar.store(length, Ordering::Relaxed);
        self.barred_until.store(now + length, Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
    }

    fn is_barred(&self) -> bool {
        let until = self.barred_until.load(Ordering::Relaxed);
        until > 0 && millis(since_origin()) < until
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANO: Duration = Duration::from_nanos(1);

    fn quick(polls: u32) -> FirstPollHistory {
        let history = FirstPollHistory::default();
        (0..polls).for_each(|_| history.record(QUICK, true));
        history
    }

    #[test]
    fn a_handler_is_quick_after_enough_quick_polls_and_not_before() {
        assert!(!quick(REQUIRED - 1).is_quick());
        assert!(quick(REQUIRED).is_quick());
    }

    #[test]
    fn a_slow_or_pending_poll_halves_the_count() {
        for (took, ready) in [(QUICK + NANO, true), (NANO, false)] {
            let history = quick(REQUIRED);
            history.record(took, ready);
            assert!(!history.is_quick());
            (0..REQUIRED / 2).for_each(|_| history.record(NANO, true));
            assert!(history.is_quick());
        }
    }

    #[test]
    fn one_slow_poll_of_a_handler_that_was_quick_for_long_is_forgiven_and_three_are_not() {
        let history = quick(1000);
        history.record(QUICK + NANO, true);
        assert!(history.is_quick());
        history.record(QUICK + NANO, true);
        history.record(QUICK + NANO, true);
        assert!(!history.is_quick());
    }

    #[test]
    fn quick_polls_during_a_bar_do_not_count() {
        let history = quick(1000);
        history.bar();
        (0..1000).for_each(|_| history.record(NANO, true));
        assert!(!history.is_quick());
    }

    #[test]
    fn bars_become_longer_up_to_a_maximum() {
        let history = FirstPollHistory::default();
        let lengths = [(); 9].map(|()| {
            history.bar();
            Duration::from_millis(history.bar.load(Ordering::Relaxed))
        });
        assert_eq!((lengths[0], lengths[1], lengths[8]), (MIN_BAR, MIN_BAR * 2, MAX_BAR));
    }

    #[test]
    fn a_bar_that_ended_long_ago_is_forgotten() {
        let history = FirstPollHistory::default();
        let bar = |now: Duration| {
            history.bar_at(now);
            Duration::from_millis(history.bar.load(Ordering::Relaxed))
        };
        assert_eq!((bar(MAX_BAR), bar(MAX_BAR + MIN_BAR)), (MIN_BAR, MIN_BAR * 2));
        assert_eq!(bar(MAX_BAR * 2), MIN_BAR);
    }

    #[test]
    fn the_expected_time_follows_the_polls() {
        let history = FirstPollHistory::default();
        (0..100).for_each(|_| history.record(Duration::from_micros(100), true));
        let expected = history.expected();
        assert!(expected > Duration::from_micros(90) && expected < Duration::from_micros(110), "{expected:?}");
    }
}
