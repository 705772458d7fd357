//! Cancellations that are on time, late, or malformed. The races are in `cancellation_races`.

use std::time::Duration;

use serde_json::json;

use super::cancellation_races as races;
use crate::check_context::{CheckContext, cleanup_lines, seconds, wait_for_cleanups};
use crate::client::expect;
use crate::client::message::{Id, Message};
use crate::client::{Client, cancel_line, initialize_line, initialized_line};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::LONG_MS;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "cancellation",
    fault: "cancellation of a running call; in one write with its request, 200 pairs at once; racing its answer; of a \
            handler that blocks a thread or goes on regardless; \"7\" while 7 runs; after it; twice; of an unknown id; of \
            initialize; malformed",
    must: "never two answers; none after the cancellation was taken in; the process lives",
    checks: &[
        Check::new("running_call", Era::BOTH, running_call),
        Check::new("running_call_is_stopped_and_cleaned_up", Era::BOTH, cleaned_up),
        Check::new("call_with_progress", Era::BOTH, call_with_progress),
        Check::new("call_that_waits_on_the_client", Era::HANDSHAKE, waits_on_client),
        Check::new("200_pairs_of_long_calls_in_one_write", Era::BOTH, races::long_pairs),
        Check::new("200_pairs_of_quick_calls_in_one_write", Era::BOTH, races::quick_pairs),
        Check::new("racing_its_answer", Era::BOTH, races::racing_its_answer),
        Check::new("racing_its_answer_all_tools", Era::BOTH, races::all_tools),
        Check::new("handler_that_blocks_a_thread", Era::BOTH, |context| goes_on(context, "block_thread")),
        Check::new("handler_that_blocks_a_worker", Era::BOTH, |context| goes_on(context, "block_worker")),
        Check::new("handler_that_goes_on_regardless", Era::BOTH, |context| goes_on(context, "stubborn")),
        Check::new("string_7_while_number_7_runs", Era::BOTH, string_while_number),
        Check::new("number_7_while_string_7_runs", Era::BOTH, number_while_string),
        Check::new("one_of_number_7_and_string_7", Era::BOTH, one_of_both),
        Check::new("after_the_answer", Era::BOTH, after_the_answer),
        Check::new("before_the_request", Era::BOTH, before_the_request),
        Check::new("twice", Era::BOTH, twice),
        Check::new("unknown_id", Era::BOTH, unknown_id),
        Check::new("of_initialize", Era::LEGACY, of_initialize),
        Check::new("of_initialize_raced", Era::HANDSHAKE, races::of_initialize),
        Check::new("malformed", Era::BOTH, malformed),
        Check::new("as_a_request", Era::BOTH, as_a_request),
    ],
};

fn running_call(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let other = client.call("sleep", json!({ "ms": 300 }))?;
    // Its own end would come while the check still looks.
    let id = client.call("sleep", json!({ "ms": 200 }))?;
    client.round_trip()?;
    client.cancel(&id)?;
    client.round_trip()?;
    client.text(&other)?;
    ensure!(client.answer_count(&id) == 0, "{id} was answered after its cancellation");
    client.finish()?;
    ensure!(client.answer_count(&id) == 0, "{id} was answered after its cancellation");
    Ok(())
}

fn cleaned_up(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let id = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    let other = client.call("slow_cleanup", json!({ "ms": 100 }))?;
    client.let_them_run()?;
    client.cancel(&id)?;
    let took = wait_for_cleanups(&log, 1)?;
    context.note(format!("cleanup after {}", seconds(took)));
    client.text(&other)?;
    client.finish()?;
    ensure!(client.answer_count(&id) == 0, "{id} was answered after its cancellation");
    ensure!(cleanup_lines(&log) == 1, "{} cleanups for one cancellation", cleanup_lines(&log));
    Ok(())
}

fn call_with_progress(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for _ in 0..20 {
        let (id, token, line) = client.progress_call_line("progress", json!({ "steps": 1_000, "ms": 5 }));
        client.send(line)?;
        let transcript = &client.server.output.transcript;
        let started = transcript.wait(Duration::from_secs(10), |seen| {
            let of_it = |message: &Message| message.progress.as_ref().is_some_and(|(its, _)| *its == token);
            seen.messages.iter().rev().any(of_it).then_some(())
        });
        ensure!(started.is_some(), "no progress of {id}");
        client.cancel(&id)?;
        let (place, _) = client.round_trip()?;
        context.random.pause(5_000);
        client.silent_since(&id, place)?;
    }
    client.finish()?;
    Ok(())
}

fn waits_on_client(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.call("ask_roots", json!({}))?;
    client.requests_from_server("roots/list", 1)?;
    client.cancel(&id)?;
    let (place, _) = client.round_trip()?;
    client.silent_since(&id, place)?;
    ensure!(client.answer_count(&id) == 0, "{id} was answered");
    client.finish()?;
    Ok(())
}

/// The handler cannot be stopped. Its answer, when it has one at last, goes nowhere, and others are served meanwhile.
fn goes_on(context: &mut CheckContext, tool: &str) -> Verdict {
    let mut client = context.open()?;
    for _ in 0..3 {
        let mut ids = Vec::new();
        for ms in [50, 100, 200] {
            // One worker at a time: with all of them blocked nothing else could run.
            let count = if tool == "block_worker" { 1 } else { 8 };
            for _ in 0..count {
                ids.push(client.call(tool, json!({ "ms": ms }))?);
            }
            if tool == "block_worker" {
                break;
            }
        }
        client.let_them_run()?;
        for id in &ids {
            client.cancel(id)?;
        }
        let (place, _) = client.round_trip()?;
        // Longer than the handlers go on.
        let later = client.call("sleep", json!({ "ms": 400 }))?;
        client.text(&later)?;
        for id in &ids {
            client.silent_since(id, place)?;
            ensure!(client.answer_count(id) <= 1, "{id} was answered twice");
        }
    }
    client.finish()?;
    Ok(())
}

fn string_while_number(context: &mut CheckContext) -> Verdict {
    other_type(context, &Id::number(7), &Id::string("7"))
}

fn number_while_string(context: &mut CheckContext) -> Verdict {
    other_type(context, &Id::string("7"), &Id::number(7))
}

fn other_type(context: &mut CheckContext, running: &Id, cancelled: &Id) -> Verdict {
    let mut client = context.open()?;
    client.call_as(running, "sleep", json!({ "ms": 200 }))?;
    client.cancel(cancelled)?;
    client.round_trip()?;
    client.text(running)?;
    client.finish()?;
    Ok(())
}

fn one_of_both(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (number, string) = (Id::number(7), Id::string("7"));
    client.call_as(&number, "sleep", json!({ "ms": 200 }))?;
    client.call_as(&string, "sleep", json!({ "ms": 200 }))?;
    client.cancel(&string)?;
    client.text(&number)?;
    client.round_trip()?;
    client.finish()?;
    ensure!(client.answer_count(&string) == 0, "the cancelled {string} was answered");
    Ok(())
}

fn after_the_answer(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.call("echo", json!({ "text": "done" }))?;
    client.text(&id)?;
    let start = client.place();
    for _ in 0..100 {
        client.cancel(&id)?;
    }
    let (end, _) = client.round_trip()?;
    ensure!(client.between(start, end).is_empty(), "a late cancellation was answered");
    // It does not hang over the id: the next call under it runs.
    client.call_as(&id, "echo", json!({ "text": "again" }))?;
    // Another call may be answered first, so the end of the conversation is what to wait for.
    client.finish()?;
    ensure!(client.answer_count(&id) == 2, "a late cancellation stopped the next call with that id");
    Ok(())
}

fn before_the_request(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.fresh_id();
    client.cancel(&id)?;
    client.call_as(&id, "echo", json!({ "text": "served" }))?;
    ensure!(client.text(&id)? == "served", "an early cancellation stopped a call");
    client.finish()?;
    Ok(())
}

fn twice(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let id = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    client.send(cancel_line(&id).repeat(2))?;
    client.cancel(&id)?;
    let (place, _) = client.round_trip()?;
    wait_for_cleanups(&log, 1)?;
    client.silent_since(&id, place)?;
    client.finish()?;
    ensure!(client.answer_count(&id) == 0, "{id} was answered");
    ensure!(cleanup_lines(&log) == 1, "{} cleanups for one call", cleanup_lines(&log));
    Ok(())
}

fn unknown_id(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 100 }))?;
    client.round_trip()?;
    for id in ["424242", "-5", "\"nobody\"", "\"\"", "18446744073709551616", "0"] {
        silently(&mut client, &cancel_line(&Id::raw(id)), &flying)?;
    }
    client.text(&flying)?;
    client.finish()?;
    Ok(())
}

/// A line that gets no answer and disturbs nothing.
fn silently(client: &mut Client, line: &str, flying: &Id) -> Verdict {
    let start = client.place();
    client.send(line)?;
    let (end, _) = client.round_trip()?;
    let came = client.between(start, end);
    let answered = came.iter().find(|message| message.answers() != Some(flying));
    ensure!(answered.is_none(), "{} gave {:?}", line.trim_end(), answered.map(|message| &message.opening));
    Ok(())
}

/// `initialize` is always answered once.
fn of_initialize(context: &mut CheckContext) -> Verdict {
    let launch = context.launch();
    let mut client = context.start(&launch)?;
    let id = Id::number(1);
    let lines = initialize_line(&id, context.era.revision()) + &cancel_line(&id) + &cancel_line(&id);
    client.send_request(&id, &lines)?;
    expect::result(&client.answer(&id)?)?;
    client.cancel(&id)?;
    client.send(initialized_line())?;
    client.cancel(&id)?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn malformed(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 250 }))?;
    client.round_trip()?;
    for params in [
        "{}",
        "[]",
        "{\"requestId\":null}",
        "{\"requestId\":1.5}",
        "{\"requestId\":true}",
        "{\"requestId\":{}}",
        "{\"requestId\":[1]}",
        "{\"id\":1}",
        "{\"requestId\":\"x\",\"reason\":7}",
    ] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}\n");
        silently(&mut client, &line, &flying)?;
    }
    silently(&mut client, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n", &flying)?;
    client.text(&flying)?;
    client.finish()?;
    Ok(())
}

/// With an id of its own it is a request, for a method that no request has: answered with an error, and nothing stops.
fn as_a_request(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 200 }))?;
    client.round_trip()?;
    let id = client.fresh_id();
    let line = client.request_line(&id, "notifications/cancelled", json!({ "requestId": 100_002 }));
    client.send_request(&id, &line)?;
    expect::error(&client.answer(&id)?, &[expect::METHOD_NOT_FOUND, expect::INVALID_REQUEST])?;
    client.text(&flying)?;
    client.finish()?;
    Ok(())
}
