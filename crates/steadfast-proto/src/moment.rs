//! Time as the core sees it: a reading that it is given, never one that it takes.

use std::ops::Add;
use std::time::Duration;

/// A moment, counted from an origin that the caller chose once for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The moment this long after the origin.
    pub const fn after_origin(duration: Duration) -> Self {
        Self(duration)
    }

    /// How long after the origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// How long from `earlier` to here; zero if it is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// A moment that no clock will reach, rather than a panic, when the sum is too large.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
