//! Tools that block: threads of their own, or workers of the runtime. Other calls are not delayed.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::check_context::{CheckContext, seconds, wait_for_cleanups};
use crate::client::Client;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{BLOCK_MS, LONG_MS, PROMPT};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "blocked_threads",
    fault: "64 block_thread at once; one block_worker; progress then block; block_worker on every worker but one; a tool \
            that is quick a thousand times and then blocks",
    must: "echo is answered and a cancel taken without delay; after a close the process does not wait for them past the \
           deadline",
    checks: &[
        Check::new("64_block_thread", Era::BOTH, |context| blocked(context, "block_thread", |_| Ok(64))),
        Check::new("one_block_worker", Era::BOTH, |context| blocked(context, "block_worker", |_| Ok(1))),
        Check::new("every_worker_but_one", Era::BOTH, all_but_one),
        Check::new("every_worker_but_one_of_four", Era::BOTH, all_but_one_of_four),
        Check::new("quick_then_block_worker", Era::BOTH, |context| quick_then_blocked(context, "block_worker")),
        Check::new("quick_then_block_thread", Era::BOTH, |context| quick_then_blocked(context, "block_thread")),
        Check::new("progress_then_block_raced", Era::BOTH, progress_then_block),
        Check::new("one_block_worker_raced", Era::BOTH, one_worker_raced),
        Check::new("sigterm_with_blocked_threads", Era::BOTH, sigterm),
    ],
};

/// Blocks, then wants echoes and a cancellation without delay, then an end without waiting.
fn blocked(context: &mut CheckContext, tool: &str, count: fn(&Client) -> Verdict<usize>) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log);
    let mut client = context.open_with(&launch)?;
    let count = count(&client)?;
    blocked_client(context, &mut client, &log, tool, count)
}

fn blocked_client(
    context: &mut CheckContext,
    client: &mut Client,
    log: &std::path::Path,
    tool: &str,
    count: usize,
) -> Verdict {
    let cleaned = client.call("slow_cleanup", json!({ "ms": LONG_MS }))?;
    client.let_them_run()?;
    let mut blocking = Vec::new();
    for _ in 0..count {
        blocking.push(client.call(tool, json!({ "ms": BLOCK_MS }))?);
    }
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        slowest = slowest.max(prompt_fence(client)?);
        context.random.pause(5_000);
    }
    client.cancel(&cleaned)?;
    let took = wait_for_cleanups(log, 1)?;
    context.note(format!("{count} blocked, slowest echo {}, cleanup {}", seconds(slowest), seconds(took)));
    ensure!(client.answer_count(&cleaned) == 0, "a cancelled call was answered");
    // The handler goes on, the call does not.
    if let Some(id) = blocking.first() {
        client.cancel(id)?;
        let (place, _) = client.round_trip()?;
        client.silent_since(id, place)?;
    }
    let ending = client.finish()?;
    context.note_exit(ending);
    Ok(())
}

fn prompt_fence(client: &mut Client) -> Verdict<Duration> {
    let (_, took) = client.round_trip()?;
    ensure!(took < PROMPT, "an echo took {took:?} while others block");
    Ok(took)
}

fn all_but_one(context: &mut CheckContext) -> Verdict {
    blocked(context, "block_worker", |client| Ok(client.server.workers()?.saturating_sub(1).max(1)))
}

/// With more workers there are more queues in which the driver, or the next echo, can wait for a blocked worker.
fn all_but_one_of_four(context: &mut CheckContext) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log).variable("TOKIO_WORKER_THREADS", "4");
    let mut client = context.open_with(&launch)?;
    let count = client.server.workers()?.saturating_sub(1).max(1);
    blocked_client(context, &mut client, &log, "block_worker", count)
}

/// A tool that was quick for long is trusted to be quick, and the thread of the driver may poll it: then it blocks that thread.
fn quick_then_blocked(context: &mut CheckContext, tool: &str) -> Verdict {
    let log = context.new_file();
    let launch = context.launch().cleanup_log(&log).variable("TOKIO_WORKER_THREADS", "4");
    let mut client = context.open_with(&launch)?;
    for round in 0..1_000 {
        let id = client.call(tool, json!({ "ms": 0 }))?;
        client.text(&id)?;
        if round % 10 == 0 {
            client.round_trip()?;
        }
    }
    blocked_client(context, &mut client, &log, tool, 3)
}

/// A handler that wakes the driver with its progress and then blocks its worker, in one poll, with others around it.
fn progress_then_block(context: &mut CheckContext) -> Verdict {
    raced(context, |context, client| {
        let (_, _, progress) = client.progress_call_line("progress", json!({ "steps": 3, "ms": 0 }));
        let (_, _, block) = client.progress_call_line("block_worker", json!({ "ms": BLOCK_MS, "progress": true }));
        if context.random.coin() {
            client.send(progress + &block)
        } else {
            client.send(progress)?;
            context.random.pause(500);
            client.send(block)
        }
    })
}

fn one_worker_raced(context: &mut CheckContext) -> Verdict {
    raced(context, |context, client| {
        let mut lines = String::new();
        for number in 0..context.random.below(4) {
            let id = client.fresh_id();
            client.count(&id);
            lines.push_str(&client.call_line(&id, "echo", json!({ "text": number.to_string() })));
        }
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, "block_worker", json!({ "ms": BLOCK_MS })));
        client.send(lines)
    })
}

/// A new server for each round, since each is left with a blocked worker. It is killed: how it ends is another check.
fn raced(context: &mut CheckContext, mut harm: impl FnMut(&mut CheckContext, &mut Client) -> Verdict) -> Verdict {
    let mut slowest = Duration::ZERO;
    context.race(|context| {
        let mut client = context.open()?;
        let cancelled = client.call("sleep", json!({ "ms": LONG_MS }))?;
        harm(context, &mut client)?;
        context.random.pause(300);
        for _ in 0..3 {
            slowest = slowest.max(prompt_fence(&mut client)?);
        }
        client.cancel(&cancelled)?;
        let start = Instant::now();
        let (place, _) = client.round_trip()?;
        ensure!(start.elapsed() < PROMPT, "a cancellation took {:?}", start.elapsed());
        client.silent_since(&cancelled, place)?;
        client.judge_transcript()
    })?;
    context.note(format!("slowest echo {}", seconds(slowest)));
    Ok(())
}

fn sigterm(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for _ in 0..64 {
        client.call("block_thread", json!({ "ms": BLOCK_MS }))?;
    }
    client.call("block_worker", json!({ "ms": BLOCK_MS }))?;
    client.let_them_run()?;
    client.server.signal(Signal::TERM)?;
    let ending = client.ended_somehow(crate::limits::ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}
