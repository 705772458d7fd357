//! Sessions that are deleted, or abandoned, in every state. Up to 2025-11-25.

use std::time::{Duration, Instant};

use serde_json::json;

use super::reference_server::{ReferenceServer, Talk, answer, launch, message, rest};
use super::wire::Wire;
use crate::bench::{Bench, cleanup_lines, seconds, wait_for_cleanups};
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
fn gone(talk: &Talk<'_>) -> Verdict {
    let ping = talk.ask(&talk.server.fresh_id(), "ping", json!({}));
    for (what, request) in [("a POST", ping), ("a GET", talk.request("GET")), ("a DELETE", talk.request("DELETE"))] {
        let status = talk.server.status(&request)?;
        ensure!(status == 404, "{what} of a deleted session was answered with {status}");
    }
    Ok(())
}

fn delete(talk: &Talk<'_>) -> Verdict {
    let status = talk.delete()?;
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

fn while_calls_run(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    for round in 1..=5 {
        let talk = server.talk()?;
        let (streaming, silent, stubborn) = (server.fresh_id(), server.fresh_id(), server.fresh_id());
        let mut stream = talk.begin(&streaming, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        let mut held = server.connect()?;
        held.send(&talk.call(&silent, "slow_cleanup", json!({ "ms": LONG_MS })))?;
        let mut going_on = server.connect()?;
        going_on.send(&talk.call(&stubborn, "stubborn", json!({ "ms": 50 })))?;
        let (_, mut listening) = talk.listen(None)?;
        talk.fence()?;
        std::thread::sleep(Duration::from_millis(20));
        talk.fence()?;
        delete(&talk)?;
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
        gone(&talk)?;
    }
    ensure!(cleanup_lines(&log) == 10, "{} cleanups of 10 calls", cleanup_lines(&log));
    server.finish().map(drop)
}

/// Whatever the moment: a call is answered, or answered for, or refused with 404 and then nothing of it ever ran.
fn while_calls_run_raced(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    let mut refused = Vec::new();
    let (mut answered, mut ended) = (0, 0);
    bench.race(|bench| {
        let talk = server.talk()?;
        let (id, ms) = (server.fresh_id(), bench.random.below(2) * LONG_MS);
        let call = talk.call(&id, "slow_cleanup", json!({ "ms": ms }));
        let delete = talk.request("DELETE");
        let (mut calling, mut deleting) = (server.connect()?, server.connect()?);
        if bench.random.coin() {
            calling.send(&call)?;
            bench.random.pause(1_500);
            deleting.send(&delete)?;
        } else {
            deleting.send(&delete)?;
            bench.random.pause(100);
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
    bench.note(format!("{answered} answered, {ended} ended with the session, {} came too late", refused.len()));
    Ok(())
}

/// The question of a handler, on the stream of its call.
fn asked(talk: &Talk<'_>, id: &Id, tool: &str, method: &str) -> Verdict<(Wire, Id)> {
    let arguments = json!({ "prompt": "?", "message": "?" });
    let (head, mut wire) = talk.server.send(&talk.call(id, tool, arguments))?;
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

fn while_waiting(talk: &Talk<'_>, tool: &str, method: &str) -> Verdict {
    let (first, second) = (talk.server.fresh_id(), talk.server.fresh_id());
    let (mut one, question) = asked(talk, &first, tool, method)?;
    let (two, _) = asked(talk, &second, tool, method)?;
    // One of the two is not even listening any more.
    drop(two);
    delete(talk)?;
    let Some(last) = rest(&mut one, &first)? else { fail!("the stream of {first} ended without a word about it") };
    expect::any_failure(&last, talk.server.era)?;
    let status = talk.server.status(&talk.post(roots(&question)))?;
    ensure!(status == 404, "an answer in a deleted session got {status}");
    gone(talk)
}

fn while_roots(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    for _ in 0..10 {
        while_waiting(&server.talk()?, "ask_roots", "roots/list")?;
    }
    server.finish().map(drop)
}

fn while_input(bench: &mut Bench) -> Verdict {
    let launch = launch(bench).argument("--conformance");
    let mut server = ReferenceServer::start(bench, &launch)?;
    for _ in 0..10 {
        while_waiting(&server.talk()?, "test_elicitation", "elicitation/create")?;
        while_waiting(&server.talk()?, "test_sampling", "sampling/createMessage")?;
    }
    server.server.signal(rustix::process::Signal::TERM)?;
    server.ended(crate::limits::ENDING_ACCEPTED).map(drop)
}

/// The answer of the client and the end of its session, in either order.
fn while_waiting_raced(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let (mut succeeded, mut failed) = (0, 0);
    bench.race(|bench| {
        let talk = server.talk()?;
        let id = server.fresh_id();
        let (mut wire, question) = asked(&talk, &id, "ask_roots", "roots/list")?;
        let answer = talk.post(roots(&question));
        let (mut answering, mut deleting) = (server.connect()?, server.connect()?);
        if bench.random.coin() {
            answering.send(&answer)?;
            bench.random.pause(800);
            deleting.send(&talk.request("DELETE"))?;
        } else {
            deleting.send(&talk.request("DELETE"))?;
            bench.random.pause(100);
            answering.send(&answer)?;
        }
        let status = answering.head()?.status;
        ensure!([202, 404].contains(&status), "the answer to a question got {status}");
        ensure!(deleting.head()?.status == 204, "DELETE failed");
        let Some(last) = rest(&mut wire, &id)? else { fail!("the stream of {id} ended without a word about it") };
        match expect::text(&last, talk.server.era) {
            Ok(_) => succeeded += 1,
            Err(_) => failed += 1,
        }
        Ok(())
    })?;
    bench.note(format!("{succeeded} were answered, {failed} ended with the session"));
    server.finish().map(drop)
}

fn never_answers(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    for _ in 0..10 {
        let id = server.fresh_id();
        let (mut wire, question) = asked(&talk, &id, "ask_roots", "roots/list")?;
        talk.cancel(&id)?;
        // The input request is cancelled; the call has no response.
        let mut taken_back = false;
        while let Some(event) = wire.event()? {
            let Some(message) = message(&event)? else { continue };
            ensure!(message.answers().is_none(), "a cancelled call was answered: {}", message.opening);
            taken_back |= message.opening.contains("notifications/cancelled");
        }
        let status = server.status(&talk.post(roots(&question)))?;
        ensure!(status == 202, "a late answer got {status}");
        talk.fence()?;
        ensure!(taken_back, "the question was not taken back");
    }
    server.finish().map(drop)
}

/// The stream with the question is cut before it was read. The question is on it again, its answer is taken, and the call
/// goes on to its end.
fn asked_again(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    for _ in 0..10 {
        let id = server.fresh_id();
        let (_, mut wire) = server.send(&talk.call(&id, "ask_roots", json!({})))?;
        let Some(last) = wire.event()?.and_then(|event| event.id) else { fail!("the stream was not primed") };
        if bench.random.coin() {
            wire.reset()?;
        } else {
            drop(wire);
        }
        let (head, mut wire) = talk.listen(Some(&last))?;
        ensure!(head.status == 200, "coming back was answered with {}", head.status);
        let question = wire.event()?.map(|event| message(&event)).transpose()?.flatten();
        let Some(Identity::Of(question)) = question.map(|question| question.id) else { fail!("no question again") };
        let status = server.status(&talk.post(roots(&question)))?;
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
enum End {
    Get,
    Post,
    Session,
}

const ORDERS: [[End; 3]; 6] = [
    [End::Get, End::Post, End::Session],
    [End::Post, End::Get, End::Session],
    [End::Get, End::Session, End::Post],
    [End::Post, End::Session, End::Get],
    [End::Session, End::Get, End::Post],
    [End::Session, End::Post, End::Get],
];

/// Both streams are open and a call runs; then all ends come, in this order, with these pauses between.
fn in_order(server: &ReferenceServer, order: [End; 3], mut pause: impl FnMut()) -> Verdict {
    let talk = server.talk()?;
    let (head, listening) = talk.listen(None)?;
    ensure!(head.status == 200, "GET was answered with {}", head.status);
    let calling = talk.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?;
    let (mut listening, mut calling) = (Some(listening), Some(calling));
    for end in order {
        match end {
            End::Get => listening = None,
            End::Post => calling = None,
            End::Session => delete(&talk)?,
        }
        pause();
    }
    drop((listening, calling));
    gone(&talk)
}

fn either_order(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    for (number, order) in ORDERS.into_iter().enumerate() {
        in_order(&server, order, || ())?;
        wait_for_cleanups(&log, number + 1)?;
    }
    ensure!(cleanup_lines(&log) == ORDERS.len(), "{} cleanups of {} calls", cleanup_lines(&log), ORDERS.len());
    server.finish().map(drop)
}

fn either_order_raced(bench: &mut Bench) -> Verdict {
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log);
    let mut server = ReferenceServer::watched(bench, launch)?;
    let mut calls = 0;
    bench.race(|bench| {
        calls += 1;
        let order = ORDERS[bench.random.place(ORDERS.len())];
        in_order(&server, order, || bench.random.pause(400))
    })?;
    wait_for_cleanups(&log, calls)?;
    ensure!(cleanup_lines(&log) == calls, "{} cleanups of {calls} calls", cleanup_lines(&log));
    server.finish().map(drop)
}

/// No client deletes its session. Some have calls that run, some have streams that were cut, all of them have connections that ended.
fn thousand_abandoned(bench: &mut Bench) -> Verdict {
    const SESSIONS: usize = 1_000;
    const WITH_CALLS: usize = 100;
    // What an allocator has it keeps: that the memory is back shows when as many again fit into it.
    const ROUNDS: Windows = Windows { rounds: 1, most: 4, bound: ABANDONED_GROWTH_KIB };
    let log = bench.new_file();
    let launch = launch(bench).cleanup_log(&log).argument("--session-idle").argument(IDLE_MS.to_string());
    let mut server = ReferenceServer::watched(bench, launch)?;
    server.alive()?;
    let idle = server.server.memory()?.resident;
    let mut round = 0;
    let Settled { first, last } = ROUNDS.run(|| {
        round += 1;
        let (mut names, mut wire) = (Vec::new(), server.connect()?);
        for number in 0..SESSIONS {
            let talk = server.talk_over(&mut wire)?;
            if number % (SESSIONS / WITH_CALLS) == 0 {
                drop(talk.begin(&server.fresh_id(), "slow_cleanup", json!({ "ms": LONG_MS }))?);
            } else if number % 3 == 0 {
                drop(talk.listen(None)?);
            }
            names.push(talk.session);
        }
        let full = server.server.memory()?.resident;
        drop(wire);
        let took = all_gone(&server, names)?;
        ensure!(cleanup_lines(&log) == round * WITH_CALLS, "{} cleanups of {WITH_CALLS} calls", cleanup_lines(&log));
        if round == 1 {
            bench.note(format!("all gone {} after the last was opened", seconds(took)));
        }
        Ok(full)
    })?;
    bench.note_memory("1,000 sessions over idle", first.saturating_sub(idle));
    bench.note_memory("as many again added", last.saturating_sub(first));
    server.finish().map(drop)
}

/// Waits until every one of these sessions is unknown. To ask for one is no sign of life from it, unless it is there.
fn all_gone(server: &ReferenceServer, names: Vec<Option<String>>) -> Verdict<Duration> {
    let start = Instant::now();
    // Asking a session keeps it: the idle time has to pass first. The last one was opened last.
    std::thread::sleep(Duration::from_millis(IDLE_MS) + PROMPT / 2);
    let took = start.elapsed();
    let mut wire = server.connect()?;
    for session in names {
        wire.send(&Talk { server, session }.request("DELETE"))?;
        ensure!(wire.head()?.status == 404, "a session is there although its idle time is over");
        wire.body()?;
    }
    Ok(took)
}
