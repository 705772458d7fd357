//! Keys of requests and calls. No key is used twice.

use std::fmt;

/// Identifies a request of the peer and its execution. Request ids are chosen by the peer and may be reused; keys are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboundRequestKey(pub(super) u64);

/// Identifies a call of ours to the peer. The caller chooses it, so that it can cancel the call before the connection has
/// received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

impl CallKey {
    /// The key with this number. Each number may be used once in the life of a connection.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for InboundRequestKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "request {}", self.0)
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call {}", self.0)
    }
}
