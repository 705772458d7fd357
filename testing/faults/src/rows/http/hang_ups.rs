//! The client hangs up, in every phase of a request.

use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, launch, message, rest};
use super::wire::Wire;
use crate::check_context::{CheckContext, cleanup_lines, wait_for_cleanups};
use crate::client::expect;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{LONG_MS, PROMPT};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_hang_ups",
    fault: "the client hangs up before the head of its request ends, in the body, before the head of the answer, in the \
            middle of a stream, with an end or with a reset",
    must: "in 2026-07-28 the call is cancelled and cleaned up; before, it goes on and its stream can be resumed; others \
           notice nothing, and no handler is left",
    checks: &[
        Check::new("in_the_head", Era::BOTH, in_the_head),
        Check::new("in_the_body", Era::BOTH, in_the_body),
        Check::new("before_the_head_of_the_answer", Era::BOTH, before_the_answer),
        Check::new("in_the_stream", Era::BOTH, in_the_stream),
        Check::new("in_the_stream_and_back", Era::HANDSHAKE, and_back),
        Check::new("behind_the_request", Era::HANDSHAKE, behind_the_request),
        Check::new("never_and_never_goes_on", Era::BOTH, never_goes_on),
        Check::new("at_any_moment_raced", Era::BOTH, raced),
    ],
};

fn hang_up(context: &mut CheckContext, wire: Wire) -> Verdict {
    if context.random.coin() { wire.reset() } else { Ok(()) }
}

fn in_the_head(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let head = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).head();
    for cut in 0..head.len() {
        let mut wire = server.connect()?;
        wire.write(&head[..cut])?;
        hang_up(context, wire)?;
    }
    session.round_trip()?;
    server.finish().map(drop)
}

fn in_the_body(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let request = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS }));
    for cut in 0..request.body.len() {
        let mut wire = server.connect()?;
        wire.write(&request.head())?;
        wire.write(&request.body[..cut])?;
        hang_up(context, wire)?;
        let mut wire = server.connect()?;
        wire.write(&request.clone().with("Transfer-Encoding", "chunked").head())?;
        wire.write(format!("{:x}\r\n", request.body.len()).as_bytes())?;
        wire.write(&request.body[..cut])?;
        hang_up(context, wire)?;
    }
    session.round_trip()?;
    server.finish().map(drop)
}

/// A handler that runs and has sent nothing, and the connection that waits for its response.
fn silent_call(session: &HttpSession<'_>, id: &crate::client::message::Id) -> Verdict<Wire> {
    let mut wire = session.server.connect()?;
    wire.send(&session.call(id, "slow_cleanup", json!({ "ms": LONG_MS })))?;
    session.round_trip()?;
    // Time for a worker to begin with it: one that never began has nothing to clean up.
    std::thread::sleep(std::time::Duration::from_millis(30));
    session.round_trip()?;
    Ok(wire)
}

fn before_the_answer(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let session = server.session()?;
    for round in 1..=10 {
        let id = server.fresh_id();
        let wire = silent_call(&session, &id)?;
        hang_up(context, wire)?;
        cancelled_or_going_on(&session, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// Hanging up is the cancellation in one era, and none in the other.
fn cancelled_or_going_on(
    session: &HttpSession<'_>,
    id: &crate::client::message::Id,
    log: &std::path::Path,
    count: usize,
) -> Verdict {
    if session.id.is_some() {
        session.round_trip()?;
        ensure!(cleanup_lines(log) == count - 1, "{id} was cancelled by a lost connection");
        session.cancel(id)?;
    }
    wait_for_cleanups(log, count)?;
    ensure!(cleanup_lines(log) == count, "{} cleanups of {count} calls", cleanup_lines(log));
    session.round_trip()
}

fn in_the_stream(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let session = server.session()?;
    for round in 1..=20 {
        let id = server.fresh_id();
        let wire = session.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        hang_up(context, wire)?;
        cancelled_or_going_on(&session, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// A client whose connection is cut repeatedly, and that resumes each time, gets every event once and in order, and the response.
fn and_back(context: &mut CheckContext) -> Verdict {
    const STEPS: u32 = 12;
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut cuts = 0;
    for _ in 0..12 {
        let id = server.fresh_id();
        let call = session.call_with_progress(&id, "progress", json!({ "steps": STEPS, "ms": 4 }));
        let (_, mut wire) = server.send(&call)?;
        let mut last: Option<String> = None;
        let mut step = 0.0;
        let answer = loop {
            let mut found = None;
            for _ in 0..=context.random.below(3) {
                let Some(event) = wire.event()? else { break };
                let said = message(&event)?;
                last = event.id.or(last);
                let Some(said) = said else { continue };
                if let Some((_, progress)) = said.progress {
                    let before = std::mem::replace(&mut step, progress);
                    if before >= progress {
                        fail!("step {progress} came after {before}");
                    }
                } else {
                    found = Some(said);
                }
            }
            if let Some(found) = found {
                break found;
            }
            cuts += 1;
            hang_up(context, wire)?;
            let last = last.clone().ok_or_else(|| Failure("a stream without an event to resume from".to_owned()))?;
            let (head, resumed) = session.listen(Some(&last))?;
            ensure!(head.status == 200, "coming back behind {last} was answered with {}", head.status);
            wire = resumed;
        };
        ensure!(answer.answers() == Some(&id), "not the answer to {id}: {}", answer.opening);
        expect::text(&answer, server.era)?;
    }
    context.note(format!("{cuts} times cut and back"));
    server.finish().map(drop)
}

/// The next request is cut while the one before is still served.
fn behind_the_request(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let session = server.session()?;
    for round in 1..=10 {
        let id = server.fresh_id();
        let mut wire = session.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        let next = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).bytes();
        wire.write_regardless(&next[..context.random.place(next.len())]);
        hang_up(context, wire)?;
        cancelled_or_going_on(&session, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// Hundreds of clients that stop in the middle of a head or a body and stay: no other client waits for them.
fn never_goes_on(context: &mut CheckContext) -> Verdict {
    const CLIENTS: usize = 300;
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let bytes = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).bytes();
    let mut stuck = Vec::new();
    for _ in 0..CLIENTS {
        let mut wire = server.connect()?;
        wire.write(&bytes[..context.random.place(bytes.len())])?;
        stuck.push(wire);
    }
    for _ in 0..20 {
        let took = session.quick()?;
        ensure!(took < PROMPT, "clients that do not go on delayed a list by {took:?}");
        session.round_trip()?;
    }
    drop(stuck);
    server.finish().map(drop)
}

fn raced(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    context.race(|context| {
        let id = server.fresh_id();
        let ms = context.random.below(3);
        let (tool, arguments) = match context.random.below(6) {
            0 => ("echo", json!({ "text": "x" })),
            1 => ("blob", json!({ "bytes": 300_000 })),
            2 => ("progress", json!({ "steps": 3, "ms": ms })),
            3 => ("stubborn", json!({ "ms": ms })),
            4 => ("block_thread", json!({ "ms": ms })),
            _ => ("sleep", json!({ "ms": ms })),
        };
        let bytes = session.call_with_progress(&id, tool, arguments).bytes();
        let cut = if context.random.coin() { bytes.len() } else { context.random.place(bytes.len()) };
        let mut wire = server.connect()?;
        wire.write(&bytes[..cut])?;
        context.random.pause(3_000);
        if context.random.below(4) == 0 {
            wire.stop_writing()?;
            context.random.pause(500);
        }
        hang_up(context, wire)
    })?;
    session.round_trip()?;
    server.finish().map(drop)
}

/// What a stream that was not cut ends with, for a check of another row.
pub(super) fn ends_with_text(
    session: &HttpSession<'_>,
    wire: &mut Wire,
    id: &crate::client::message::Id,
) -> Verdict<String> {
    let answer = rest(wire, id)?.ok_or_else(|| Failure(format!("the stream ended without an answer to {id}")))?;
    expect::text(&answer, session.server.era)
}
