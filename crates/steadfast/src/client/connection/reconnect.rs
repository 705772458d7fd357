//! How often a client comes back, and how long it waits in between.

use std::time::Duration;

use steadfast_proto::Moment;

use crate::runtime::Runtime;
use crate::runtime::timeout::{exponential_backoff, with_jitter};

/// No policy tries more often than this before it gives up.
const MOST_ATTEMPTS: u32 = 100;

/// No policy waits longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What lasted this long was not made in vain.
const LASTED: Duration = Duration::from_secs(10);

/// How long a server is left alone after all attempts were in vain.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// How a client comes back when its connection is lost.
///
/// It does so only when it is needed: when a call is made, or while changes are listened to. Pauses double, with some
/// chance in them. When all attempts were in vain, each later call has one more, ten seconds after the last at the
/// earliest. A connection that lasts less than ten seconds counts as an attempt in vain.
///
/// Servers at a URL are come back to unless told; others are not unless told.
///
/// ```
/// use std::time::Duration;
/// use steadfast::client::Reconnect;
/// use steadfast::prelude::*;
/// use steadfast::transport::child::Command;
///
/// // The process is started again if it dies.
/// let connecting = Client::connect(Command::new("my-server"))
///     .reconnect(Reconnect::default().attempts(3).longest_pause(Duration::from_secs(2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it says nothing until a client is given it"]
pub struct Reconnect {
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Default for Reconnect {
    /// Five attempts, the first at once, with pauses from 200 milliseconds to 10 seconds.
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(200), longest_pause: Duration::from_secs(10) }
    }
}

impl Reconnect {
    /// What is lost stays lost, and nothing is sent twice.
    pub fn never() -> Self {
        Self { attempts: 0, ..Self::default() }
    }

    /// How often in a row, a hundred times at most.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.min(MOST_ATTEMPTS);
        self
    }

    /// The pause before the second attempt. It doubles from there.
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// The longest pause, five minutes at most.
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause.min(LONGEST_PAUSE);
        self
    }

    /// How often in a row; none if it never comes back.
    pub(crate) fn most(&self) -> u32 {
        self.attempts
    }
}

/// Attempts in vain, in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailureStreak {
    failures: u32,
    last: Option<Moment>,
}

impl FailureStreak {
    /// What was there is lost, after it lasted for so long.
    pub(crate) fn lost(&mut self, now: Moment, lasted: Duration) {
        if lasted >= LASTED {
            *self = Self::default();
        } else {
            self.failed(now);
        }
    }

    /// One more was in vain.
    pub(crate) fn failed(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
    }

    /// How many attempts there may be now.
    pub(crate) fn allowance(&self, policy: &Reconnect) -> u32 {
        let left = policy.attempts.saturating_sub(self.failures);
        if policy.attempts > 0 { left.max(1) } else { 0 }
    }

    /// Whether all of them were in vain.
    pub(crate) fn is_spent(&self, policy: &Reconnect) -> bool {
        self.failures >= policy.attempts
    }

    /// When the next may be made.
    pub(crate) fn next(&self, policy: &Reconnect, runtime: &dyn Runtime) -> Moment {
        let now = runtime.now();
        match (self.failures.checked_sub(1), self.last) {
            (None, _) => now,
            (Some(_), Some(last)) if self.is_spent(policy) => now.max(last + LEFT_ALONE),
            (Some(times), _) => {
                now + with_jitter(runtime, exponential_backoff(policy.first_pause, times, policy.longest_pause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::frozen::FrozenRuntime;

    fn still(millis: u64) -> FrozenRuntime {
        FrozenRuntime { now: at(millis), random_byte: 128 }
    }

    fn at(millis: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(millis))
    }

    #[test]
    fn pauses_double_up_to_the_ceiling_and_are_never_longer() {
        let policy = Reconnect::default().attempts(50).longest_pause(Duration::from_secs(1));
        let mut streak = FailureStreak::default();
        assert_eq!(streak.next(&policy, &still(0)), at(0));
        for most in [200, 400, 800, 1_000, 1_000] {
            streak.failed(at(0));
            let pause = streak.next(&policy, &still(0));
            assert!(pause >= at(most / 2) && pause <= at(most), "{pause:?} of {most}");
        }
    }

    #[test]
    fn after_all_attempts_there_is_one_more_ten_seconds_later() {
        let policy = Reconnect::default();
        let mut streak = FailureStreak::default();
        for failures in 0..5 {
            assert_eq!(streak.allowance(&policy), 5 - failures);
            streak.failed(at(1_000));
        }
        assert_eq!(streak.allowance(&policy), 1);
        assert_eq!(streak.next(&policy, &still(2_000)), at(11_000));
        assert_eq!(streak.next(&policy, &still(20_000)), at(20_000));
    }

    #[test]
    fn what_lived_briefly_was_in_vain_and_what_lasted_was_not() {
        let mut streak = FailureStreak::default();
        streak.lost(at(0), Duration::from_secs(9));
        assert_eq!(streak.allowance(&Reconnect::default()), 4);
        streak.lost(at(0), Duration::from_secs(10));
        assert_eq!(streak.allowance(&Reconnect::default()), 5);
    }

    #[test]
    fn never_is_never_and_ceilings_are_real() {
        assert_eq!(FailureStreak::default().allowance(&Reconnect::never()), 0);
        assert_eq!(Reconnect::default().attempts(u32::MAX).most(), MOST_ATTEMPTS);
        assert_eq!(Reconnect::default().longest_pause(Duration::MAX).longest_pause, LONGEST_PAUSE);
    }
}
