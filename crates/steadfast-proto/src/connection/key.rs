//! Names for lives: one for each execution, one for each call, never used twice.

use std::fmt;

/// Names one inbound request and its execution for as long as either lives. Ids are chosen by the peer and may be used
/// again; a key is ours and is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) u64);

/// Names one call of ours to the peer. Chosen by who makes the call, once, so that the call can be given up before the
/// connection has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

impl CallKey {
    /// The key with this number. Each number may be used once in the life of a connection.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "request {}", self.0)
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call {}", self.0)
    }
}
