//! Ten thousand calls in flight, all cancelled; and one call too many.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::check_context::{CheckContext, seconds};
use crate::client::expect;
use crate::client::message::{Body, Id};
use crate::client::{Client, cancel_line};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{
    CHECK_TIMEOUT, IN_FLIGHT_LIMIT, LONG_MS, PROMPT, SLEEPERS_AFTER_KIB, SLEEPERS_GROWTH_KIB, SLEEPERS_KIB,
};
use crate::process::memory::{Settled, Windows};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "ten_thousand_sleepers",
    fault: "10,000 sleep calls in flight, then cancel all",
    must: "all entries gone, memory back, process lives; past the in-flight limit a clear error",
    checks: &[
        Check::new("cancel_all", Era::BOTH, cancel_all).alone(),
        Check::new("past_the_limit", Era::BOTH, past_the_limit).alone(),
    ],
};

const SLEEPERS: u64 = 10_000;
const ROUNDS: Windows = Windows { rounds: 5, most: 5, bound: SLEEPERS_GROWTH_KIB };
/// Calls that are too many.
const TOO_MANY: usize = 100;

/// Starts sleepers with ids from zero up, in one write.
fn start(client: &mut Client, count: u64) -> Verdict<Vec<Id>> {
    let mut lines = String::new();
    let mut ids = Vec::new();
    for number in 0..count {
        let id = Id::number(number);
        client.count(&id);
        lines.push_str(&client.call_line(&id, "sleep", json!({ "ms": LONG_MS })));
        ids.push(id);
    }
    client.send(lines)?;
    Ok(ids)
}

/// The same ids in each round: an entry that was not removed would refuse the next call as a duplicate.
fn cancel_all(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    let idle = client.server.memory()?.resident;
    let settled = ROUNDS.run(|| {
        let ids = start(&mut client, SLEEPERS)?;
        client.round_trip()?;
        let cancels: String = ids.iter().map(cancel_line).collect();
        client.send(cancels)?;
        client.round_trip()?;
        let answered =
            client.between(0, client.place()).iter().filter(|line| matches!(line.body, Body::Error(_))).count();
        ensure!(answered == 0, "{answered} errors: an entry was left behind");
        let unanswered = ids.iter().all(|id| client.answer_count(id) == 0);
        ensure!(unanswered, "a cancelled call was answered");
        settled_memory(&client, idle)
    });
    let peak = client.server.memory()?.peak.saturating_sub(idle);
    context.note_memory("peak over idle", peak);
    ensure!(peak <= SLEEPERS_KIB, "peak of {peak} KiB over idle, the bound is {SLEEPERS_KIB} KiB");
    let Settled { first, last } = settled?;
    context.note_memory("after the first round", first.saturating_sub(idle));
    context.note_memory("after the last", last.saturating_sub(idle));
    let left = last.saturating_sub(idle);
    ensure!(left <= SLEEPERS_AFTER_KIB, "{left} KiB over idle remain, the bound is {SLEEPERS_AFTER_KIB} KiB");
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

/// The memory once the handlers are reaped: the least that is seen in a short while.
fn settled_memory(client: &Client, idle: u64) -> Verdict<u64> {
    let deadline = Instant::now() + Duration::from_millis(300);
    let mut least = client.server.memory()?.resident;
    while Instant::now() < deadline && least > idle {
        std::thread::sleep(Duration::from_millis(20));
        least = least.min(client.server.memory()?.resident);
    }
    Ok(least)
}

fn past_the_limit(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    let ids = start(&mut client, (IN_FLIGHT_LIMIT + TOO_MANY) as u64)?;
    let (accepted, refused) = ids.split_at(IN_FLIGHT_LIMIT);
    for id in refused {
        let answer = client.answer(id)?;
        let words = &expect::own_condition(&answer)?.message;
        ensure!(words.len() > 8, "not a clear error: {words:?}");
    }
    if let Some(id) = refused.first() {
        let words = expect::own_condition(&client.answer(id)?)?.message.clone();
        context.note(format!("the peer hears: {words}"));
    }
    let early = accepted.iter().filter(|id| client.answer_count(id) > 0).count();
    ensure!(early == 0, "{early} calls within the limit were refused");
    // Cancellations are read although the limit is reached, and make room again.
    let cancels: String = accepted.iter().take(10).map(cancel_line).collect();
    client.send(cancels)?;
    let room = room_again(&mut client)?;
    context.note(format!("room again after {}", seconds(room)));
    let cancels: String = accepted.iter().map(cancel_line).collect();
    client.send(cancels)?;
    room_again(&mut client)?;
    let answered = accepted.iter().filter(|id| client.answer_count(id) > 0).count();
    ensure!(answered == 0, "{answered} cancelled calls were answered");
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

/// A handler gives its place back when it has really ended, which may be a moment after its cancellation.
fn room_again(client: &mut Client) -> Verdict<Duration> {
    let start = Instant::now();
    loop {
        let id = client.call("echo", json!({ "text": "room?" }))?;
        if matches!(client.answer_within(&id, CHECK_TIMEOUT)?.body, Body::Result(_)) {
            return Ok(start.elapsed());
        }
        ensure!(start.elapsed() < PROMPT, "cancelled calls still count against the limit after {PROMPT:?}");
    }
}
