//! The limits of a connection: memory, counts and durations.
//!
//! [`Limits`] has the limits of a connection that a user of the library may want to change. Limits that no user of
//! the library has to change are constants in other modules.

use std::time::Duration;

/// The limits of one connection (law L7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum length of a message, in bytes. Longer messages are refused with their id and not stored. The default of 16
    /// MiB is enough for a base64 image of 12 MB.
    pub message_bytes: usize,
    /// The maximum nesting of a message, at most 1,024. Real messages have at most a few dozen levels of nesting. Where the
    /// arguments of a tool are decoded to a JSON value, serde_json stops at 128 levels, and the tool call is refused with its
    /// error.
    pub depth: usize,
    /// The maximum number of requests of the peer that run at once, including cancelled requests whose handler has not ended.
    /// Further requests are refused with an error that says so. The default is 16,384, because an idle async handler costs
    /// about a kilobyte.
    pub in_flight: usize,
    /// The maximum number of bytes that the parameters of all requests in flight may have together.
    pub in_flight_bytes: usize,
    /// The maximum number of messages in one JSON-RPC batch (2025-03-26 only).
    pub batch: usize,
    /// The maximum number of bytes of responses and notifications that are queued for the peer. While `outbox_bytes`
    /// or more are queued for the peer, no input of the peer is read. The default of 16 MiB is one message of the
    /// maximum length.
    pub outbox_bytes: usize,
    /// The maximum number of calls to the peer that wait for a response at once. Calls of `tasks/cancel` and
    /// `resources/unsubscribe` are counted separately, each with the same limit. Calls that the library makes by itself (the
    /// handshake, pings and probes) are not counted.
    pub calls: usize,
    /// The maximum number of log messages of one request that are queued for the peer; further log messages are dropped and
    /// counted.
    pub queued_logs: usize,
    /// The maximum number of subscriptions (`subscriptions/listen`) of the peer that are open at once. The handlers of
    /// subscriptions have no deadline. Few clients need more than one subscription.
    pub subscriptions: usize,
    /// The maximum number of resources and tasks that a client may subscribe to: with one `subscriptions/listen`, or with
    /// `resources/subscribe` before 2026-07-28.
    pub subscribed: usize,
    /// The minimum time between two progress notifications of one request. Of the progress reports in between, only the newest
    /// is sent.
    pub progress_interval: Duration,
    /// The maximum duration of a handler; then its request is answered with an error and the handler is stopped.
    pub handler_deadline: Option<Duration>,
    /// How long running handlers may still answer after the peer closed its stream or a shutdown began.
    /// `drain_window` is shortened if handlers could otherwise not be stopped before `drain_deadline`: see
    /// [`Limits::handler_window`].
    pub drain_window: Duration,
    /// How long the connection may take to close after the peer closed its stream or a shutdown began, including the cleanups
    /// and shielded sections of handlers, and the last writes.
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

/// The time at the end of a connection's shutdown that is reserved to stop handlers: this, or a tenth of `drain_deadline` if
/// that is less.
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
