//! How a command ends: what a script can tell from its exit code.

use std::process::ExitCode;

use steadfast::{Error, ErrorKind, Outcome};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// The tool ran, and says that it failed.
    ToolFailed,
    /// What was typed makes no sense.
    Misused,
    /// Nothing reached the server: it may be tried again without harm.
    NotSent,
    /// The server refused it.
    Refused,
    /// The server may have done it, and nobody knows.
    Unknown,
    /// The server lets nobody in who is not authorized, or not for this.
    LockedOut,
    /// The user gave up.
    Cancelled,
}

/// Shown by `--help`.
pub(crate) const CODES: &str = "Exit codes:
  0    done
  1    the tool ran and says that it failed
  2    the command line makes no sense
  3    nothing reached the server: trying again does no harm
  4    the server refused, or its answer cannot be used
  5    it was sent, and nobody knows whether it was done
  6    locked out: the server wants to know who is there, or allows it to others only (see --login)
  130  given up with Ctrl-C; the server was told";

/// Why a command failed, and what a script is told.
pub(crate) struct Failure {
    pub(crate) error: Error,
    locked_out: bool,
}

impl Failure {
    /// A failure while the server let nobody in.
    pub(super) fn locked_out(error: Error) -> Self {
        Self { error, locked_out: true }
    }

    pub(crate) fn ending(&self) -> Ending {
        match (self.error.kind(), self.error.outcome()) {
            (ErrorKind::Usage, _) => Ending::Misused,
            (_, Outcome::NotSent | Outcome::Refused) if self.locked_out => Ending::LockedOut,
            (_, Outcome::NotSent) => Ending::NotSent,
            (_, Outcome::Refused | Outcome::Answered) => Ending::Refused,
            (_, Outcome::Unknown) => Ending::Unknown,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, locked_out: false }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(match ending {
            Ending::Done => 0,
            Ending::ToolFailed => 1,
            Ending::Misused => 2,
            Ending::NotSent => 3,
            Ending::Refused => 4,
            Ending::Unknown => 5,
            Ending::LockedOut => 6,
            Ending::Cancelled => 130,
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast::ErrorObject;

    use super::*;

    #[test]
    fn a_failure_is_told_by_its_outcome() {
        let ending = |error: Error| Failure::from(error).ending();
        assert_eq!(ending(Error::usage("x")), Ending::Misused);
        assert_eq!(ending(Error::closed(Outcome::NotSent)), Ending::NotSent);
        assert_eq!(ending(Error::closed(Outcome::Unknown)), Ending::Unknown);
        assert_eq!(ending(Error::refused("x", ErrorObject::new(7, "no"))), Ending::Refused);
        assert_eq!(ending(Error::decode("x", "no")), Ending::Refused);
    }

    #[test]
    fn one_who_is_locked_out_may_still_have_done_something_before() {
        let ending = |error: Error| Failure::locked_out(error).ending();
        assert_eq!(ending(Error::refused("x", ErrorObject::new(7, "no"))), Ending::LockedOut);
        assert_eq!(ending(Error::transport(Outcome::NotSent, "no")), Ending::LockedOut);
        assert_eq!(ending(Error::closed(Outcome::Unknown)), Ending::Unknown);
        assert_eq!(ending(Error::usage("x")), Ending::Misused);
    }
}
