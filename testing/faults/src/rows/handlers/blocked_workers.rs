//! Every worker of the runtime is blocked: nothing that needs one can run, and everything else still works.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::check_context::{CheckContext, seconds};
use crate::client::Client;
use crate::client::expect;
use crate::client::message::Id;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{BLOCK_MS, ENDING_ACCEPTED, PROMPT};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "blocked_workers",
    fault: "block_worker on all workers",
    must: "cancels, deadlines and the end of input still act",
    checks: &[
        Check::new("cancels", Era::BOTH, cancels),
        Check::new("deadlines", Era::BOTH, deadlines),
        Check::new("end_of_input", Era::BOTH, end_of_input),
        Check::new("end_of_input_with_unread_output", Era::BOTH, end_of_input_unread),
        Check::new("reader_goes_away", Era::BOTH, reader_goes_away),
        Check::new("sigterm", Era::BOTH, sigterm),
    ],
};

/// The option of `serve` that sets how long a call may run, in milliseconds.
const DEADLINE_OPTION: &str = "--deadline";

/// Blocks every worker, and two more calls besides in case one of them was not counted.
fn block_all(client: &mut Client, ms: u64) -> Verdict<Vec<Id>> {
    let mut ids = Vec::new();
    for _ in 0..client.server.workers()? + 2 {
        ids.push(client.call("block_worker", json!({ "ms": ms }))?);
    }
    Ok(ids)
}

/// A cancelled sleeper is never answered although its time is over before the workers are free again; one that was not
/// cancelled is.
fn cancels(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let cancelled = client.call("sleep", json!({ "ms": 800 }))?;
    let kept = client.call("sleep", json!({ "ms": 800 }))?;
    client.round_trip()?;
    let blocking = block_all(&mut client, 1_500)?;
    client.cancel(&cancelled)?;
    if let Some(id) = blocking.last() {
        client.cancel(id)?;
    }
    let (place, took) = client.fence_without_worker()?;
    ensure!(took < PROMPT, "tools/list took {took:?} with every worker blocked");
    context.note(format!("tools/list {}", seconds(took)));
    client.text(&kept)?;
    for id in blocking.iter().rev().skip(1) {
        client.text(id)?;
    }
    client.round_trip()?;
    client.silent_since(&cancelled, place)?;
    client.finish()?;
    ensure!(client.answer_count(&cancelled) == 0, "a cancelled call was answered");
    ensure!(blocking.last().is_none_or(|id| client.answer_count(id) == 0), "a cancelled block was answered");
    Ok(())
}

/// Calls that run past their deadline are answered with an error, although no worker can answer them.
fn deadlines(context: &mut CheckContext) -> Verdict {
    let help = std::process::Command::new(context.program()).args(["serve", "--help"]).output()?;
    if !String::from_utf8_lossy(&help.stdout).contains(DEADLINE_OPTION) {
        context.note(format!("serve has no {DEADLINE_OPTION}: only the deadline of the drain was checked"));
        return end_of_input(context);
    }
    let launch = context.launch().argument(DEADLINE_OPTION).argument("300");
    let mut client = context.open_with(&launch)?;
    let blocking = block_all(&mut client, BLOCK_MS)?;
    let sleeping = client.call("sleep", json!({ "ms": BLOCK_MS }))?;
    for id in blocking.iter().chain([&sleeping]) {
        expect::own_condition(&client.answer_within(id, Duration::from_millis(300) + PROMPT)?)?;
    }
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

fn end_of_input(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let blocking = block_all(&mut client, BLOCK_MS)?;
    client.fence_without_worker()?;
    let ending = client.finish()?;
    context.note_exit(ending);
    for id in &blocking {
        expect::own_condition(&client.answer_within(id, Duration::ZERO)?)?;
    }
    Ok(())
}

fn end_of_input_unread(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.server.output.hold_back();
    for _ in 0..20 {
        client.call("blob", json!({ "bytes": 65_536 }))?;
    }
    block_all(&mut client, BLOCK_MS)?;
    client.server.close_input();
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

fn reader_goes_away(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    block_all(&mut client, BLOCK_MS)?;
    client.fence_without_worker()?;
    client.server.output.close();
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

fn sigterm(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    block_all(&mut client, BLOCK_MS)?;
    client.fence_without_worker()?;
    client.server.signal(Signal::TERM)?;
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}
