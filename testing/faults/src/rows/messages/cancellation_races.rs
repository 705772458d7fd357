//! Cancellations that race their call: in one write with it, and about when it ends.

use std::time::Duration;

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::expect;
use crate::client::message::Id;
use crate::client::{Client, cancel_line, initialize_line, initialized_line};
use crate::failure::{Verdict, ensure};
use crate::limits::LONG_MS;
use crate::random::wait_exactly;

const PAIRS: usize = 200;
/// Writes of 200 pairs each, to one server.
const ROUNDS: usize = 10;

/// A call and its cancellation together, 200 times in one write. Gives the ids.
fn send_pairs(client: &mut Client, tool: &str, arguments: &serde_json::Value) -> Verdict<Vec<Id>> {
    let mut lines = String::new();
    let mut ids = Vec::new();
    for _ in 0..PAIRS {
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, tool, arguments.clone()));
        lines.push_str(&cancel_line(&id));
        ids.push(id);
    }
    client.send(lines)?;
    Ok(ids)
}

/// None of these calls can end before its cancellation is read: no answers at all.
pub(super) fn long_pairs(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut ids = Vec::new();
    for _ in 0..ROUNDS {
        ids.extend(send_pairs(&mut client, "sleep", &json!({ "ms": LONG_MS }))?);
        client.round_trip()?;
    }
    client.finish()?;
    let answered = ids.iter().filter(|id| client.answer_count(id) > 0).count();
    ensure!(answered == 0, "{answered} of {} cancelled calls were answered", ids.len());
    Ok(())
}

/// These may end first: one answer at most, and none after the round trip.
pub(super) fn quick_pairs(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut fenced = Vec::new();
    for _ in 0..ROUNDS {
        for (tool, arguments) in [("echo", json!({ "text": "quick" })), ("sleep", json!({ "ms": 0 }))] {
            let ids = send_pairs(&mut client, tool, &arguments)?;
            let (place, _) = client.round_trip()?;
            fenced.push((ids, place));
        }
    }
    client.finish()?;
    let mut answered = 0;
    for (ids, place) in &fenced {
        for id in ids {
            client.silent_since(id, *place)?;
            answered += client.answer_count(id);
        }
    }
    context.note(format!("{answered} of {} ended before their cancellation", fenced.len() * PAIRS));
    Ok(())
}

/// Sends the cancellation about when the call ends. Each tool has its own moment, which the rounds close in on: after an
/// answer the next cancellation comes a little earlier, after none a little later, so half of them win.
pub(super) fn racing_its_answer(context: &mut CheckContext) -> Verdict {
    const TOOLS: [(&str, u64); 5] =
        [("echo", 40), ("sleep", 2_000), ("stubborn", 2_000), ("block_thread", 1_100), ("blob", 60)];
    const STEP: u64 = 40;
    let mut client = context.open()?;
    let mut moments = TOOLS.map(|(_, microseconds)| microseconds);
    let mut ids = Vec::new();
    let mut answered = 0;
    for _ in 0..2 {
        context.race(|context| {
            let which = context.random.place(TOOLS.len());
            let moment = moments[which];
            let id = client.call(TOOLS[which].0, json!({ "text": "x", "ms": 1, "bytes": 4_000 }))?;
            wait_exactly(Duration::from_micros(moment + context.random.below(2 * STEP)));
            client.cancel(&id)?;
            let (place, _) = client.round_trip()?;
            let came_first = client.answer_count(&id) > 0;
            moments[which] = if came_first { moment.saturating_sub(STEP) } else { moment + STEP };
            answered += usize::from(came_first);
            ids.push((id, place));
            Ok(())
        })?;
    }
    client.finish()?;
    for (id, place) in &ids {
        client.silent_since(id, *place)?;
    }
    context.note(format!("{answered} of {} were answered first", ids.len()));
    Ok(())
}

/// The same with every kind of handler, several calls at once, and cancellations in any order.
pub(super) fn all_tools(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let mut fenced = Vec::new();
    context.race(|context| {
        let mut ids = Vec::new();
        let mut lines = String::new();
        for _ in 0..=context.random.below(6) {
            let ms = context.random.below(3);
            let (tool, arguments) = match context.random.below(8) {
                0 => ("echo", json!({ "text": "x" })),
                1 => ("blob", json!({ "bytes": 2_000 })),
                2 => ("slow_cleanup", json!({ "ms": ms })),
                3 => ("block_thread", json!({ "ms": ms })),
                4 => ("stubborn", json!({ "ms": ms })),
                5 => ("block_worker", json!({ "ms": ms })),
                6 => ("progress", json!({ "steps": 3, "ms": ms })),
                _ => ("sleep", json!({ "ms": ms })),
            };
            let (id, _, line) = client.progress_call_line(tool, arguments);
            lines.push_str(&line);
            ids.push(id);
        }
        client.send(lines)?;
        context.random.pause(2_500);
        let first = context.random.place(ids.len());
        ids.rotate_left(first);
        let cancels: String = ids.iter().map(cancel_line).collect();
        client.send(cancels)?;
        let (place, _) = client.round_trip()?;
        fenced.push((ids, place));
        Ok(())
    })?;
    client.finish()?;
    for (ids, place) in &fenced {
        for id in ids {
            client.silent_since(id, *place)?;
        }
    }
    Ok(())
}

pub(super) fn of_initialize(context: &mut CheckContext) -> Verdict {
    context.race(|context| {
        let launch = context.launch();
        let mut client = context.start(&launch)?;
        let id = Id::number(1);
        client.send_request(&id, &initialize_line(&id, context.era.revision()))?;
        context.random.pause(1_500);
        client.cancel(&id)?;
        client.send(initialized_line())?;
        client.round_trip()?;
        client.finish()?;
        expect::result(&client.answer(&id)?)?;
        Ok(())
    })
}
