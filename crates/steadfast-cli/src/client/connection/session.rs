//! One connection for one command: connects, runs the command's requests, closes; cancels at Ctrl-C.

use std::time::Duration;

use steadfast::{Client, Error, ErrorKind, Outcome, model::code};

use super::authorization::CliAuthorizer;
use super::process::ServerProcess;
use super::signals::{InterruptSignal, InterruptSignals};
use super::target::{CliConnectOptions, CliConnectionSetup, ServerCommand};
use crate::client::CliCommandFailure;
use crate::client::display::hints;
use crate::output::eprint_line;

/// Timeout of connecting, not counting the time in which the user logs in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of connecting including the login: longer than any login takes, so that [`CONNECT_TIMEOUT`] is what counts.
const TIMEOUT_WITH_LOGIN: Duration = Duration::from_secs(15 * 60);

/// How the requests of a command ended.
pub(crate) enum CliSessionEnd<T> {
    Finished(T),
    /// A signal interrupted the command: the request was cancelled and the connection closed, without waiting if a second
    /// signal arrived.
    Interrupted(InterruptSignal),
}

/// Connects to the server, runs `work` with the client, and closes the connection.
pub(crate) async fn run<T>(
    connect: &CliConnectOptions,
    server_command: &ServerCommand,
    work: impl AsyncFnOnce(&Client) -> Result<T, CliCommandFailure>,
) -> Result<CliSessionEnd<T>, CliCommandFailure> {
    let mut interrupts = InterruptSignals::new().map_err(|error| Error::transport(Outcome::NotSent, error))?;
    let CliConnectionSetup { connecting, authorization, login, process } = connect.prepare(server_command).await?;
    let opening = async {
        let Some(login) = login else { return connecting.await };
        tokio::select! {
            biased;
            opened = connecting.opening_timeout(TIMEOUT_WITH_LOGIN) => opened,
            () = login.timeout_outside_login(CONNECT_TIMEOUT) => Err(Error::timed_out(Outcome::NotSent)),
        }
    };
    let opened = tokio::select! {
        biased;
        opened = opening => opened,
        interrupt = interrupts.next() => {
            eprint_line("\nsteadfast: cancelled before the connection was open");
            process.kill();
            return Ok(CliSessionEnd::Interrupted(interrupt));
        }
    };
    let with_status = |failure: CliCommandFailure| {
        if authorization.is_unauthorized() { failure.mark_unauthorized() } else { failure }
    };
    let client = match opened {
        Ok(client) => client,
        Err(error) => {
            let note = connect_hint(&error, connect, &authorization);
            let failure = CliCommandFailure::from(error).mark_not_connected().with_note(note);
            return Err(with_stderr(with_status(failure), &process));
        }
    };
    let ended = tokio::select! {
        biased;
        ended = work(&client) => ended.map(CliSessionEnd::Finished),
        interrupt = interrupts.next() => Ok(CliSessionEnd::Interrupted(interrupt)),
    };
    if matches!(ended, Ok(CliSessionEnd::Interrupted(_))) {
        eprint_line("\nsteadfast: cancelling: waiting for the server to stop. Press Ctrl-C again to exit now");
    }
    tokio::select! {
        biased;
        () = client.close() => {}
        _ = interrupts.next() => process.kill(),
    }
    match ended {
        Ok(ended) => Ok(ended),
        Err(failure) if !failure.is_explained_by_stderr() => Err(with_status(failure)),
        Err(failure) => Err(with_stderr(with_status(with_timeout_note(failure, connect.timeout())), &process)),
    }
}

/// A hint for a connection that could not be opened.
fn connect_hint(error: &Error, connect: &CliConnectOptions, authorization: &CliAuthorizer) -> Option<String> {
    match (error.kind(), connect.url()) {
        (ErrorKind::TimedOut, _) => {
            Some("the handshake timed out: is the target an MCP server? --verbose shows its standard error".to_owned())
        }
        (ErrorKind::Transport, Some(url)) if error.outcome() == Outcome::NotSent => {
            Some(format!("is there a server at {}?", hints::origin(url)))
        }
        // A JSON-RPC error of an unknown method comes from an MCP server.
        (ErrorKind::Refused, Some(url))
            if authorization.found_no_endpoint()
                && error.refusal().is_some_and(|refusal| refusal.code != code::METHOD_NOT_FOUND) =>
        {
            Some(hints::suggest_path(url))
        }
        _ => None,
    }
}

/// Adds a note to a timeout error: how long the timeout was, and the option that changes it.
fn with_timeout_note(failure: CliCommandFailure, timeout: Duration) -> CliCommandFailure {
    let late = failure.kind() == Some(ErrorKind::TimedOut);
    let note = || format!("there was no response within {} s: --timeout SECONDS changes that", timeout.as_secs());
    failure.with_note(late.then(note))
}

/// Adds the last lines of the server process's standard error to the failure. If the exit of the process is the cause, the
/// error already contains these lines.
fn with_stderr(failure: CliCommandFailure, process: &ServerProcess) -> CliCommandFailure {
    match (failure.is_connection_lost() && failure.has_cause(), process.shows_stderr()) {
        (true, true) => failure.mark_stderr_shown(),
        (true, false) => failure,
        (false, _) => failure.with_note(process.recent_stderr()),
    }
}
