//! Shutdown: the client closes, or the server dies, while a call runs.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use steadfast::client::CallResultFuture;
use steadfast::{Error, model::request};

use super::calls::running;
use super::session::Session;
use crate::process::is_gone_within;

/// How long a server may go on after its client. The client gives it four seconds; the rest is for busy machines.
const GONE: Duration = Duration::from_secs(15);

/// More calls than there are connections to a dead server.
const TRIES: usize = 20;

/// The tool that runs, and its arguments.
const LONG: (&str, fn() -> Value) = ("wait", || json!({}));

pub(crate) async fn close(session: &Session) -> Result<Value, Error> {
    close_while(session, LONG.0, LONG.1()).await
}

pub(crate) async fn kill(session: &Session) -> Result<Value, Error> {
    kill_while(session, LONG.0, LONG.1()).await
}

/// Closes the connection while a tool runs: the outcome of the call is unknown, and no process is left.
pub(crate) async fn close_while(session: &Session, tool: &str, arguments: Value) -> Result<Value, Error> {
    let call = running(session, tool, arguments).await?;
    session.client.clone().close().await;
    let (process, owned) = (session.process, session.owned);
    // Not on a worker of the runtime: it looks, and sleeps, and looks again.
    let gone = tokio::task::spawn_blocking(move || !owned || is_gone_within(GONE, process)).await;
    Ok(json!({
        "call": outcome(call).await,
        "afterwards": afterwards(session).await,
        "gone": gone.map_err(Error::encode)?,
    }))
}

/// Kills the server while a tool runs: the outcome of the call is unknown, and later calls are not sent.
pub(crate) async fn kill_while(session: &Session, tool: &str, arguments: Value) -> Result<Value, Error> {
    let call = running(session, tool, arguments).await?;
    let process = Pid::from_raw(session.process).ok_or_else(|| Error::internal("no process"))?;
    kill_process(process, Signal::KILL).map_err(|error| Error::internal(error.to_string()))?;
    Ok(json!({ "call": outcome(call).await, "afterwards": afterwards(session).await }))
}

/// The outcome of later calls. A pooled HTTP connection may look alive for a
/// moment: what is written to it may have been read.
async fn afterwards(session: &Session) -> String {
    let mut seen = String::new();
    for _ in 0..TRIES {
        seen = outcome(session.client.call_tool("add", json!({ "a": 2, "b": 3 })).start()).await;
        if session.owned || seen != "Unknown" {
            break;
        }
    }
    seen
}

async fn outcome(call: CallResultFuture<request::CallTool>) -> String {
    match call.await {
        Ok(_) => "a result".to_owned(),
        Err(error) => format!("{:?}", error.outcome()),
    }
}
