//! Sessions that are deleted, or abandoned, in every state. Up to 2025-11-25.

use std::time::{Duration, Instant};

use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, answer, launch, message, rest};
use super::wire::Wire;
use crate::check_context::{CheckContext, cleanup_lines, seconds, wait_for_cleanups};
use crate::client::expect;
use crate::client::message::{Body, Id, Identity};
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{ABANDONED_GROWTH_KIB, LONG_MS, PROMPT};
use crate::process::memory::{Settled, Windows};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_sessions",
    fault: "a session is deleted while calls run, and while the server waits for the client; its streams close in either \
            order; 1,000 sessions are abandoned without a word",
    must: "every handler is stopped and cleaned up, every call that was begun is answered for and never with 404, the \
           session is gone; abandoned sessions are gone after the idle time and the memory is back",
    checks: &[
        Check::new("deleted_while_calls_run", OLDER, while_calls_run),
        Check::new("deleted_while_calls_run_raced", Era::HANDSHAKE, while_calls_run_raced),
        Check::new("deleted_while_the_server_waits_for_roots", OLDER, while_roots),
        Check::new("deleted_while_the_server_waits_for_input", Era::HANDSHAKE, while_input),
        Check::new("deleted_while_the_server_waits_raced", Era::HANDSHAKE, while_waiting_raced),
        Check::new("client_that_never_answers_is_cancelled", Era::HANDSHAKE, never_answers),
        Check::new("client_that_left_is_asked_again", Era::HANDSHAKE, asked_again),
        Check::new("get_and_post_close_in_either_order", OLDER, either_order),
        Check::new("get_and_post_close_in_either_order_raced", Era::HANDSHAKE, either_order_raced),
        Check::new("thousand_abandoned", Era::HANDSHAKE, thousand_abandoned).alone(),
    ],
};

/// Every revision with sessions that is still spoken by many.
const OLDER: &[Era] = &[Era::V2025_03_26, Era::V2025_06_18, Era::V2025_11_25];

/// Long enough to open a thousand sessions while all of them live.
const IDLE_MS: u64 = 3_000;

/// A session that is gone is gone for everything.
fn gone(session: &HttpSession<'_>) -> Verdict {
    let ping = session.ask(&session.server.fresh_id(), "ping", json!({}));
    for (what, request) in
        [("a POST", ping), ("a GET", session.request("GET")), ("a DELETE", session.request("DELETE"))]
    {
        let status = session.server.status(&request)?;
        ensure!(status == 404, "{what} of a deleted session was answered with {status}");
    }
    Ok(())
}

fn delete(session: &HttpSession<'_>) -> Verdict {
    let status = session.delete()?;
    ensure!((200..300).contains(&status), "DELETE was answered with {status}");
    Ok(())
}

/// The call was begun, so it is answered for, under its id.
fn answered_for(wire: &mut Wire, id: &Id) -> Verdict {
    let head = wire.head()?;
    ensure!(head.status == 200, "{id}, which ran, was answered with {}", head.status);
    let answer = answer(&head, wire, id)?;
    expect::own_condition(&answer).map(drop)
}

fn while_calls_run(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    for round in 1..=5 {
        let session = server.session()?;
        let (streaming, silent, stubborn) = (server.fresh_id(), server.fresh_id(), server.fresh_id());
        let mut stream = session.begin(&streaming, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        let mut held = server.connect()?;
        held.send(&session.call(&silent, "slow_cleanup", json!({ "ms": LONG_MS })))?;
        let mut going_on = server.connect()?;
        going_on.send(&session.call(&stubborn, "stubborn", json!({ "ms": 50 })))?;
        let (_, mut listening) = session.listen(None)?;
        session.round_trip()?;
        std::thread::sleep(Duration::from_millis(20));
        session.round_trip()?;
        delete(&session)?;
        let Some(last) = rest(&mut stream, &streaming)? else {
            fail!("the stream of {streaming} ended without a word about it")
        };
        expect::own_condition(&last)?;
        answered_for(&mut held, &silent)?;
        // On a slow machine this one may have ended before the session.
        let head = going_on.head()?;
        let last = answer(&head, &mut going_on, &stubborn)?;
        let ended = expect::text(&last, server.era).is_ok() || expect::own_condition(&last).is_ok();
        ensure!(head.status == 200 && ended, "{} {}", head.status, last.opening);
        while listening.event()?.is_some() {}
        wait_for_cleanups(&log, 2 * round)?;
        gone(&session)?;
    }
    ensure!(cleanup_lines(&log) == 10, "{} cleanups of 10 calls", cleanup_lines(&log));
    server.finish().map(drop)
}

/// Whatever the moment: a call is answered, or answered for, or refused with 404 and then nothing of it ever ran.
fn while_calls_run_raced(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let mut refused = Vec::new();
    let (mut answered, mut ended) = (0, 0);
    context.race(|context| {
        let session = server.session()?;
        let (id, ms) = (server.fresh_id(), context.random.below(2) * LONG_MS);
        let call = session.call(&id, "slow_cleanup", json!({ "ms": ms }));
        let delete = session.request("DELETE");
        let (mut calling, mut deleting) = (server.connect()?, server.connect()?);
        if context.random.coin() {
            calling.send(&call)?;
            context.random.pause(1_500);
            deleting.send(&delete)?;
        } else {
            deleting.send(&delete)?;
            context.random.pause(100);
            calling.send(&call)?;
        }
        ensure!(deleting.head()?.status == 204, "DELETE failed");
        let head = calling.head()?;
        match head.status {
            404 => refused.push(id),
            200 => match answer(&head, &mut calling, &id)?.body {
                Body::Error(_) => ended += 1,
                _ => answered += 1,
            },
            other => fail!("{id} was answered with {other}"),
        }
        Ok(())
    })?;
    server.finish()?;
    let lines = std::fs::read_to_string(&log).unwrap_or_default();
    for id in &refused {
        let ran = lines.lines().any(|line| line.ends_with(&format!(" {id}")));
        ensure!(!ran, "{id} was refused with 404, and its handler ran");
    }
    context.note(format!("{answered} answered, {ended} ended with the session, {} came too late", refused.len()));
    Ok(())
}

/// The question of a handler, on the stream of its call.
fn asked(session: &HttpSession<'_>, id: &Id, tool: &str, method: &str) -> Verdict<(Wire, Id)> {
    let arguments = json!({ "prompt": "?", "message": "?" });
    let (head, mut wire) = session.server.send(&session.call(id, tool, arguments))?;
    ensure!(head.status == 200 && head.is_events(), "{tool} was answered with {}", head.status);
    loop {
        let event = wire.event()?.ok_or_else(|| Failure(format!("{tool} asked nothing")))?;
        let Some(message) = message(&event)? else { continue };
        match (message.id, message.body) {
            (Identity::Of(question), Body::Request { method: asked }) if asked == method => {
                return Ok((wire, question));
            }
            _ => fail!("{tool} said something else than {method}: {}", message.opening),
        }
    }
}

fn while_waiting(session: &HttpSession<'_>, tool: &str, method: &str) -> Verdict {
    let (first, second) = (session.server.fresh_id(), session.server.fresh_id());
    let (mut one, question) = asked(session, &first, tool, method)?;
    let (two, _) = asked(session, &second, tool, method)?;
    // One of the two is not even listening any more.
    drop(two);
    delete(session)?;
    let Some(last) = rest(&mut one, &first)? else { fail!("the stream of {first} ended without a word about it") };
    expect::any_failure(&last, session.server.era)?;
    let status = session.server.status(&session.post(roots(&question)))?;
    ensure!(status == 404, "an answer in a deleted session got {status}");
    gone(session)
}

fn while_roots(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    for _ in 0..10 {
        while_waiting(&server.session()?, "ask_roots", "roots/list")?;
    }
    server.finish().map(drop)
}

fn while_input(context: &mut CheckContext) -> Verdict {
    let launch = launch(context).argument("--conformance");
    let mut server = ReferenceServer::start(context, &launch)?;
    for _ in 0..10 {
        while_waiting(&server.session()?, "test_elicitation", "elicitation/create")?;
        while_waiting(&server.session()?, "test_sampling", "sampling/createMessage")?;
    }
    server.server.signal(rustix::process::Signal::TERM)?;
    server.ended(crate::limits::ENDING_ACCEPTED).map(drop)
}

/// The answer of the client and the end of its session, in either order.
fn while_waiting_raced(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let (mut succeeded, mut failed) = (0, 0);
    context.race(|context| {
        let session = server.session()?;
        let id = server.fresh_id();
        let (mut wire, question) = asked(&session, &id, "ask_roots", "roots/list")?;
        let answer = session.post(roots(&question));
        let (mut answering, mut deleting) = (server.connect()?, server.connect()?);
        if context.random.coin() {
            answering.send(&answer)?;
            context.random.pause(800);
            deleting.send(&session.request("DELETE"))?;
        } else {
            deleting.send(&session.request("DELETE"))?;
            context.random.pause(100);
            answering.send(&answer)?;
        }
        let status = answering.head()?.status;
        ensure!([202, 404].contains(&status), "the answer to a question got {status}");
        ensure!(deleting.head()?.status == 204, "DELETE failed");
        let Some(last) = rest(&mut wire, &id)? else { fail!("the stream of {id} ended without a word about it") };
        match expect::text(&last, session.server.era) {
            Ok(_) => succeeded += 1,
            Err(_) => failed += 1,
        }
        Ok(())
    })?;
    context.note(format!("{succeeded} were answered, {failed} ended with the session"));
    server.finish().map(drop)
}

fn never_answers(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for _ in 0..10 {
        let id = server.fresh_id();
        let (mut wire, question) = asked(&session, &id, "ask_roots", "roots/list")?;
        session.cancel(&id)?;
        // The input request is cancelled; the call has no response.
        let mut taken_back = false;
        while let Some(event) = wire.event()? {
            let Some(message) = message(&event)? else { continue };
            ensure!(message.answers().is_none(), "a cancelled call was answered: {}", message.opening);
            taken_back |= message.opening.contains("notifications/cancelled");
        }
        let status = server.status(&session.post(roots(&question)))?;
        ensure!(status == 202, "a late answer got {status}");
        session.round_trip()?;
        ensure!(taken_back, "the question was not taken back");
    }
    server.finish().map(drop)
}

/// The stream with the question is cut before it was read. The question is on it again, its answer is taken, and the call
/// goes on to its end.
fn asked_again(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for _ in 0..10 {
        let id = server.fresh_id();
        let (_, mut wire) = server.send(&session.call(&id, "ask_roots", json!({})))?;
        let Some(last) = wire.event()?.and_then(|event| event.id) else { fail!("the stream was not primed") };
        if context.random.coin() {
            wire.reset()?;
        } else {
            drop(wire);
        }
        let (head, mut wire) = session.listen(Some(&last))?;
        ensure!(head.status == 200, "coming back was answered with {}", head.status);
        let question = wire.event()?.map(|event| message(&event)).transpose()?.flatten();
        let Some(Identity::Of(question)) = question.map(|question| question.id) else { fail!("no question again") };
        let status = server.status(&session.post(roots(&question)))?;
        ensure!(status == 202, "the answer to a question got {status}");
        let Some(last) = rest(&mut wire, &id)? else { fail!("{id} was not answered") };
        expect::text(&last, server.era)?;
    }
    server.finish().map(drop)
}

/// The answer to a question for roots.
fn roots(question: &Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{question},\"result\":{{\"roots\":[]}}}}")
}

/// The three ends of a session, each of which may come first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseTarget {
    Get,
    Post,
    Session,
}

const ORDERS: [[CloseTarget; 3]; 6] = [
    [CloseTarget::Get, CloseTarget::Post, CloseTarget::Session],
    [CloseTarget::Post, CloseTarget::Get, CloseTarget::Session],
    [CloseTarget::Get, CloseTarget::Session, CloseTarget::Post],
    [CloseTarget::Post, CloseTarget::Session, CloseTarget::Get],
    [CloseTarget::Session, CloseTarget::Get, CloseTarget::Post],
    [CloseTarget::Session, CloseTarget::Post, CloseTarget::Get],
];

/// Both streams are open and a call runs; then all ends come, in this order, with these pauses between.
fn in_order(server: &ReferenceServer, order: [CloseTarget; 3], mut pause: impl FnMut()) -> Verdict {
    let session = server.session()?;
    let (head, listening) = session.listen(None)?;
    ensure!(head.status == 200, "GET was answered with {}", head.status);
    let calling = session.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?;
    let (mut listening, mut calling) = (Some(listening), Some(calling));
    for end in order {
        match end {
            CloseTarget::Get => listening = None,
            CloseTarget::Post => calling = None,
            CloseTarget::Session => delete(&session)?,
        }
        pause();
    }
    drop((listening, calling));
    gone(&session)
}

fn either_order(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    for (number, order) in ORDERS.into_iter().enumerate() {
        in_order(&server, order, || ())?;
        wait_for_cleanups(&log, number + 1)?;
    }
    ensure!(cleanup_lines(&log) == ORDERS.len(), "{} cleanups of {} calls", cleanup_lines(&log), ORDERS.len());
    server.finish().map(drop)
}

fn either_order_raced(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log);
    let mut server = ReferenceServer::watched(context, launch)?;
    let mut calls = 0;
    context.race(|context| {
        calls += 1;
        let order = ORDERS[context.random.place(ORDERS.len())];
        in_order(&server, order, || context.random.pause(400))
    })?;
    wait_for_cleanups(&log, calls)?;
    ensure!(cleanup_lines(&log) == calls, "{} cleanups of {calls} calls", cleanup_lines(&log));
    server.finish().map(drop)
}

/// No client deletes its session. Some have calls that run, some have streams that were cut, all of them have connections that ended.
fn thousand_abandoned(context: &mut CheckContext) -> Verdict {
    const SESSIONS: usize = 1_000;
    const WITH_CALLS: usize = 100;
    // What an allocator has it keeps: that the memory is back shows when as many again fit into it.
    const ROUNDS: Windows = Windows { rounds: 1, most: 4, bound: ABANDONED_GROWTH_KIB };
    let log = context.new_file();
    let launch = launch(context).cleanup_log(&log).argument("--session-idle").argument(IDLE_MS.to_string());
    let mut server = ReferenceServer::watched(context, launch)?;
    server.alive()?;
    let idle = server.server.memory()?.resident;
    let mut round = 0;
    let Settled { first, last } = ROUNDS.run(|| {
        round += 1;
        let (mut names, mut wire) = (Vec::new(), server.connect()?);
        for number in 0..SESSIONS {
            let session = server.session_over(&mut wire)?;
            if number % (SESSIONS / WITH_CALLS) == 0 {
                drop(session.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?);
            } else if number % 3 == 0 {
                drop(session.listen(None)?);
            }
            names.push(session.id);
        }
        let full = server.server.memory()?.resident;
        drop(wire);
        let took = all_gone(&server, names)?;
        ensure!(cleanup_lines(&log) == round * WITH_CALLS, "{} cleanups of {WITH_CALLS} calls", cleanup_lines(&log));
        if round == 1 {
            context.note(format!("all gone {} after the last was opened", seconds(took)));
        }
        Ok(full)
    })?;
    context.note_memory("1,000 sessions over idle", first.saturating_sub(idle));
    context.note_memory("as many again added", last.saturating_sub(first));
    server.finish().map(drop)
}

/// Waits until every one of these sessions is unknown. To ask for one is no sign of life from it, unless it is there.
fn all_gone(server: &ReferenceServer, names: Vec<Option<String>>) -> Verdict<Duration> {
    let start = Instant::now();
    // Asking a session keeps it: the idle time has to pass first. The last one was opened last.
    std::thread::sleep(Duration::from_millis(IDLE_MS) + PROMPT / 2);
    let took = start.elapsed();
    let mut wire = server.connect()?;
    for id in names {
        wire.send(&HttpSession { server, id }.request("DELETE"))?;
        ensure!(wire.head()?.status == 404, "a session is there although its idle time is over");
        wire.body()?;
    }
    Ok(took)
}
