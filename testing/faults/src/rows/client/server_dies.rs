//! The server dies, in every phase of a call.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::behavior;
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
fn unread(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for _ in 0..5 {
        for behavior in [behavior::EXITS_UNREAD, behavior::KILLED_UNREAD] {
            let connection = client.connect(&FaultyServerOptions::with(behavior))?;
            connection.journal.wait("open")?;
            let call = client.call(&connection.name, "echo", json!({ "text": "x" }))?;
            client.ended(&call)?.is("Unknown", &["Closed"])?;
            connection.journal.wait("a call lies unread")?;
            ensure!(connection.journal.count("called") == 0, "it was read");
            client.is_over(&connection.name)?;
            client.close(&connection.name)?;
        }
    }
    client.finish(context)
}

fn every_phase(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for _ in 0..5 {
        for by in ["exit", "kill"] {
            for phase in ["after_reading", "in_the_answer", "before_the_newline", "after_the_answer"] {
                dies(&mut client, phase, by).map_err(|failure| failure.at(format!("{phase} by {by}")))?;
            }
        }
    }
    client.finish(context)
}

/// One call that is answered or not, and one beside it that never is.
fn dies(client: &mut ClientUnderTest, phase: &str, by: &str) -> Verdict {
    let connection = client.connect(&FaultyServerOptions::honest())?;
    client.works(&connection.name)?;
    let beside = client.call(&connection.name, "hang", json!({}))?;
    let call = client.call(&connection.name, "die", json!({ "phase": phase, "by": by }))?;
    match phase {
        "after_the_answer" => client.ended(&call)?.done("last words")?,
        // A stream that ends may end its last line, or may have lost the rest of it.
        "before_the_newline" => {
            let ended = client.ended(&call)?;
            if ended.ends != "Done" {
                ended.is("Unknown", &["Closed"])?;
            }
        }
        // Half an answer is one that cannot be read.
        "in_the_answer" => client.ended(&call)?.is("Unknown", &["Closed", "Decode"])?,
        _ => client.ended(&call)?.is("Unknown", &["Closed"])?,
    }
    client.ended(&beside)?.is("Unknown", &["Closed"])?;
    client.gone(&connection.name)?;
    client.is_over(&connection.name)?;
    client.close(&connection.name)?;
    let called = connection.journal.count(&format!("called {call} "));
    ensure!(called == 1, "the call came {called} times");
    Ok(())
}

/// Answers that wait in the pipe when their server dies are answers all the same.
fn behind_many_answers(context: &mut CheckContext) -> Verdict {
    const CALLS: usize = 64;
    let mut client = ClientUnderTest::start(context)?;
    for round in 0..20 {
        let connection = client.connect(&FaultyServerOptions::honest())?;
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            calls.push(client.call(&connection.name, "echo", json!({ "text": "x".repeat(700) }))?);
        }
        let by = if round % 2 == 0 { "exit" } else { "kill" };
        let last = client.call(&connection.name, "die", json!({ "phase": "after_the_answer", "by": by }))?;
        for call in &calls {
            client.ended(call)?.done(&"x".repeat(700))?;
        }
        client.ended(&last)?.done("last words")?;
        client.close(&connection.name)?;
    }
    client.finish(context)
}

fn before_any_call(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for _ in 0..5 {
        let connection = client.connect(&FaultyServerOptions::honest())?;
        let process = connection.journal.wait("started")?.parse::<i32>().ok().and_then(rustix::process::Pid::from_raw);
        if let Some(process) = process {
            rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
        }
        client.gone(&connection.name)?;
        client.is_over(&connection.name)?;
        client.close(&connection.name)?;
    }
    client.finish(context)
}
