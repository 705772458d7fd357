//! The server gets a signal to stop, with clients in every state.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, answer, launch, rest};
use crate::check_context::{CheckContext, cleanup_lines};
use crate::client::expect;
use crate::era::Era;
use crate::failure::{Verdict, ensure, fail};
use crate::limits::{BLOCK_MS, ENDING_ACCEPTED, LONG_MS};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_signals",
    fault: "SIGTERM with calls running, with clients that left, with streams open or unread, with half a request; twice",
    must: "what ends within the drain window is answered, the rest is answered for; cleanups run, also of those whose \
           clients left; nothing new is begun; exit code 0 on time",
    checks: &[
        Check::new("with_calls_running", Era::BOTH, with_calls_running),
        Check::new("with_clients_that_left", Era::BOTH, with_clients_that_left),
        Check::new("with_idle_connections_and_streams", Era::BOTH, with_idle),
        Check::new("with_half_a_request", Era::BOTH, with_half_a_request),
        Check::new("with_unread_answers", Era::BOTH, with_unread),
        Check::new("twice", Era::BOTH, twice),
        Check::new("behind_quick_calls_raced", Era::BOTH, raced),
    ],
};

fn with_calls_running(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::start(context, &launch)?;
    let session = server.session()?;
    let (quick, slow, silent) = (server.fresh_id(), server.fresh_id(), server.fresh_id());
    let mut ends = session.begin(&quick, "progress", json!({ "steps": 20, "ms": 20 }))?;
    let mut lasts = session.begin(&slow, "slow_cleanup", json!({ "ms": LONG_MS }))?;
    let mut says_nothing = server.connect()?;
    says_nothing.send(&session.call(&silent, "slow_cleanup", json!({ "ms": LONG_MS })))?;
    session.round_trip()?;
    server.server.signal(Signal::TERM)?;
    super::hang_ups::ends_with_text(&session, &mut ends, &quick)?;
    let Some(stopped) = rest(&mut lasts, &slow)? else { fail!("{slow} was not answered for") };
    expect::own_condition(&stopped)?;
    let head = says_nothing.head()?;
    // The round trip  on another connection, so the signal may have come before this request was read: then it was not begun, and
    // has nothing to clean up.
    let begun = head.status != 503;
    if begun {
        expect::own_condition(&answer(&head, &mut says_nothing, &silent)?)?;
    }
    nothing_is_begun(&server, &session)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    // A handler that was still waiting for a worker has nothing to clean up either.
    let (lines, calls) = (cleanup_lines(&log), 1 + usize::from(begun));
    ensure!((1..=calls).contains(&lines), "slow_cleanup wrote {lines} lines in {calls} calls");
    Ok(())
}

/// A connection that is taken during the drain is for answers and cancellations.
fn nothing_is_begun(server: &ReferenceServer, session: &HttpSession<'_>) -> Verdict {
    let Ok(mut late) = server.connect() else { return Ok(()) };
    let id = server.fresh_id();
    // It may be over at any moment.
    if late.send(&session.call(&id, "sleep", json!({ "ms": 0 }))).is_ok()
        && let Ok(Some(head)) = late.maybe_head()
    {
        ensure!(head.status == 503, "{id} was answered with {} during the drain", head.status);
    }
    Ok(())
}

/// No client is connected: handlers are still stopped, and their cleanups run.
fn with_clients_that_left(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::start(context, &launch)?;
    for _ in 0..5 {
        let session = server.session()?;
        drop(session.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?);
    }
    server.alive()?;
    server.server.signal(Signal::TERM)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 5, "{} cleanups of 5 calls", cleanup_lines(&log));
    Ok(())
}

fn with_idle(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut idle = Vec::new();
    for _ in 0..20 {
        // One connection that sent nothing, and one that may send more.
        idle.push(server.connect()?);
        let id = server.fresh_id();
        let mut wire = server.connect()?;
        wire.send(&session.ask(&id, "tools/list", json!({})))?;
        let head = wire.head()?;
        answer(&head, &mut wire, &id)?;
        idle.push(wire);
    }
    let listening = if session.id.is_some() { Some(session.listen(None)?.1) } else { None };
    server.server.signal(Signal::TERM)?;
    for wire in &mut idle {
        wire.closed()?;
    }
    if let Some(mut listening) = listening {
        while listening.event()?.is_some() {}
    }
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

fn with_half_a_request(context: &mut CheckContext) -> Verdict {
    let launch = launch(context);
    let mut server = ReferenceServer::start(context, &launch)?;
    let session = server.session()?;
    let request = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS }));
    let (mut head, mut body) = (server.connect()?, server.connect()?);
    head.write(&request.head()[..40])?;
    body.write(&request.head())?;
    body.write(&request.body[..10])?;
    session.round_trip()?;
    server.server.signal(Signal::TERM)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

fn with_unread(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::start(context, &launch)?;
    let session = server.session()?;
    let mut unread = vec![session.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?];
    for _ in 0..3 {
        let mut wire = server.connect()?;
        wire.send(&session.call(&server.fresh_id(), "blob", json!({ "bytes": 8 << 20 })))?;
        unread.push(wire);
    }
    session.round_trip()?;
    server.server.signal(Signal::TERM)?;
    let ending = server.ended(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    ensure!(cleanup_lines(&log) == 1, "slow_cleanup wrote {} lines", cleanup_lines(&log));
    Ok(())
}

/// The second signal ends it at once, however long the window is.
fn twice(context: &mut CheckContext) -> Verdict {
    let launch = launch(context).argument("--drain").argument(BLOCK_MS.to_string());
    let mut server = ReferenceServer::start(context, &launch)?;
    let session = server.session()?;
    let running = session.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?;
    server.server.signal(Signal::TERM)?;
    std::thread::sleep(Duration::from_millis(50));
    server.server.signal(Signal::TERM)?;
    let ending = server.server.wait(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    drop(running);
    ensure!(!server.server.errors.text().contains("panicked"), "the second signal made it panic");
    Ok(())
}

/// Calls that were begun before the signal are answered, each in its response, or their connections were never served.
fn raced(context: &mut CheckContext) -> Verdict {
    const ROUNDS: usize = 20;
    let (mut answered, mut closed) = (0, 0);
    for _ in 0..ROUNDS {
        let log = context.new_file();
        let launch = launch(context).cleanup_log(&log);
        let mut server = ReferenceServer::start(context, &launch)?;
        let session = server.session()?;
        let mut calls = Vec::new();
        for _ in 0..context.random.below(8) {
            let (id, mut wire) = (server.fresh_id(), server.connect()?);
            wire.send(&session.call(&id, "sleep", json!({ "ms": context.random.below(5) })))?;
            calls.push((id, wire));
        }
        // One that is known to run is answered for, and cleaned up, whatever the moment.
        let running = server.fresh_id();
        let left = context.random.coin();
        let lasts = left && session.id.is_none();
        let stream = session.begin(&running, "slow_cleanup", json!({ "ms": if lasts { LONG_MS } else { 100 } }))?;
        let mut stream = Some(stream);
        if left {
            stream = None;
        }
        context.random.pause(3_000);
        server.server.signal(Signal::TERM)?;
        for (id, mut wire) in calls {
            match wire.maybe_head()? {
                Some(head) if head.status == 200 => {
                    answer(&head, &mut wire, &id)?;
                    answered += 1;
                }
                Some(head) => ensure!(head.status == 503, "{id} was answered with {}", head.status),
                None => closed += 1,
            }
        }
        if let Some(mut stream) = stream {
            super::hang_ups::ends_with_text(&session, &mut stream, &running)?;
        }
        server.ended(ENDING_ACCEPTED)?;
        let cleaned = cleanup_lines(&log);
        ensure!(cleaned == usize::from(lasts), "{cleaned} cleanups of the call that ran");
    }
    context.note(format!("{answered} answered, {closed} not begun"));
    Ok(())
}
