//! A connection is lost, and the client is set to reconnect.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::http_server_dies::start;
use super::raw_server::{RawServer, response};
use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions, StdioConnection};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::behavior;
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
fn kill(connection: &StdioConnection) -> Verdict {
    let started = connection.journal.lines();
    let last = started.iter().rev().find_map(|line| line.strip_prefix("started ")?.parse().ok());
    if let Some(process) = last.and_then(Pid::from_raw) {
        kill_process(process, Signal::KILL)?;
    }
    Ok(())
}

fn between_calls(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions { reconnect: OFTEN, ..FaultyServerOptions::honest() })?;
    for round in 1..=5 {
        client.works(&connection.name)?;
        kill(&connection)?;
        // A call before the client has noticed may be written to a closed connection: then its outcome is unknown.
        loop {
            let call = client.call(&connection.name, "echo", json!({ "text": "back" }))?;
            let ended = client.ended(&call)?;
            if ended.ends == "Done" {
                break;
            }
            ended.is("Unknown", &["Closed", "Transport"])?;
        }
        let started = connection.journal.count("started ");
        ensure!(started == round + 1, "started {started} times, after it was killed {round} times");
    }
    client.finish(context)
}

fn in_flight(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions { reconnect: OFTEN, ..FaultyServerOptions::honest() })?;
    for phase in ["after_reading", "in_the_answer", "after_the_answer"] {
        for by in ["exit", "kill"] {
            let beside = client.call(&connection.name, "hang", json!({}))?;
            let call = client.call(&connection.name, "die", json!({ "phase": phase, "by": by }))?;
            let ended = client.ended(&call)?;
            match phase {
                "after_the_answer" => ended.done("last words")?,
                _ => ended.is("Unknown", &["Closed", "Transport", "Decode"])?,
            }
            client.ended(&beside)?.is("Unknown", &["Closed", "Transport"])?;
            client.works(&connection.name).map_err(|failure| failure.at(format!("{phase} by {by}")))?;
            for call in [&call, &beside] {
                let count = connection.journal.count(&format!("called {call} "));
                ensure!(count == 1, "{phase} by {by}: {call} came {count} times");
            }
        }
    }
    client.finish(context)
}

fn idempotent(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions { reconnect: OFTEN, ..FaultyServerOptions::honest() })?;
    for by in ["exit", "kill"] {
        let call =
            client.call_with(&connection.name, "die_once", json!({ "by": by }), &json!({ "idempotent": true }))?;
        client.ended(&call)?.done("again")?;
        let count = connection.journal.count(&format!("called {call} "));
        ensure!(count == 2, "it came {count} times");
        let call = client.call(&connection.name, "die_once", json!({ "by": by }))?;
        client.ended(&call)?.is("Unknown", &["Closed", "Transport"])?;
        let count = connection.journal.count(&format!("called {call} "));
        ensure!(count == 1, "it came {count} times");
        client.works(&connection.name)?;
    }
    client.finish(context)
}

fn after_every_call(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection =
        client.connect(&FaultyServerOptions { reconnect: OFTEN, ..FaultyServerOptions::with(behavior::ONE_CALL) })?;
    let mut lost = 0;
    for _ in 0..10 {
        let call = client.call(&connection.name, "echo", json!({ "text": "x" }))?;
        let ended = client.ended(&call)?;
        if ended.ends != "Done" {
            ended.is("Unknown", &["Closed", "Transport"])?;
            lost += 1;
        }
        let count = connection.journal.count(&format!("called {call} "));
        ensure!(count <= 1, "it came {count} times");
    }
    context.note(format!("{lost} of 10 met the end"));
    client.finish(context)
}

fn for_good(context: &mut CheckContext) -> Verdict {
    const ATTEMPTS: u32 = 4;
    let mut client = ClientUnderTest::start(context)?;
    let connection = client
        .connect(&FaultyServerOptions { reconnect: ATTEMPTS, ..FaultyServerOptions::with(behavior::ONLY_ONCE) })?;
    client.works(&connection.name)?;
    kill(&connection)?;
    let call = client.call_with(&connection.name, "echo", json!({ "text": "x" }), &json!({ "deadline_ms": 5_000 }))?;
    let ended = client.ended(&call)?;
    ensure!(["NotSent", "Unknown"].contains(&ended.ends.as_str()), "{ended}");
    let started = connection.journal.count("started ");
    context.note(format!("{} {}, started {started} times", ended.ends, ended.kind));
    ensure!(started <= 2 + usize::try_from(ATTEMPTS).unwrap_or(0), "started {started} times");
    client.finish(context)
}

fn session_forgotten(context: &mut CheckContext) -> Verdict {
    let forgetful = std::sync::atomic::AtomicUsize::new(0);
    let server = RawServer::open(context.era, move |request, connection| {
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
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({ "reconnect": OFTEN }))?;
    for _ in 0..3 {
        let call = client.call(&name, "any", json!({}))?;
        client.ended(&call)?.done("known")?;
        ensure!(server.count(&call) == 2, "it came {} times", server.count(&call));
        client.works(&name)?;
    }
    client.finish(context)
}

fn every_session(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |_, connection| {
        connection.write(&response("404 Not Found", &[], b""));
        connection.keep();
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({ "reconnect": OFTEN }))?;
    let call = client.call(&name, "any", json!({}))?;
    let ended = client.ended(&call)?;
    ensure!(ended.ends == "NotSent", "{ended}");
    let count = server.count(&call);
    context.note(format!("{count} requests"));
    ensure!(count <= 5, "{count} requests of one call");
    client.works(&name)?;
    client.finish(context)
}
