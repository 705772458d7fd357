//! Why a check failed, as text. Never a type to branch on: a check that fails is over.

use std::fmt;

/// What went wrong in a check.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// What a check, or a step of one, comes to.
pub(crate) type Verdict<T = ()> = Result<T, Failure>;

impl Failure {
    /// The same failure, with where it happened in front.
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        Self(error.to_string())
    }
}

/// Ends the check with a failure.
macro_rules! fail {
    ($($words:tt)*) => { return Err($crate::failure::Failure(format!($($words)*))) };
}

/// Ends the check with a failure unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)*) => { if !$condition { $crate::failure::fail!($($words)*) } };
}

pub(crate) use {ensure, fail};
