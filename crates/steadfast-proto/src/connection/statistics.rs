//! Counters for observation. No behaviour depends on them.

/// The counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConnectionStatistics {
    /// Messages that arrived.
    pub messages_in: u64,
    /// Messages handed to the writer.
    pub messages_out: u64,
    /// Requests that were accepted.
    pub accepted: u64,
    /// Accepted requests that were answered.
    pub answered: u64,
    /// Accepted requests that the peer cancelled.
    pub cancelled: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// Results of handlers whose request had already ended.
    pub late_answers: u64,
    /// Cancellations of requests that were not open.
    pub late_cancels: u64,
    /// Responses with an unknown id.
    pub unknown_responses: u64,
    /// Progress and log messages that were merged or dropped.
    pub dropped_notifications: u64,
    /// Executions that had not ended when the connection closed at its deadline.
    pub abandoned: usize,
}
