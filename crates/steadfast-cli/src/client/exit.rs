//! Exit codes and error messages of the `steadfast` command.

use std::io;
use std::process::ExitCode;

use steadfast::{Error, ErrorKind, Outcome, model::code};

use super::connection::signals::InterruptSignal;
use super::display::sanitize;

/// How a command of the `steadfast` program ended. Each exit status has an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExitStatus {
    Success,
    /// The tool's result has `isError`.
    ToolFailed,
    /// The command line is wrong.
    UsageError,
    /// The request did not reach the server: a retry is safe.
    NotSent,
    /// The server responded with an error.
    ServerError,
    /// The request was sent and got no response: the server may have executed it.
    OutcomeUnknown,
    /// The server answered 401 or 403, or there is no usable token.
    Unauthorized,
    /// Cancelled by Ctrl-C or another signal.
    Interrupted(InterruptSignal),
}

/// The end of a `--help` text: an example and the exit codes.
pub(crate) fn help(example: &str) -> String {
    format!("Example:\n  {example}\n\n{EXIT_CODES}")
}

const EXIT_CODES: &str = "Exit codes:
  0    success
  1    the tool reported an error, for example invalid arguments
  2    usage error
  3    the request did not reach the server: safe to retry
  4    the server responded with an error (it may have executed a part of the request), or its response could
       not be used
  5    the request was sent and got no response: the server may have executed it
  6    not authorized: the server requires a login, or denies access (see --login)
  130  cancelled with Ctrl-C; the server was notified (143: SIGTERM, 129: SIGHUP)
Closing standard output early (`| head`) does not change the exit code.";

/// Why a command failed, with its exit status and hints for the user.
pub(crate) struct CliCommandFailure {
    cause: CliCommandFailureCause,
    unauthorized: bool,
    /// Whether the connection could not be opened, so that no request was sent.
    not_connected: bool,
    /// Whether the standard error of the server's process was shown as it was written (`--verbose`).
    stderr_shown: bool,
    notes: Vec<String>,
}

enum CliCommandFailureCause {
    Client(Error),
    /// The result was received, but writing it to standard output failed.
    Output(io::Error),
}

impl CliCommandFailure {
    /// Records that the server's last response was 401 or 403.
    pub(crate) fn mark_unauthorized(self) -> Self {
        Self { unauthorized: true, ..self }
    }

    /// Records that the client could not connect, so the user's request was not sent.
    pub(crate) fn mark_not_connected(self) -> Self {
        Self { not_connected: true, ..self }
    }

    /// Records that the standard error of the server process was shown already, so that the error message does not repeat it.
    pub(crate) fn mark_stderr_shown(self) -> Self {
        Self { stderr_shown: true, ..self }
    }

    /// The result was received, but writing it to standard output failed.
    pub(crate) fn output(error: io::Error) -> Self {
        Self::new(CliCommandFailureCause::Output(error))
    }

    fn new(cause: CliCommandFailureCause) -> Self {
        Self { cause, unauthorized: false, not_connected: false, stderr_shown: false, notes: Vec::new() }
    }

    /// Adds a hint for the user. Text of the server in the hint must be sanitized already.
    pub(crate) fn with_note(mut self, note: impl Into<Option<String>>) -> Self {
        self.notes.extend(note.into());
        self
    }

    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match &self.cause {
            CliCommandFailureCause::Client(error) => Some(error.kind()),
            CliCommandFailureCause::Output(_) => None,
        }
    }

    /// Whether the connection was lost or could not be opened.
    pub(crate) fn is_connection_lost(&self) -> bool {
        matches!(self.kind(), Some(ErrorKind::Closed | ErrorKind::Transport))
    }

    /// Whether the server responded with an internal error, which does not say why it failed.
    fn is_internal(&self) -> bool {
        let CliCommandFailureCause::Client(error) = &self.cause else { return false };
        error.refusal().is_some_and(|refusal| refusal.code == code::INTERNAL_ERROR)
    }

    /// Whether the last lines of the server process's standard error may explain the failure: the process exited, timed out, or
    /// had an internal error.
    pub(crate) fn is_explained_by_stderr(&self) -> bool {
        self.is_connection_lost() || self.is_internal() || self.kind() == Some(ErrorKind::TimedOut)
    }

    /// Whether the error has a source: for a server process, its exit status and the last lines of its standard error.
    pub(crate) fn has_cause(&self) -> bool {
        matches!(&self.cause, CliCommandFailureCause::Client(error) if std::error::Error::source(error).is_some())
    }

    pub(crate) fn exit_status(&self) -> CliExitStatus {
        let CliCommandFailureCause::Client(error) = &self.cause else { return CliExitStatus::ServerError };
        match (error.kind(), error.outcome()) {
            (ErrorKind::Usage, _) => CliExitStatus::UsageError,
            (_, Outcome::NotSent | Outcome::Refused) if self.unauthorized => CliExitStatus::Unauthorized,
            (_, Outcome::NotSent) => CliExitStatus::NotSent,
            (_, Outcome::Unknown) if self.not_connected => CliExitStatus::NotSent,
            (_, Outcome::Refused | Outcome::Answered) => CliExitStatus::ServerError,
            (_, Outcome::Unknown) => CliExitStatus::OutcomeUnknown,
        }
    }

    /// The error message for the user: what happened, what is known of the request, and what to do. Text of the server in the
    /// message is sanitized.
    pub(crate) fn message(&self) -> String {
        let cause = match &self.cause {
            CliCommandFailureCause::Client(error) if self.stderr_shown => first_line(&describe(error)),
            CliCommandFailureCause::Client(error) => describe(error),
            CliCommandFailureCause::Output(error) => format!("the result could not be printed: {error}"),
        };
        let mut message = format!("steadfast: {}", sanitize::quoted(&cause));
        let known = match self.exit_status() {
            CliExitStatus::NotSent => Some("the request did not reach the server: safe to retry"),
            CliExitStatus::OutcomeUnknown => {
                Some("the request was sent and the server may have executed it: check before you retry")
            }
            CliExitStatus::Unauthorized => {
                Some("the server requires authorization: use --login, or --header 'Authorization: Bearer TOKEN'")
            }
            _ => None,
        };
        for note in self.notes.iter().map(String::as_str).chain(known) {
            message.push_str("\nsteadfast: ");
            message.push_str(note);
        }
        message
    }
}

/// Describes an error for the user, with the server's own message if the server sent one.
fn describe(error: &Error) -> String {
    match (error.kind(), error.refusal()) {
        (ErrorKind::Refused, Some(refusal)) => {
            format!("the server responded with an error: {} ({})", refusal.message, refusal.code)
        }
        (ErrorKind::TimedOut, _) => "request timed out".to_owned(),
        (ErrorKind::Closed, _) if std::error::Error::source(error).is_none() => {
            "the server closed the connection".to_owned()
        }
        _ => with_causes(error),
    }
}

/// The first line of an error message, without the quoted lines that follow it.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// The messages of an error and its sources, separated by colons.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut messages: Vec<String> = causes.map(ToString::to_string).collect();
    // Some messages end with that of their source already.
    messages.dedup_by(|later, earlier| earlier.ends_with(&**later));
    messages.join(": ")
}

impl From<Error> for CliCommandFailure {
    fn from(error: Error) -> Self {
        Self::new(CliCommandFailureCause::Client(error))
    }
}

impl From<CliExitStatus> for ExitCode {
    fn from(status: CliExitStatus) -> Self {
        Self::from(match status {
            CliExitStatus::Success => 0,
            CliExitStatus::ToolFailed => 1,
            CliExitStatus::UsageError => 2,
            CliExitStatus::NotSent => 3,
            CliExitStatus::ServerError => 4,
            CliExitStatus::OutcomeUnknown => 5,
            CliExitStatus::Unauthorized => 6,
            CliExitStatus::Interrupted(interrupt) => interrupt.exit_code(),
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast::ErrorObject;

    use super::*;

    #[test]
    fn the_exit_status_follows_the_outcome() {
        let status = |error: Error| CliCommandFailure::from(error).exit_status();
        assert_eq!(status(Error::usage("x")), CliExitStatus::UsageError);
        assert_eq!(status(Error::closed(Outcome::NotSent)), CliExitStatus::NotSent);
        assert_eq!(status(Error::closed(Outcome::Unknown)), CliExitStatus::OutcomeUnknown);
        assert_eq!(status(Error::refused("x", ErrorObject::new(7, "no"))), CliExitStatus::ServerError);
        assert_eq!(status(Error::decode("x", "no")), CliExitStatus::ServerError);
    }

    #[test]
    fn the_message_has_the_outcome_and_the_notes() {
        let failure = CliCommandFailure::from(Error::closed(Outcome::NotSent)).with_note("a note".to_owned());
        assert_eq!(
            failure.message(),
            "steadfast: the server closed the connection\nsteadfast: a note\nsteadfast: the request did not reach the server: safe to retry"
        );
        assert!(CliCommandFailure::from(Error::closed(Outcome::Unknown)).message().contains("check before you retry"));
        assert_eq!(
            CliCommandFailure::output(io::ErrorKind::StorageFull.into()).exit_status(),
            CliExitStatus::ServerError
        );
    }

    #[test]
    fn a_connection_that_could_not_be_opened_sent_no_request() {
        let status = |error: Error| CliCommandFailure::from(error).mark_not_connected().exit_status();
        assert_eq!(status(Error::timed_out(Outcome::Unknown)), CliExitStatus::NotSent);
        assert_eq!(status(Error::closed(Outcome::Unknown)), CliExitStatus::NotSent);
        assert_eq!(status(Error::refused("initialize", ErrorObject::new(7, "no"))), CliExitStatus::ServerError);
    }

    #[test]
    fn an_unknown_outcome_takes_precedence_over_unauthorized() {
        let status = |error: Error| CliCommandFailure::from(error).mark_unauthorized().exit_status();
        assert_eq!(status(Error::refused("x", ErrorObject::new(7, "no"))), CliExitStatus::Unauthorized);
        assert_eq!(status(Error::transport(Outcome::NotSent, "no")), CliExitStatus::Unauthorized);
        assert_eq!(status(Error::closed(Outcome::Unknown)), CliExitStatus::OutcomeUnknown);
        assert_eq!(status(Error::usage("x")), CliExitStatus::UsageError);
    }
}
