//! The server starts a process that inherits its pipes.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions, StdioConnection};
use crate::era::Era;
use crate::failure::{Failure, Verdict};
use crate::process::descendants;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_server_forks",
    fault: "the server starts a process that keeps its pipes, and lives, leaves, is killed; that process ignores SIGTERM, or \
            has left the group",
    must: "the connection ends with the server, even if another process holds the pipe; closing ends the whole group",
    checks: &[
        Check::new("closing_ends_the_group", Era::BOTH, close_ends_group),
        Check::new("the_server_dies_first", Era::BOTH, server_dies_first),
        Check::new("one_that_left_the_group", Era::BOTH, escaped),
    ],
};

/// Has the server start a process; gives which.
fn fork(client: &mut ClientUnderTest, connection: &StdioConnection, kind: &str) -> Verdict<Pid> {
    let call = client.call(&connection.name, "fork", json!({ "kind": kind }))?;
    let ended = client.ended(&call)?;
    let process = ended.text.parse::<i32>().ok().and_then(Pid::from_raw);
    process.ok_or_else(|| Failure(format!("it did not fork: {ended}")))
}

fn close_ends_group(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for kind in ["plain", "stubborn"] {
        for deaf_to_term in [false, true] {
            let connection = client.connect(&FaultyServerOptions { deaf_to_term, ..FaultyServerOptions::honest() })?;
            fork(&mut client, &connection, kind)?;
            fork(&mut client, &connection, kind)?;
            client.works(&connection.name)?;
            client.close(&connection.name)?;
            descendants::none_left(context.folder())?;
        }
    }
    client.finish(context)
}

fn server_dies_first(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for kind in ["plain", "stubborn"] {
        for by in ["exit", "kill"] {
            let connection = client.connect(&FaultyServerOptions::honest())?;
            fork(&mut client, &connection, kind)?;
            let beside = client.call(&connection.name, "hang", json!({}))?;
            let call = client.call(&connection.name, "die", json!({ "phase": "after_reading", "by": by }))?;
            // The pipe is still open, and will stay so.
            client.ended(&call)?.is("Unknown", &["Closed"])?;
            client.ended(&beside)?.is("Unknown", &["Closed"])?;
            client.gone(&connection.name)?;
            client.is_over(&connection.name)?;
            // Also without a close: a program need not close a connection that has ended.
            descendants::none_left(context.folder())?;
            client.close(&connection.name)?;
        }
    }
    client.finish(context)
}

/// What has left the group is not the client's to end, and not to be waited for.
fn escaped(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for dies in [false, true] {
        let connection = client.connect(&FaultyServerOptions::honest())?;
        let process = fork(&mut client, &connection, "escaped")?;
        if dies {
            let call = client.call(&connection.name, "die", json!({ "phase": "after_the_answer", "by": "kill" }))?;
            client.ended(&call)?.done("last words")?;
            client.gone(&connection.name)?;
        }
        client.close(&connection.name)?;
        // It is there, or this would be an error.
        kill_process(process, Signal::KILL)?;
        descendants::none_left(context.folder())?;
    }
    client.finish(context)
}
