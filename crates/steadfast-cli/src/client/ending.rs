//! How a command ends: what a script can tell from its exit code.

use std::process::ExitCode;

use steadfast::{Error, Outcome};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// The tool ran, and says that it failed.
    ToolFailed,
    /// Nothing reached the server: it may be tried again without harm.
    NotSent,
    /// The server refused it.
    Refused,
    /// The server may have done it, and nobody knows.
    Unknown,
    /// The user gave up.
    Cancelled,
}

/// Shown by `--help`.
pub(crate) const CODES: &str = "Exit codes:
  0    done
  1    the tool ran and says that it failed
  3    nothing reached the server: trying again does no harm
  4    the server refused, or its answer cannot be used
  5    it was sent, and nobody knows whether it was done
  130  given up with Ctrl-C";

impl Ending {
    pub(crate) fn of(error: &Error) -> Self {
        match error.outcome() {
            Outcome::NotSent => Self::NotSent,
            Outcome::Refused | Outcome::Answered => Self::Refused,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(match ending {
            Ending::Done => 0,
            Ending::ToolFailed => 1,
            Ending::NotSent => 3,
            Ending::Refused => 4,
            Ending::Unknown => 5,
            Ending::Cancelled => 130,
        })
    }
}
