//! Cancellations, duplicates and handlers that misbehave: the faults of the stdio table that HTTP has too.

use std::time::{Duration, Instant};

use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, answer, launch, maybe_answer, rest};
use super::wire::Wire;
use crate::check_context::{CheckContext, cleanup_lines, seconds, wait_for_cleanups};
use crate::client::expect::{self, INTERNAL_ERROR, INVALID_REQUEST};
use crate::client::message::{Body, Id};
use crate::era::Era;
use crate::failure::{Verdict, ensure, fail};
use crate::limits::{BLOCK_MS, ENDING_ACCEPTED, LONG_MS, PROMPT};
use crate::table::{Check, Row};

pub(crate) static CANCELLATION: Row = Row {
    name: "http_cancellation",
    fault: "cancellation of a running call; racing its answer; twice, late, of nothing, malformed; of the same id in \
            another session; POSTed in 2026-07-28",
    must: "before 2026-07-28: no answer once it was taken in, cleanup, the response ends; in 2026-07-28 it is taken and has \
           no effect",
    checks: &[
        Check::new("running_call", Era::HANDSHAKE, running_call),
        Check::new("racing_its_answer", Era::HANDSHAKE, racing),
        Check::new("of_nothing", Era::BOTH, of_nothing),
        Check::new("of_the_same_id_in_another_session", Era::HANDSHAKE, another_session),
        Check::new("posted_without_a_session", Era::STATELESS, stateless),
    ],
};

pub(crate) static DUPLICATE_ID: Row = Row {
    name: "http_duplicate_id",
    fault: "two POSTs with one id",
    must: "before 2026-07-28 the second is refused in its own response and the first is answered; in 2026-07-28 both are \
           served",
    checks: &[
        Check::new("number_and_string", Era::BOTH, duplicate),
        Check::new("at_once_raced", Era::BOTH, duplicate_raced),
    ],
};

pub(crate) static PANIC: Row = Row {
    name: "http_panic",
    fault: "a tool panics, alone and among others, with its client there or gone",
    must: "-32603 without the text of the panic; others are answered; the server lives",
    checks: &[Check::new("among_others", Era::BOTH, panic)],
};

pub(crate) static BLOCKED: Row = Row {
    name: "http_blocked",
    fault: "64 block_thread at once; block_worker on every worker; a tool that is quick a thousand times and then blocks, \
            with 100 other connections",
    must: "lists are answered and cancellations taken without delay; SIGTERM does not wait for them past the deadline",
    checks: &[
        Check::new("64_block_thread", Era::BOTH, |context| blocked(context, "block_thread", 64)).alone(),
        Check::new("every_worker", Era::BOTH, |context| blocked(context, "block_worker", 0)).alone(),
        Check::new("quick_then_block_worker", Era::BOTH, |context| quick_then_blocked(context, "block_worker")).alone(),
        Check::new("quick_then_block_thread", Era::BOTH, |context| quick_then_blocked(context, "block_thread")).alone(),
    ],
};

fn running_call(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let session = server.session()?;
    for round in 1..=10 {
        let (id, other) = (server.fresh_id(), server.fresh_id());
        let mut wire = session.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        let mut beside = session.begin(&other, "progress", json!({ "steps": 5, "ms": 2 }))?;
        session.cancel(&id)?;
        wait_for_cleanups(&log, round)?;
        session.cancel(&id)?;
        ensure!(rest(&mut wire, &id)?.is_none(), "a cancelled call was answered");
        super::hang_ups::ends_with_text(&session, &mut beside, &other)?;
    }
    ensure!(cleanup_lines(&log) == 10, "{} cleanups of 10 calls", cleanup_lines(&log));
    server.finish().map(drop)
}

/// Whatever comes first, there is one ending: an answer, or a response without one.
fn racing(context: &mut CheckContext) -> Verdict {
    const TOOLS: [&str; 4] = ["echo", "sleep", "stubborn", "block_thread"];
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut answered = 0;
    context.race(|context| {
        let id = server.fresh_id();
        let tool = TOOLS[context.random.place(TOOLS.len())];
        let (mut calling, mut cancelling) = (server.connect()?, server.connect()?);
        calling.send(&session.call(&id, tool, json!({ "text": "x", "ms": context.random.below(3) })))?;
        context.random.pause(2_500);
        cancelling.send(&session.post(crate::client::cancel_line(&id)))?;
        ensure!(cancelling.head()?.status == 202, "a cancellation was refused");
        let head = calling.head()?;
        ensure!(head.status == 200, "{tool} was answered with {}", head.status);
        answered += usize::from(maybe_answer(&head, &mut calling, &id)?.is_some());
        Ok(())
    })?;
    context.note(format!("{answered} were answered first"));
    server.finish().map(drop)
}

fn of_nothing(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let mut running = session.begin(&id, "progress", json!({ "steps": 5, "ms": 20 }))?;
    let params =
        ["{}", "{\"requestId\":null}", "{\"requestId\":[]}", "{\"requestId\":{}}", "{\"requestId\":\"\"}", "[]", "7"];
    let unknown = params.iter().map(|params| (*params).to_owned());
    let other = [format!("{{\"requestId\":\"{id}\"}}"), "{\"requestId\":123456789}".to_owned()];
    for params in unknown.chain(other) {
        let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}");
        let status = server.status(&session.post(text))?;
        ensure!([202, 400].contains(&status), "the cancellation {params} was answered with {status}");
    }
    super::hang_ups::ends_with_text(&session, &mut running, &id)?;
    // After its end, and with an id as if it were a request.
    if session.id.is_some() {
        session.cancel(&id)?;
    }
    let asking = session.ask(&server.fresh_id(), "notifications/cancelled", json!({ "requestId": 7 }));
    server.send(&asking)?;
    session.round_trip()?;
    server.finish().map(drop)
}

fn another_session(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let (mine, other) = (server.session()?, server.session()?);
    let id = Id::number(7);
    let mut one = mine.begin(&id, "progress", json!({ "steps": 10, "ms": 10 }))?;
    let mut two = other.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
    other.cancel(&id)?;
    ensure!(rest(&mut two, &id)?.is_none(), "a cancelled call was answered");
    super::hang_ups::ends_with_text(&mine, &mut one, &id)?;
    server.finish().map(drop)
}

fn stateless(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let mut running = session.begin(&id, "progress", json!({ "steps": 5, "ms": 10 }))?;
    let params = json!({ "requestId": 1, "_meta": crate::client::stateless_meta(server.era.revision()) });
    let text = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string();
    for text in [text, crate::client::cancel_line(&id)] {
        let status = server.status(&session.post(text).with("Mcp-Method", "notifications/cancelled"))?;
        ensure!(status == 202, "a cancellation was answered with {status}");
    }
    super::hang_ups::ends_with_text(&session, &mut running, &id)?;
    server.finish().map(drop)
}

fn duplicate(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for id in [Id::number(9), Id::string("nine"), Id::string("9")] {
        let mut first = session.begin(&id, "progress", json!({ "steps": 20, "ms": 10 }))?;
        for _ in 0..3 {
            let (head, mut second) = server.send(&session.call(&id, "echo", json!({ "text": "second" })))?;
            let answer = answer(&head, &mut second, &id)?;
            if session.id.is_some() {
                ensure!(head.status == 400, "the second was answered with {}", head.status);
                expect::error(&answer, &[INVALID_REQUEST])?;
            } else {
                ensure!(expect::text(&answer, server.era)? == "second", "the second was not served");
            }
        }
        let text = super::hang_ups::ends_with_text(&session, &mut first, &id)?;
        ensure!(text == "20 steps", "the first was answered with {text:?}");
    }
    server.finish().map(drop)
}

/// Two at the same moment: each gets a response of its own. In a session at least one is served, and one that is refused
/// gets an error.
fn duplicate_raced(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut refused = 0;
    context.race(|context| {
        let id = server.fresh_id();
        let ms = context.random.below(2);
        let mut wires = [server.connect()?, server.connect()?];
        for wire in &mut wires {
            wire.send(&session.call(&id, "sleep", json!({ "ms": ms })))?;
            if context.random.coin() {
                context.random.pause(600);
            }
        }
        let mut served = 0;
        for mut wire in wires {
            let head = wire.head()?;
            let answer = answer(&head, &mut wire, &id)?;
            match answer.body {
                Body::Result(_) => served += 1,
                _ => drop(expect::error(&answer, &[INVALID_REQUEST])?),
            }
        }
        let least = if session.id.is_some() { 1 } else { 2 };
        ensure!(served >= least, "{served} of two calls with the id {id} were served");
        refused += 2 - served;
        Ok(())
    })?;
    context.note(format!("{refused} refused"));
    server.finish().map(drop)
}

fn panic(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    server.panics_expected = true;
    let session = server.session()?;
    for _ in 0..20 {
        let (id, beside) = (server.fresh_id(), server.fresh_id());
        let mut other = session.begin(&beside, "progress", json!({ "steps": 2, "ms": 1 }))?;
        let (head, mut wire) = server.send(&session.call(&id, "panic", json!({})))?;
        let answer = answer(&head, &mut wire, &id)?;
        let error = expect::error(&answer, &[INTERNAL_ERROR])?;
        ensure!(!error.message.contains("secret"), "the text of the panic is on the wire: {}", error.message);
        // One whose client does not wait for it.
        let mut gone = server.connect()?;
        gone.send(&session.call(&server.fresh_id(), "panic", json!({})))?;
        drop(gone);
        super::hang_ups::ends_with_text(&session, &mut other, &beside)?;
        session.round_trip()?;
    }
    server.finish().map(drop)
}

/// A tool that was quick for long is trusted to be quick, and the threads of the connections may poll it: then it blocks one of
/// them, and 100 other connections are on the same threads.
fn quick_then_blocked(context: &mut CheckContext, tool: &str) -> Verdict {
    let mut server = ReferenceServer::start(context, &launch(context))?;
    let session = server.session()?;
    let mut trusted = server.connect()?;
    for _ in 0..1_000 {
        let id = server.fresh_id();
        trusted.send(&session.call(&id, tool, json!({ "ms": 0 })))?;
        let head = trusted.head()?;
        answer(&head, &mut trusted, &id)?;
    }
    let mut others = Vec::new();
    for _ in 0..100 {
        others.push(server.connect()?);
    }
    for wire in &mut others {
        list_over(&session, wire)?;
    }
    let mut blocking = Vec::new();
    for _ in 0..server.server.workers()? {
        let mut wire = server.connect()?;
        wire.send(&session.call(&server.fresh_id(), tool, json!({ "ms": BLOCK_MS })))?;
        blocking.push(wire);
    }
    let mut slowest = Duration::ZERO;
    for wire in &mut others {
        slowest = slowest.max(list_over(&session, wire)?);
    }
    context.note(format!("{} blocked, slowest list of 100 connections {}", blocking.len(), seconds(slowest)));
    ensure!(slowest < PROMPT, "a list took {slowest:?} while a handler blocks");
    server.server.signal(rustix::process::Signal::TERM)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

/// Lists the tools over that connection, and returns how long it took.
fn list_over(session: &HttpSession<'_>, wire: &mut Wire) -> Verdict<Duration> {
    let id = session.server.fresh_id();
    let start = Instant::now();
    wire.send(&session.ask(&id, "tools/list", json!({})))?;
    let head = wire.head()?;
    answer(&head, wire, &id)?;
    Ok(start.elapsed())
}

/// `count` of 0: as many as there are workers.
fn blocked(context: &mut CheckContext, tool: &str, count: usize) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::start(context, &launch)?;
    let count = if count == 0 { server.server.workers()? } else { count };
    let session = server.session()?;
    let cancelled = server.fresh_id();
    let cleaned = session.begin(&cancelled, "slow_cleanup", json!({ "ms": LONG_MS }))?;
    let mut blocking = Vec::new();
    for _ in 0..count {
        let mut wire = server.connect()?;
        wire.send(&session.call(&server.fresh_id(), tool, json!({ "ms": BLOCK_MS })))?;
        blocking.push(wire);
    }
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        slowest = slowest.max(session.quick()?);
        if tool == "block_thread" {
            session.round_trip()?;
        }
        context.random.pause(5_000);
    }
    context.note(format!("{count} blocked, slowest list {}", seconds(slowest)));
    ensure!(slowest < PROMPT, "a list took {slowest:?} while others block");
    if session.id.is_some() {
        session.cancel(&cancelled)?;
    }
    drop(cleaned);
    // With every worker blocked, none is free to run the cleanup.
    if tool == "block_thread" {
        let took = wait_for_cleanups(&log, 1)?;
        context.note(format!("cleanup {}", seconds(took)));
    }
    // The clients of some of them leave.
    blocking.truncate(count / 2);
    session.quick()?;
    server.server.signal(rustix::process::Signal::TERM)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    if ending.took > ENDING_ACCEPTED {
        fail!("it waited for blocked handlers");
    }
    Ok(())
}
