//! How a command ends: what a script can tell from its exit code.

use std::io;
use std::process::ExitCode;

use steadfast::{Error, ErrorKind, Outcome, code};

use super::harmless;
use super::interrupts::Interrupt;

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
    Cancelled(Interrupt),
}

/// The end of a `--help`: an example, and the codes.
pub(crate) fn help(example: &str) -> String {
    format!("Example:\n  {example}\n\n{CODES}")
}

const CODES: &str = "Exit codes:
  0    done
  1    the tool says that it failed, or that its arguments do not fit
  2    the command line makes no sense
  3    nothing reached the server: trying again does no harm
  4    the server answered with an error, or its answer cannot be used
  5    it was sent, and nobody knows whether it was done
  6    locked out: the server wants to know who is there, or allows it to others only (see --login)
  130  given up with Ctrl-C; the server was told (143: SIGTERM, 129: SIGHUP)
A reader of the output who leaves early (`| head`) changes none of them.";

/// Why a command failed, what a script is told, and what may help.
pub(crate) struct Failure {
    why: Why,
    locked_out: bool,
    /// It failed before anything could be asked of the server.
    unopened: bool,
    /// What the server's process wrote was shown as it came.
    heard: bool,
    notes: Vec<String>,
}

enum Why {
    Failed(Error),
    /// The answer is there, and cannot be printed.
    Unwritten(io::Error),
}

impl Failure {
    /// This failure, while the server let nobody in.
    pub(super) fn while_locked_out(self) -> Self {
        Self { locked_out: true, ..self }
    }

    /// This failure, of the opening: whatever became of that, nothing that was wanted of the server has reached it.
    pub(super) fn while_unopened(self) -> Self {
        Self { unopened: true, ..self }
    }

    /// This failure, of a process whose last words were shown as they came: they are not shown again.
    pub(super) fn while_heard(self) -> Self {
        Self { heard: true, ..self }
    }

    /// The answer is there, and cannot be printed.
    pub(super) fn unwritten(error: io::Error) -> Self {
        Self::new(Why::Unwritten(error))
    }

    fn new(why: Why) -> Self {
        Self { why, locked_out: false, unopened: false, heard: false, notes: Vec::new() }
    }

    /// This failure, with something that may help. What a server wrote in it is harmless already.
    pub(super) fn with_note(mut self, note: impl Into<Option<String>>) -> Self {
        self.notes.extend(note.into());
        self
    }

    pub(super) fn kind(&self) -> Option<ErrorKind> {
        match &self.why {
            Why::Failed(error) => Some(error.kind()),
            Why::Unwritten(_) => None,
        }
    }

    /// The way to the server failed, or the server itself.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::Closed | ErrorKind::Transport))
    }

    /// The server refused, and does not say why: something went wrong inside of it.
    fn is_internal(&self) -> bool {
        let Why::Failed(error) = &self.why else { return false };
        error.refusal().is_some_and(|refusal| refusal.code == code::INTERNAL_ERROR)
    }

    /// What the server's process wrote last may say more than this does: it is gone, it is late, or it broke inside.
    pub(super) fn leaves_questions(&self) -> bool {
        self.is_loss() || self.is_internal() || self.kind() == Some(ErrorKind::TimedOut)
    }

    /// It says why that happened: of a process, how it ended and what it wrote last.
    pub(super) fn has_cause(&self) -> bool {
        matches!(&self.why, Why::Failed(error) if std::error::Error::source(error).is_some())
    }

    pub(crate) fn ending(&self) -> Ending {
        let Why::Failed(error) = &self.why else { return Ending::Refused };
        match (error.kind(), error.outcome()) {
            (ErrorKind::Usage, _) => Ending::Misused,
            (_, Outcome::NotSent | Outcome::Refused) if self.locked_out => Ending::LockedOut,
            (_, Outcome::NotSent) => Ending::NotSent,
            (_, Outcome::Unknown) if self.unopened => Ending::NotSent,
            (_, Outcome::Refused | Outcome::Answered) => Ending::Refused,
            (_, Outcome::Unknown) => Ending::Unknown,
        }
    }

    /// What happened, what is known, and what to do: a paragraph for people. What a server wrote in it is harmless.
    pub(crate) fn in_words(&self) -> String {
        let why = match &self.why {
            Why::Failed(error) if self.heard => first_line(&in_words(error)),
            Why::Failed(error) => in_words(error),
            Why::Unwritten(error) => format!("the answer could not be printed: {error}"),
        };
        let mut words = format!("steadfast: {}", harmless::quoted(&why));
        let known = match self.ending() {
            Ending::NotSent => Some("nothing was done: trying again does no harm"),
            Ending::Unknown => Some("it was sent, and nobody knows whether it was done: look before you try again"),
            Ending::LockedOut => Some(
                "the server wants to know who is there: --login logs in, --header 'Authorization: Bearer TOKEN' brings a token",
            ),
            _ => None,
        };
        for note in self.notes.iter().map(String::as_str).chain(known) {
            words.push_str("\nsteadfast: ");
            words.push_str(note);
        }
        words
    }
}

/// What happened, for people: in the words of the server if it said something.
fn in_words(error: &Error) -> String {
    match (error.kind(), error.refusal()) {
        (ErrorKind::Refused, Some(refusal)) => format!("the server refused: {} ({})", refusal.message, refusal.code),
        (ErrorKind::TimedOut, _) => "the server did not answer in time".to_owned(),
        (ErrorKind::Closed, _) if std::error::Error::source(error).is_none() => {
            "the server has closed the connection".to_owned()
        }
        _ => with_causes(error),
    }
}

/// What happened, without the lines that are quoted behind it.
fn first_line(words: &str) -> String {
    words.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// An error and its causes, in a sentence.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut words: Vec<String> = causes.map(ToString::to_string).collect();
    // Some say their cause already.
    words.dedup_by(|later, earlier| earlier.ends_with(&**later));
    words.join(": ")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(Why::Failed(error))
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
            Ending::Cancelled(interrupt) => interrupt.code(),
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
    fn people_are_told_what_is_known_and_what_may_help() {
        let failure = Failure::from(Error::closed(Outcome::NotSent)).with_note("a note".to_owned());
        assert_eq!(
            failure.in_words(),
            "steadfast: the server has closed the connection\nsteadfast: a note\nsteadfast: nothing was done: trying again does no harm"
        );
        assert!(Failure::from(Error::closed(Outcome::Unknown)).in_words().contains("look before you try again"));
        assert_eq!(Failure::unwritten(io::ErrorKind::StorageFull.into()).ending(), Ending::Refused);
    }

    #[test]
    fn an_opening_that_fails_has_asked_for_nothing() {
        let ending = |error: Error| Failure::from(error).while_unopened().ending();
        assert_eq!(ending(Error::timed_out(Outcome::Unknown)), Ending::NotSent);
        assert_eq!(ending(Error::closed(Outcome::Unknown)), Ending::NotSent);
        assert_eq!(ending(Error::refused("initialize", ErrorObject::new(7, "no"))), Ending::Refused);
    }

    #[test]
    fn one_who_is_locked_out_may_still_have_done_something_before() {
        let ending = |error: Error| Failure::from(error).while_locked_out().ending();
        assert_eq!(ending(Error::refused("x", ErrorObject::new(7, "no"))), Ending::LockedOut);
        assert_eq!(ending(Error::transport(Outcome::NotSent, "no")), Ending::LockedOut);
        assert_eq!(ending(Error::closed(Outcome::Unknown)), Ending::Unknown);
        assert_eq!(ending(Error::usage("x")), Ending::Misused);
    }
}
