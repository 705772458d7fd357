//! Counters for observation. No behaviour of a connection depends on its counters.

/// The counters of a connection, such as the numbers of received messages, answered requests and dropped
/// notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionStatistics {
    /// The number of messages that arrived from the peer.
    pub messages_in: u64,
    /// The number of messages handed to the writer.
    pub messages_out: u64,
    /// The number of requests of the peer that were accepted.
    pub accepted: u64,
    /// The number of accepted requests that were answered.
    pub answered: u64,
    /// The number of accepted requests that the peer cancelled.
    pub cancelled: u64,
    /// The number of messages of the peer that were refused.
    pub refused: u64,
    /// The number of results that handlers returned after their request had already ended.
    pub late_answers: u64,
    /// The number of cancellations by the peer of requests that were not open.
    pub late_cancels: u64,
    /// The number of responses of the peer with an unknown id.
    pub unknown_responses: u64,
    /// The number of notifications to the peer, such as progress and log messages, that were merged or dropped.
    pub dropped_notifications: u64,
    /// The number of handlers that had not ended when the connection closed at its deadline.
    pub abandoned: usize,
}
