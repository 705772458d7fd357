//! The limits of a connection: memory, counts and durations.
//!
//! Every default has a reason. Limits that no user has to change are constants elsewhere.

use std::time::Duration;

/// The limits of one connection (law L7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum length of a message, in bytes. Longer ones are refused with their id and not stored. 16 MiB: a base64 image
    /// of 12 MB.
    pub message_bytes: usize,
    /// The maximum nesting of a message, at most 1,024. Real messages have a few dozen levels. Where arguments are decoded to
    /// a JSON value, serde_json stops at 128 levels, and the call is refused with that error.
    pub depth: usize,
    /// How many requests may run at once, including cancelled ones whose handler has not ended. Further requests are refused
    /// with an error that says so. 16,384: an idle async handler costs about a kilobyte.
    pub in_flight: usize,
    /// How many bytes the parameters of all requests in flight may have together.
    pub in_flight_bytes: usize,
    /// How many messages one batch may have (2025-03-26 only).
    pub batch: usize,
    /// How many bytes of responses and notifications may be queued. Above it, input is not read until the peer has read some of
    /// them. 16 MiB: one message of the maximum length.
    pub outbox_bytes: usize,
    /// How many calls to the peer may wait for a response at once. `tasks/cancel` and `resources/unsubscribe` are counted
    /// separately, each with the same limit. What a side sends by itself
    /// (its handshake, pings and probes) is not counted.
    pub calls: usize,
    /// How many log messages of one request may be queued; further ones are dropped and counted.
    pub queued_logs: usize,
    /// How many streams of notifications (`subscriptions/listen`) may be open at once. They are the only requests without a
    /// deadline. Few clients need more than one.
    pub subscriptions: usize,
    /// How many resources and tasks one such stream, or `resources/subscribe` before 2026-07-28, may subscribe to.
    pub subscribed: usize,
    /// The minimum time between two progress notifications of one request. Of those in between only the newest is sent.
    pub progress_interval: Duration,
    /// How long a handler may take before its request is answered with an error and it is stopped.
    pub handler_deadline: Option<Duration>,
    /// How long running handlers may still answer after the peer closed its stream or a shutdown began. It is shortened so
    /// that handlers can be stopped before `drain_deadline`: see [`Limits::handler_window`].
    pub drain_window: Duration,
    /// How long the connection may take to close after the peer closed its stream or a shutdown began, including cleanups,
    /// shields and the last writes.
    pub drain_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            depth: 512,
            in_flight: 16_384,
            in_flight_bytes: 64 << 20,
            batch: 1_024,
            outbox_bytes: 16 << 20,
            calls: 16_384,
            queued_logs: 64,
            subscriptions: 64,
            subscribed: 4_096,
            progress_interval: Duration::from_millis(5),
            handler_deadline: Some(Duration::from_secs(24 * 60 * 60)),
            drain_window: Duration::from_secs(1),
            // Common clients send SIGTERM two seconds after they closed our input.
            drain_deadline: Duration::from_millis(1_900),
        }
    }
}

/// The time at the end of a drain that is reserved for stopping handlers: this, or a tenth of the drain if that is less.
const STOP_RESERVE: Duration = Duration::from_millis(250);

impl Limits {
    /// How long handlers may still answer when a connection shuts down: `drain_window`, or less where that would leave no time to
    /// stop them and run their cleanups before `drain_deadline`.
    pub fn handler_window(&self) -> Duration {
        let reserve =
            if crate::mutant!(StopTooLate) { Duration::ZERO } else { STOP_RESERVE.min(self.drain_deadline / 10) };
        self.drain_window.min(self.drain_deadline.saturating_sub(reserve))
    }
}
