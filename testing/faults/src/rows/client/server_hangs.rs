//! The server hangs.

use serde_json::json;

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::habit;
use crate::limits::CLIENT_SHORT_MS;
use crate::subject::{Play, Subject};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_server_hangs",
    fault: "the server takes a call and never answers; the caller's deadline passes, or the caller takes the call back; and it \
            does not leave when it should",
    must: "the call ends by its own deadline as Unknown; the server is told; other calls work all the while; closing ends the \
           process",
    checks: &[
        Check::new("the_deadline_passes", Era::BOTH, deadline_passes),
        Check::new("the_call_is_taken_back", Era::BOTH, taken_back),
        Check::new("many_at_once", Era::BOTH, many_at_once),
        Check::new("it_does_not_leave", Era::BOTH, does_not_leave),
    ],
};

fn deadline_passes(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for _ in 0..3 {
        let call = subject.call_with(&line.name, "hang", json!({}), &json!({ "deadline_ms": CLIENT_SHORT_MS }))?;
        subject.works(&line.name)?;
        let id = line.journal.wait(&format!("called {call} "))?;
        subject.ended(&call)?.is("Unknown", &["TimedOut"])?;
        line.journal.wait(&format!("cancelled {id}"))?;
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

fn taken_back(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    for _ in 0..20 {
        let call = subject.call(&line.name, "hang", json!({}))?;
        let id = line.journal.wait(&format!("called {call} "))?;
        subject.take_back(&call)?;
        line.journal.wait(&format!("cancelled {id}"))?;
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

/// Each is reported once.
fn many_at_once(bench: &mut Bench) -> Verdict {
    const CALLS: usize = 500;
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play::honest())?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(subject.call_with(&line.name, "hang", json!({}), &json!({ "deadline_ms": 4 * CLIENT_SHORT_MS }))?);
    }
    subject.works(&line.name)?;
    for call in &calls {
        // One that was not even written within its deadline, on a machine that is busy, was not sent.
        let ended = subject.ended(call)?;
        ensure!(ended.kind == "TimedOut" && ["Unknown", "NotSent"].contains(&ended.ends.as_str()), "{ended}");
    }
    subject.works(&line.name)?;
    let (called, cancelled) = (line.journal.count("called call-") - 2, line.journal.count("cancelled "));
    bench.note(format!("{called} hung"));
    ensure!(called == cancelled, "{called} calls came, and {cancelled} cancellations");
    subject.finish(bench)
}

/// It neither ends when its input does, nor by SIGTERM.
fn does_not_leave(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for deaf_to_term in [false, true] {
        let line = subject.connect(&Play { deaf_to_term, ..Play::with(habit::STUBBORN) })?;
        let call = subject.call(&line.name, "hang", json!({}))?;
        line.journal.wait(&format!("called {call} "))?;
        subject.close(&line.name)?;
        let ended = subject.ended(&call)?;
        ensure!(ended.ends == "Unknown", "{ended}");
        line.journal.wait("end of input")?;
    }
    subject.finish(bench)
}
