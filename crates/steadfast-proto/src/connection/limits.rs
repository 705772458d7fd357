//! How much a connection may hold, and how long it may take.
//!
//! Every number has a reason; a limit that nobody would ever want to change is not here.

use std::time::Duration;

/// The limits of one connection (law L7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message taken, in bytes. Longer ones are refused under their id and not kept. 16 MiB: a base64 image
    /// of 12 MB.
    pub message_bytes: usize,
    /// The deepest nesting taken, at most 1,024. People send nothing deeper than a few dozen. Where arguments are read
    /// into a tree of JSON values, serde_json stops at 128 levels, and the tool's caller is told so.
    pub depth: usize,
    /// Requests that may run at once, counting those that were cancelled and have not really ended. Past it a request is
    /// refused with a clear error. 16,384: an idle async handler costs about a kilobyte.
    pub in_flight: usize,
    /// Bytes of parameters that requests in flight may hold together.
    pub in_flight_bytes: usize,
    /// Members of one batch (2025-03-26 only).
    pub batch: usize,
    /// Bytes of answers and notifications waiting to be written. Past it, input is not read until the peer has read some
    /// of them. 16 MiB: one message of the longest kind.
    pub outbox_bytes: usize,
    /// Calls to the peer that may wait for their answer at once. `tasks/cancel` and `resources/unsubscribe` each have a limit
    /// of their own, of the same size.
    pub calls: usize,
    /// Log messages of one request that may wait to be written; more are dropped and counted.
    pub queued_logs: usize,
    /// Streams of notifications (`subscriptions/listen`) that may be open at once. They are the only requests without a
    /// deadline. Few clients need more than one.
    pub subscriptions: usize,
    /// Resources and tasks whose changes are told: in one such stream, or by `resources/subscribe` before 2026-07-28.
    pub subscribed: usize,
    /// The least time between two progress notifications of one request. What comes faster is merged into the newest.
    pub progress_interval: Duration,
    /// How long a handler may take before its request is answered with an error and it is stopped.
    pub handler_deadline: Option<Duration>,
    /// How long running handlers may go on to answer after the peer ended its stream or a shutdown began. However long, it
    /// ends early enough for them to be stopped before `drain_deadline`: see [`Limits::handler_window`].
    pub drain_window: Duration,
    /// How long everything may take to end from that same moment: cleanups, shields and the last writes too.
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
    /// How long handlers may go on when a connection ends: `drain_window`, or less where that would leave no time to stop them
    /// and to run their cleanups before `drain_deadline`.
    pub fn handler_window(&self) -> Duration {
        let reserve =
            if crate::mutant!(StopTooLate) { Duration::ZERO } else { STOP_RESERVE.min(self.drain_deadline / 10) };
        self.drain_window.min(self.drain_deadline.saturating_sub(reserve))
    }
}
