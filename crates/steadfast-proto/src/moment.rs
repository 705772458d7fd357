//! Time in the state machine of a connection: always an argument, never read from a clock.

use std::ops::Add;
use std::time::Duration;

/// A point in time, relative to an origin that the driver chooses once for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The point in time this long after the origin.
    pub const fn after_origin(duration: Duration) -> Self {
        Self(duration)
    }

    /// The duration from the time origin of the connection to this moment.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The duration since `earlier`; zero if `earlier` is later than this moment.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Adds a duration to a moment; saturates if the sum is too large, instead of panicking.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}
