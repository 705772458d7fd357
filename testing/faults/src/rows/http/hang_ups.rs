//! The client hangs up, in every phase of a request.

use serde_json::json;

use super::reference_server::{ReferenceServer, Talk, launch, message, rest};
use super::wire::Wire;
use crate::bench::{Bench, cleanup_lines, wait_for_cleanups};
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

fn hang_up(bench: &mut Bench, wire: Wire) -> Verdict {
    if bench.random.coin() { wire.reset() } else { Ok(()) }
}

fn in_the_head(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let head = talk.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).head();
    for cut in 0..head.len() {
        let mut wire = server.connect()?;
        wire.write(&head[..cut])?;
        hang_up(bench, wire)?;
    }
    talk.fence()?;
    server.finish().map(drop)
}

fn in_the_body(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let request = talk.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS }));
    for cut in 0..request.body.len() {
        let mut wire = server.connect()?;
        wire.write(&request.head())?;
        wire.write(&request.body[..cut])?;
        hang_up(bench, wire)?;
        let mut wire = server.connect()?;
        wire.write(&request.clone().with("Transfer-Encoding", "chunked").head())?;
        wire.write(format!("{:x}\r\n", request.body.len()).as_bytes())?;
        wire.write(&request.body[..cut])?;
        hang_up(bench, wire)?;
    }
    talk.fence()?;
    server.finish().map(drop)
}

/// A handler that runs and has sent nothing, and the connection that waits for its response.
fn silent_call(talk: &Talk<'_>, id: &crate::client::message::Id) -> Verdict<Wire> {
    let mut wire = talk.server.connect()?;
    wire.send(&talk.call(id, "slow_cleanup", json!({ "ms": LONG_MS })))?;
    talk.fence()?;
    // Time for a worker to begin with it: one that never began has nothing to clean up.
    std::thread::sleep(std::time::Duration::from_millis(30));
    talk.fence()?;
    Ok(wire)
}

fn before_the_answer(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    let talk = server.talk()?;
    for round in 1..=10 {
        let id = server.fresh_id();
        let wire = silent_call(&talk, &id)?;
        hang_up(bench, wire)?;
        cancelled_or_going_on(&talk, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// Hanging up is the cancellation in one era, and none in the other.
fn cancelled_or_going_on(
    talk: &Talk<'_>,
    id: &crate::client::message::Id,
    log: &std::path::Path,
    count: usize,
) -> Verdict {
    if talk.session.is_some() {
        talk.fence()?;
        ensure!(cleanup_lines(log) == count - 1, "{id} was cancelled by a lost connection");
        talk.cancel(id)?;
    }
    wait_for_cleanups(log, count)?;
    ensure!(cleanup_lines(log) == count, "{} cleanups of {count} calls", cleanup_lines(log));
    talk.fence()
}

fn in_the_stream(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    let talk = server.talk()?;
    for round in 1..=20 {
        let id = server.fresh_id();
        let wire = talk.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        hang_up(bench, wire)?;
        cancelled_or_going_on(&talk, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// A client whose connection is cut repeatedly, and that resumes each time, gets every event once and in order, and the response.
fn and_back(bench: &mut Bench) -> Verdict {
    const STEPS: u32 = 12;
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let mut cuts = 0;
    for _ in 0..12 {
        let id = server.fresh_id();
        let call = talk.call_with_progress(&id, "progress", json!({ "steps": STEPS, "ms": 4 }));
        let (_, mut wire) = server.send(&call)?;
        let mut last: Option<String> = None;
        let mut step = 0.0;
        let answer = loop {
            let mut found = None;
            for _ in 0..=bench.random.below(3) {
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
            hang_up(bench, wire)?;
            let last = last.clone().ok_or_else(|| Failure("a stream without an event to come back to".to_owned()))?;
            let (head, resumed) = talk.listen(Some(&last))?;
            ensure!(head.status == 200, "coming back behind {last} was answered with {}", head.status);
            wire = resumed;
        };
        ensure!(answer.answers() == Some(&id), "not the answer to {id}: {}", answer.opening);
        expect::text(&answer, server.era)?;
    }
    bench.note(format!("{cuts} times cut and back"));
    server.finish().map(drop)
}

/// The next request is cut while the one before is still served.
fn behind_the_request(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    let talk = server.talk()?;
    for round in 1..=10 {
        let id = server.fresh_id();
        let mut wire = talk.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        let next = talk.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).bytes();
        wire.write_regardless(&next[..bench.random.place(next.len())]);
        hang_up(bench, wire)?;
        cancelled_or_going_on(&talk, &id, &log, round)?;
    }
    server.finish().map(drop)
}

/// Hundreds of clients that stop in the middle of a head or a body and stay: no other client waits for them.
fn never_goes_on(bench: &mut Bench) -> Verdict {
    const CLIENTS: usize = 300;
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let bytes = talk.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).bytes();
    let mut stuck = Vec::new();
    for _ in 0..CLIENTS {
        let mut wire = server.connect()?;
        wire.write(&bytes[..bench.random.place(bytes.len())])?;
        stuck.push(wire);
    }
    for _ in 0..20 {
        let took = talk.quick()?;
        ensure!(took < PROMPT, "clients that do not go on delayed a list by {took:?}");
        talk.fence()?;
    }
    drop(stuck);
    server.finish().map(drop)
}

fn raced(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    bench.race(|bench| {
        let id = server.fresh_id();
        let ms = bench.random.below(3);
        let (tool, arguments) = match bench.random.below(6) {
            0 => ("echo", json!({ "text": "x" })),
            1 => ("blob", json!({ "bytes": 300_000 })),
            2 => ("progress", json!({ "steps": 3, "ms": ms })),
            3 => ("stubborn", json!({ "ms": ms })),
            4 => ("block_thread", json!({ "ms": ms })),
            _ => ("sleep", json!({ "ms": ms })),
        };
        let bytes = talk.call_with_progress(&id, tool, arguments).bytes();
        let cut = if bench.random.coin() { bytes.len() } else { bench.random.place(bytes.len()) };
        let mut wire = server.connect()?;
        wire.write(&bytes[..cut])?;
        bench.random.pause(3_000);
        if bench.random.below(4) == 0 {
            wire.stop_writing()?;
            bench.random.pause(500);
        }
        hang_up(bench, wire)
    })?;
    talk.fence()?;
    server.finish().map(drop)
}

/// What a stream that was not cut ends with, for a check of another row.
pub(super) fn ends_with_text(talk: &Talk<'_>, wire: &mut Wire, id: &crate::client::message::Id) -> Verdict<String> {
    let answer = rest(wire, id)?.ok_or_else(|| Failure(format!("the stream ended without an answer to {id}")))?;
    expect::text(&answer, talk.server.era)
}
