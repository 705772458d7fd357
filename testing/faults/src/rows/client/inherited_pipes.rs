//! The server starts a process that inherits its pipes.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Failure, Verdict};
use crate::process::descendants;
use crate::subject::{Line, Play, Subject};
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
fn fork(subject: &mut Subject, line: &Line, kind: &str) -> Verdict<Pid> {
    let call = subject.call(&line.name, "fork", json!({ "kind": kind }))?;
    let ended = subject.ended(&call)?;
    let process = ended.text.parse::<i32>().ok().and_then(Pid::from_raw);
    process.ok_or_else(|| Failure(format!("it did not fork: {ended}")))
}

fn close_ends_group(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for kind in ["plain", "stubborn"] {
        for deaf_to_term in [false, true] {
            let line = subject.connect(&Play { deaf_to_term, ..Play::honest() })?;
            fork(&mut subject, &line, kind)?;
            fork(&mut subject, &line, kind)?;
            subject.works(&line.name)?;
            subject.close(&line.name)?;
            descendants::none_left(bench.folder())?;
        }
    }
    subject.finish(bench)
}

fn server_dies_first(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for kind in ["plain", "stubborn"] {
        for by in ["exit", "kill"] {
            let line = subject.connect(&Play::honest())?;
            fork(&mut subject, &line, kind)?;
            let beside = subject.call(&line.name, "hang", json!({}))?;
            let call = subject.call(&line.name, "die", json!({ "phase": "after_reading", "by": by }))?;
            // The pipe is still open, and will stay so.
            subject.ended(&call)?.is("Unknown", &["Closed"])?;
            subject.ended(&beside)?.is("Unknown", &["Closed"])?;
            subject.gone(&line.name)?;
            subject.is_over(&line.name)?;
            // Also without a close: a program need not close a connection that has ended.
            descendants::none_left(bench.folder())?;
            subject.close(&line.name)?;
        }
    }
    subject.finish(bench)
}

/// What has left the group is not the client's to end, and not to be waited for.
fn escaped(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for dies in [false, true] {
        let line = subject.connect(&Play::honest())?;
        let process = fork(&mut subject, &line, "escaped")?;
        if dies {
            let call = subject.call(&line.name, "die", json!({ "phase": "after_the_answer", "by": "kill" }))?;
            subject.ended(&call)?.done("last words")?;
            subject.gone(&line.name)?;
        }
        subject.close(&line.name)?;
        // It is there, or this would be an error.
        kill_process(process, Signal::KILL)?;
        descendants::none_left(bench.folder())?;
    }
    subject.finish(bench)
}
