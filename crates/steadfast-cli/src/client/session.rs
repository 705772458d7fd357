//! A connection for one piece of work: opened, used, closed, and given up at Ctrl-C.

use std::time::Duration;

use steadfast::{Client, Error, ErrorKind, Outcome, code};

use super::admission::Admission;
use super::interrupts::{Interrupt, Interrupts};
use super::process::Process;
use super::target::{Approach, Connect, Launch};
use super::{Failure, advice};
use crate::output::say;

/// How long the server may take to say which revision it speaks, while nobody logs in.
const OPENING: Duration = Duration::from_secs(20);
/// As long as nobody logs in so late; it is [`OPENING`] that ends a wait.
const WITH_LOGIN: Duration = Duration::from_secs(15 * 60);

/// How a piece of work ended.
pub(super) enum Ended<T> {
    Done(T),
    /// The user gave up: the server was told, and heard until it was silent, unless the user did not want to wait for that
    /// either.
    GivenUp(Interrupt),
}

/// Does something with a server.
pub(super) async fn with<T>(
    connect: &Connect,
    launch: &Launch,
    work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<Ended<T>, Failure> {
    let mut interrupts = Interrupts::new().map_err(|error| Error::transport(Outcome::NotSent, error))?;
    let Approach { connecting, admission, asking, process } = connect.approach(launch).await?;
    let opening = async {
        let Some(asking) = asking else { return connecting.await };
        tokio::select! {
            biased;
            opened = connecting.opening_timeout(WITH_LOGIN) => opened,
            () = asking.patience(OPENING) => Err(Error::timed_out(Outcome::NotSent)),
        }
    };
    let opened = tokio::select! {
        biased;
        opened = opening => opened,
        interrupt = interrupts.next() => {
            say("\nsteadfast: given up before the server had opened");
            process.kill();
            return Ok(Ended::GivenUp(interrupt));
        }
    };
    let failed = |failure: Failure| if admission.is_locked_out() { failure.while_locked_out() } else { failure };
    let client = match opened {
        Ok(client) => client,
        Err(error) => {
            let note = unopened(&error, connect, &admission);
            let failure = Failure::from(error).while_unopened().with_note(note);
            return Err(explained(failed(failure), &process));
        }
    };
    let ended = tokio::select! {
        biased;
        ended = work(&client) => ended.map(Ended::Done),
        interrupt = interrupts.next() => Ok(Ended::GivenUp(interrupt)),
    };
    if matches!(ended, Ok(Ended::GivenUp(_))) {
        say("\nsteadfast: given up; the server is told, and waited for. Ctrl-C again does not wait");
    }
    tokio::select! {
        biased;
        () = client.close() => {}
        _ = interrupts.next() => process.kill(),
    }
    match ended {
        Ok(ended) => Ok(ended),
        Err(failure) if !failure.leaves_questions() => Err(failed(failure)),
        Err(failure) => Err(explained(failed(patient(failure, connect.timeout())), &process)),
    }
}

/// What may help where the server could not be opened.
fn unopened(error: &Error, connect: &Connect, admission: &Admission) -> Option<String> {
    match (error.kind(), connect.url()) {
        (ErrorKind::TimedOut, _) => {
            Some("it never said that it is there: is it an MCP server? --verbose shows more".to_owned())
        }
        (ErrorKind::Transport, Some(url)) if error.outcome() == Outcome::NotSent => {
            Some(format!("is there a server at {}?", advice::origin(url)))
        }
        // One that has no such method is an MCP server.
        (ErrorKind::Refused, Some(url))
            if admission.found_nobody()
                && error.refusal().is_some_and(|refusal| refusal.code != code::METHOD_NOT_FOUND) =>
        {
            Some(advice::where_it_may_be(url))
        }
        _ => None,
    }
}

/// With a word about the time that was waited.
fn patient(failure: Failure, timeout: Duration) -> Failure {
    let late = failure.kind() == Some(ErrorKind::TimedOut);
    let note = || format!("there was no answer within {} s; --timeout SECONDS waits longer", timeout.as_secs());
    failure.with_note(late.then(note))
}

/// With the last words of the process, which is gone. If its end is why, they are in the failure already.
fn explained(failure: Failure, process: &Process) -> Failure {
    match (failure.is_loss() && failure.has_cause(), process.is_heard()) {
        (true, true) => failure.while_heard(),
        (true, false) => failure,
        (false, _) => failure.with_note(process.last_words()),
    }
}
