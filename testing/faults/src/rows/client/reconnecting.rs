//! A connection is lost, and the client is set to reconnect.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::http_server_dies::start;
use super::raw_server::{RawServer, response};
use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::habit;
use crate::subject::{Line, Play, Subject};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_comes_back",
    fault: "the server dies, between calls and in the middle of them, again and again, or for good; a session is forgotten, once \
            or for ever",
    must: "the next call finds it started again; calls in flight have their true outcome, and only what does no harm, or was not \
           sent, is made again; a server that does not come up is tried a few times",
    checks: &[
        Check::new("between_calls", Era::BOTH, between_calls),
        Check::new("with_calls_in_flight", Era::BOTH, in_flight),
        Check::new("what_does_no_harm_is_made_again", Era::BOTH, idempotent),
        Check::new("after_every_call", Era::BOTH, after_every_call),
        Check::new("for_good", Era::BOTH, for_good),
        Check::new("a_session_is_forgotten", Era::HANDSHAKE, session_forgotten),
        Check::new("every_session_is_forgotten", Era::HANDSHAKE, every_session),
    ],
};

/// More often than any check loses its server, but for the one that never has it again.
const OFTEN: u32 = 50;

/// Kills the server that was started last.
fn kill(line: &Line) -> Verdict {
    let started = line.journal.lines();
    let last = started.iter().rev().find_map(|line| line.strip_prefix("started ")?.parse().ok());
    if let Some(process) = last.and_then(Pid::from_raw) {
        kill_process(process, Signal::KILL)?;
    }
    Ok(())
}

fn between_calls(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { reconnect: OFTEN, ..Play::honest() })?;
    for round in 1..=5 {
        subject.works(&line.name)?;
        kill(&line)?;
        // A call before the client has noticed may be written to a closed connection: then its outcome is unknown.
        loop {
            let call = subject.call(&line.name, "echo", json!({ "text": "back" }))?;
            let ended = subject.ended(&call)?;
            if ended.ends == "Done" {
                break;
            }
            ended.is("Unknown", &["Closed", "Transport"])?;
        }
        let started = line.journal.count("started ");
        ensure!(started == round + 1, "started {started} times, after it was killed {round} times");
    }
    subject.finish(bench)
}

fn in_flight(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { reconnect: OFTEN, ..Play::honest() })?;
    for phase in ["after_reading", "in_the_answer", "after_the_answer"] {
        for by in ["exit", "kill"] {
            let beside = subject.call(&line.name, "hang", json!({}))?;
            let call = subject.call(&line.name, "die", json!({ "phase": phase, "by": by }))?;
            let ended = subject.ended(&call)?;
            match phase {
                "after_the_answer" => ended.done("last words")?,
                _ => ended.is("Unknown", &["Closed", "Transport", "Decode"])?,
            }
            subject.ended(&beside)?.is("Unknown", &["Closed", "Transport"])?;
            subject.works(&line.name).map_err(|failure| failure.at(format!("{phase} by {by}")))?;
            for call in [&call, &beside] {
                let count = line.journal.count(&format!("called {call} "));
                ensure!(count == 1, "{phase} by {by}: {call} came {count} times");
            }
        }
    }
    subject.finish(bench)
}

fn idempotent(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { reconnect: OFTEN, ..Play::honest() })?;
    for by in ["exit", "kill"] {
        let call = subject.call_with(&line.name, "die_once", json!({ "by": by }), &json!({ "idempotent": true }))?;
        subject.ended(&call)?.done("again")?;
        let count = line.journal.count(&format!("called {call} "));
        ensure!(count == 2, "it came {count} times");
        let call = subject.call(&line.name, "die_once", json!({ "by": by }))?;
        subject.ended(&call)?.is("Unknown", &["Closed", "Transport"])?;
        let count = line.journal.count(&format!("called {call} "));
        ensure!(count == 1, "it came {count} times");
        subject.works(&line.name)?;
    }
    subject.finish(bench)
}

fn after_every_call(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { reconnect: OFTEN, ..Play::with(habit::ONE_CALL) })?;
    let mut lost = 0;
    for _ in 0..10 {
        let call = subject.call(&line.name, "echo", json!({ "text": "x" }))?;
        let ended = subject.ended(&call)?;
        if ended.ends != "Done" {
            ended.is("Unknown", &["Closed", "Transport"])?;
            lost += 1;
        }
        let count = line.journal.count(&format!("called {call} "));
        ensure!(count <= 1, "it came {count} times");
    }
    bench.note(format!("{lost} of 10 met the end"));
    subject.finish(bench)
}

fn for_good(bench: &mut Bench) -> Verdict {
    const ATTEMPTS: u32 = 4;
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { reconnect: ATTEMPTS, ..Play::with(habit::ONLY_ONCE) })?;
    subject.works(&line.name)?;
    kill(&line)?;
    let call = subject.call_with(&line.name, "echo", json!({ "text": "x" }), &json!({ "deadline_ms": 5_000 }))?;
    let ended = subject.ended(&call)?;
    ensure!(["NotSent", "Unknown"].contains(&ended.ends.as_str()), "{ended}");
    let started = line.journal.count("started ");
    bench.note(format!("{} {}, started {started} times", ended.ends, ended.kind));
    ensure!(started <= 2 + usize::try_from(ATTEMPTS).unwrap_or(0), "started {started} times");
    subject.finish(bench)
}

fn session_forgotten(bench: &mut Bench) -> Verdict {
    let forgetful = std::sync::atomic::AtomicUsize::new(0);
    let server = RawServer::open(bench.era, move |request, connection| {
        // On each second connection, the session is known.
        let known = forgetful.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 == 1;
        let answer = if known {
            request.answer(&super::raw_server::text(false, "known"))
        } else {
            response("404 Not Found", &[], b"")
        };
        connection.write(&answer);
        connection.keep();
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({ "reconnect": OFTEN }))?;
    for _ in 0..3 {
        let call = subject.call(&name, "any", json!({}))?;
        subject.ended(&call)?.done("known")?;
        ensure!(server.count(&call) == 2, "it came {} times", server.count(&call));
        subject.works(&name)?;
    }
    subject.finish(bench)
}

fn every_session(bench: &mut Bench) -> Verdict {
    let server = RawServer::open(bench.era, |_, connection| {
        connection.write(&response("404 Not Found", &[], b""));
        connection.keep();
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({ "reconnect": OFTEN }))?;
    let call = subject.call(&name, "any", json!({}))?;
    let ended = subject.ended(&call)?;
    ensure!(ended.ends == "NotSent", "{ended}");
    let count = server.count(&call);
    bench.note(format!("{count} requests"));
    ensure!(count <= 5, "{count} requests of one call");
    subject.works(&name)?;
    subject.finish(bench)
}
