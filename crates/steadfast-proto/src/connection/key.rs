//! Keys that identify requests of the peer and calls of this side. A key is never used for a second request or call
//! of the connection.

use std::fmt;

/// Identifies a request of the peer and the execution of its handler. Request ids are chosen by the peer and may be reused;
/// keys are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboundRequestKey(pub(super) u64);

/// Identifies a call of this side to the peer. The caller chooses the key of a call, so that it can cancel the call before the
/// connection has received the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

impl CallKey {
    /// The key of a call, with this number. Each key number may be used once in the life of a connection.
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
