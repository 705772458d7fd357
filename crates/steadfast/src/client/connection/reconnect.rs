//! The reconnect policy of a client: how often it tries, and how long it waits in between.

use std::time::Duration;

use steadfast_proto::Moment;

use crate::runtime::Runtime;
use crate::runtime::timeout::{exponential_backoff, with_jitter};

/// The upper limit of [`ReconnectPolicy::attempts`].
const MAX_ATTEMPTS: u32 = 100;

/// The upper limit of [`ReconnectPolicy::longest_pause`].
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The uptime of a connection after which the backoff of reconnects resets.
pub(crate) const STABLE_UPTIME: Duration = Duration::from_secs(10);

/// Minimum time between two attempts to reconnect, once all attempts of the policy have failed.
const EXHAUSTED_PAUSE: Duration = Duration::from_secs(10);

/// How a client reconnects when its connection is lost.
///
/// A client reconnects on demand: when a call is sent, or while a program listens to changes. The pause between two
/// attempts to reconnect doubles, with jitter. When all attempts have failed, each later call makes one more attempt,
/// ten seconds after the last attempt at the earliest. A connection that is lost within ten seconds counts as a failed
/// attempt to reconnect.
///
/// HTTP clients reconnect by default; other clients do not.
///
/// ```
/// use std::time::Duration;
/// use steadfast::client::ReconnectPolicy;
/// use steadfast::prelude::*;
/// use steadfast::transport::child::Command;
///
/// // Restart the process if it exits.
/// let connecting = Client::connect(Command::new("my-server"))
///     .reconnect(ReconnectPolicy::default().attempts(3).longest_pause(Duration::from_secs(2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a policy does nothing until it is passed to `ConnectBuilder::reconnect`"]
pub struct ReconnectPolicy {
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Default for ReconnectPolicy {
    /// Five attempts to reconnect, the first without a pause, with pauses from 200 milliseconds to 10 seconds in
    /// between.
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(200), longest_pause: Duration::from_secs(10) }
    }
}

impl ReconnectPolicy {
    /// Never reconnects, and never sends a call twice.
    pub fn never() -> Self {
        Self { attempts: 0, ..Self::default() }
    }

    /// The maximum number of attempts to reconnect in a row; numbers above 100 count as 100.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.min(MAX_ATTEMPTS);
        self
    }

    /// The pause before the second attempt to reconnect. The pause doubles with each further attempt.
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// The longest pause between two attempts to reconnect; at most five minutes are possible.
    pub fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause.min(LONGEST_PAUSE);
        self
    }

    /// The maximum number of attempts to reconnect in a row; zero if the client does not reconnect.
    pub(crate) fn max_attempts(&self) -> u32 {
        self.attempts
    }
}

/// The failed attempts of a client to reconnect, in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReconnectFailureStreak {
    failures: u32,
    last_failure: Option<Moment>,
}

impl ReconnectFailureStreak {
    /// Records the loss of a connection: it counts as a failed attempt if the uptime of the connection was short, and
    /// otherwise ends the streak of failures.
    pub(crate) fn record_loss(&mut self, now: Moment, uptime: Duration) {
        if uptime >= STABLE_UPTIME {
            *self = Self::default();
        } else {
            self.record_failure(now);
        }
    }

    /// Records a failed attempt to reconnect.
    pub(crate) fn record_failure(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(now);
    }

    /// The number of attempts to reconnect that may be made now: at least one, if the policy allows any.
    pub(crate) fn remaining_attempts(&self, policy: &ReconnectPolicy) -> u32 {
        let left = policy.attempts.saturating_sub(self.failures);
        if policy.attempts > 0 { left.max(1) } else { 0 }
    }

    /// Whether all attempts to reconnect have failed.
    pub(crate) fn is_exhausted(&self, policy: &ReconnectPolicy) -> bool {
        self.failures >= policy.attempts
    }

    /// Returns when the next attempt to reconnect may be made.
    pub(crate) fn next_attempt_at(&self, policy: &ReconnectPolicy, runtime: &dyn Runtime) -> Moment {
        let now = runtime.now();
        match (self.failures.checked_sub(1), self.last_failure) {
            (None, _) => now,
            (Some(_), Some(last)) if self.is_exhausted(policy) => now.max(last + EXHAUSTED_PAUSE),
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

    fn frozen_at(millis: u64) -> FrozenRuntime {
        FrozenRuntime { now: at(millis), random_byte: 128 }
    }

    fn at(millis: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(millis))
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = ReconnectPolicy::default().attempts(50).longest_pause(Duration::from_secs(1));
        let mut streak = ReconnectFailureStreak::default();
        assert_eq!(streak.next_attempt_at(&policy, &frozen_at(0)), at(0));
        for longest in [200, 400, 800, 1_000, 1_000] {
            streak.record_failure(at(0));
            let pause = streak.next_attempt_at(&policy, &frozen_at(0));
            assert!(pause >= at(longest / 2) && pause <= at(longest), "{pause:?} of {longest}");
        }
    }

    #[test]
    fn after_all_attempts_there_is_one_more_ten_seconds_later() {
        let policy = ReconnectPolicy::default();
        let mut streak = ReconnectFailureStreak::default();
        for failures in 0..5 {
            assert_eq!(streak.remaining_attempts(&policy), 5 - failures);
            streak.record_failure(at(1_000));
        }
        assert_eq!(streak.remaining_attempts(&policy), 1);
        assert_eq!(streak.next_attempt_at(&policy, &frozen_at(2_000)), at(11_000));
        assert_eq!(streak.next_attempt_at(&policy, &frozen_at(20_000)), at(20_000));
    }

    #[test]
    fn a_short_uptime_is_a_failure_and_a_long_one_resets_the_backoff() {
        let mut streak = ReconnectFailureStreak::default();
        streak.record_loss(at(0), Duration::from_secs(9));
        assert_eq!(streak.remaining_attempts(&ReconnectPolicy::default()), 4);
        streak.record_loss(at(0), Duration::from_secs(10));
        assert_eq!(streak.remaining_attempts(&ReconnectPolicy::default()), 5);
    }

    #[test]
    fn never_has_no_attempts_and_upper_limits_apply() {
        assert_eq!(ReconnectFailureStreak::default().remaining_attempts(&ReconnectPolicy::never()), 0);
        assert_eq!(ReconnectPolicy::default().attempts(u32::MAX).max_attempts(), MAX_ATTEMPTS);
        assert_eq!(ReconnectPolicy::default().longest_pause(Duration::MAX).longest_pause, LONGEST_PAUSE);
    }
}
