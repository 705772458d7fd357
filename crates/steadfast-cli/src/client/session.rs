//! A connection for one piece of work: opened, used, closed, and given up at Ctrl-C.

use std::time::Duration;

use steadfast::{Client, Error, Outcome};

use super::Failure;
use super::interrupts::Interrupts;
use super::target::{Approach, Connect, Launch};

/// How long the server may take to say which revision it speaks, while nobody logs in.
const OPENING: Duration = Duration::from_secs(20);
/// As long as nobody logs in so late; it is [`OPENING`] that ends a wait.
const WITH_LOGIN: Duration = Duration::from_secs(15 * 60);

/// Does something with a server. `None` if the user gave up: then the server was told, and heard until it was silent, unless the
/// user did not want to wait for that either.
pub(super) async fn with<T>(
    connect: &Connect,
    launch: &Launch,
    work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
) -> Result<Option<T>, Failure> {
    let mut interrupts = Interrupts::new().map_err(|error| Error::transport(Outcome::NotSent, error))?;
    let Approach { connecting, admission, asking } = connect.approach(launch).await?;
    let failed = |error| if admission.is_locked_out() { Failure::locked_out(error) } else { error.into() };
    let opening = async {
        let Some(asking) = asking else { return connecting.await };
        tokio::select! {
            biased;
            opened = connecting.opening_timeout(WITH_LOGIN) => opened,
            () = asking.patience(OPENING) => Err(Error::timed_out(Outcome::Unknown)),
        }
    };
    let client = tokio::select! {
        biased;
        opened = opening => opened.map_err(failed)?,
        () = interrupts.next() => {
            eprintln!("\nsteadfast: given up before the server had opened");
            return Ok(None);
        }
    };
    let ended = tokio::select! {
        biased;
        ended = work(&client) => Some(ended),
        () = interrupts.next() => None,
    };
    if ended.is_none() {
        eprintln!("\nsteadfast: given up; the server is told, and waited for. Ctrl-C again does not wait");
    }
    tokio::select! {
        biased;
        () = client.close() => {}
        () = interrupts.next() => {}
    }
    ended.transpose().map_err(failed)
}
