//! The server dies, in every phase of a call.

use serde_json::json;

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::habit;
use crate::subject::{Play, Subject};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_server_dies",
    fault: "the server ends or is killed before it reads a call, after that, before, in the middle of and behind its answer",
    must: "what was answered is answered; what was sent is Unknown, at once and not by its deadline; what comes later is \
           NotSent; nothing is sent twice, nothing is left",
    checks: &[
        Check::new("before_it_reads_the_call", Era::BOTH, unread),
        Check::new("in_every_phase_of_the_answer", Era::BOTH, every_phase),
        Check::new("behind_many_answers", Era::BOTH, behind_many_answers),
        Check::new("before_any_call", Era::BOTH, before_any_call),
    ],
};

/// The call is in the pipe: a client cannot know that it was not read.
fn unread(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for _ in 0..5 {
        for habit in [habit::EXITS_UNREAD, habit::KILLED_UNREAD] {
            let line = subject.connect(&Play::with(habit))?;
            line.journal.wait("open")?;
            let call = subject.call(&line.name, "echo", json!({ "text": "x" }))?;
            subject.ended(&call)?.is("Unknown", &["Closed"])?;
            line.journal.wait("a call lies unread")?;
            ensure!(line.journal.count("called") == 0, "it was read");
            subject.is_over(&line.name)?;
            subject.close(&line.name)?;
        }
    }
    subject.finish(bench)
}

fn every_phase(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for _ in 0..5 {
        for by in ["exit", "kill"] {
            for phase in ["after_reading", "in_the_answer", "before_the_newline", "after_the_answer"] {
                dies(&mut subject, phase, by).map_err(|failure| failure.at(format!("{phase} by {by}")))?;
            }
        }
    }
    subject.finish(bench)
}

/// One call that is answered or not, and one beside it that never is.
fn dies(subject: &mut Subject, phase: &str, by: &str) -> Verdict {
    let line = subject.connect(&Play::honest())?;
    subject.works(&line.name)?;
    let beside = subject.call(&line.name, "hang", json!({}))?;
    let call = subject.call(&line.name, "die", json!({ "phase": phase, "by": by }))?;
    match phase {
        "after_the_answer" => subject.ended(&call)?.done("last words")?,
        // A stream that ends may end its last line, or may have lost the rest of it.
        "before_the_newline" => {
            let ended = subject.ended(&call)?;
            if ended.ends != "Done" {
                ended.is("Unknown", &["Closed"])?;
            }
        }
        // Half an answer is one that cannot be read.
        "in_the_answer" => subject.ended(&call)?.is("Unknown", &["Closed", "Decode"])?,
        _ => subject.ended(&call)?.is("Unknown", &["Closed"])?,
    }
    subject.ended(&beside)?.is("Unknown", &["Closed"])?;
    subject.gone(&line.name)?;
    subject.is_over(&line.name)?;
    subject.close(&line.name)?;
    let called = line.journal.count(&format!("called {call} "));
    ensure!(called == 1, "the call came {called} times");
    Ok(())
}

/// Answers that wait in the pipe when their server dies are answers all the same.
fn behind_many_answers(bench: &mut Bench) -> Verdict {
    const CALLS: usize = 64;
    let mut subject = Subject::start(bench)?;
    for round in 0..20 {
        let line = subject.connect(&Play::honest())?;
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            calls.push(subject.call(&line.name, "echo", json!({ "text": "x".repeat(700) }))?);
        }
        let by = if round % 2 == 0 { "exit" } else { "kill" };
        let last = subject.call(&line.name, "die", json!({ "phase": "after_the_answer", "by": by }))?;
        for call in &calls {
            subject.ended(call)?.done(&"x".repeat(700))?;
        }
        subject.ended(&last)?.done("last words")?;
        subject.close(&line.name)?;
    }
    subject.finish(bench)
}

fn before_any_call(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for _ in 0..5 {
        let line = subject.connect(&Play::honest())?;
        let process = line.journal.wait("started")?.parse::<i32>().ok().and_then(rustix::process::Pid::from_raw);
        if let Some(process) = process {
            rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
        }
        subject.gone(&line.name)?;
        subject.is_over(&line.name)?;
        subject.close(&line.name)?;
    }
    subject.finish(bench)
}
