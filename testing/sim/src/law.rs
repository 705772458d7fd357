//! The laws, and what it looks like when one is broken.

use std::fmt;

/// A law of the project. What each says is in the README and in `docs/architecture.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// Every accepted request ends exactly once.
    OneEnding,
    /// While the connection lives and the request is not cancelled, it is answered.
    Answer,
    /// Nothing about a request goes on the wire once its cancellation was taken in.
    Silence,
    /// What comes late, twice or for nothing is a no-op with a log line.
    Lateness,
    /// Nothing outlives the connection.
    Closing,
    /// What one request or one bad message does is not felt by others.
    Isolation,
    /// Limits hold.
    Bounded,
    /// Ids are never confused.
    Identity,
    /// Messages go out in the order in which they were committed.
    Order,
    /// A caller learns what became of its call, truthfully.
    Outcome,
}

impl Law {
    /// Every law, in order.
    pub const ALL: &[Self] = &[
        Self::OneEnding,
        Self::Answer,
        Self::Silence,
        Self::Lateness,
        Self::Closing,
        Self::Isolation,
        Self::Bounded,
        Self::Identity,
        Self::Order,
        Self::Outcome,
    ];

    const fn number(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for Law {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "L{}", self.number())
    }
}

/// A law was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub law: Law,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}: {}", self.law, self.law, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_numbered_from_one_to_ten() {
        let names: Vec<String> = Law::ALL.iter().map(Law::to_string).collect();
        assert_eq!(names, ["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9", "L10"]);
    }
}
