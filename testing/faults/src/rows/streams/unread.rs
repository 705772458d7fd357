//! A client that does not read: for a while, or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check_context::{CheckContext, seconds};
use crate::client::Client;
use crate::client::message::Id;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::limits::{CHECK_TIMEOUT, ENDING_ACCEPTED, FLOOD_GROWTH_KIB, FLOOD_KIB, UNREAD_BLOBS_KIB};
use crate::process::input::Input;
use crate::table::{Check, Row};

pub(crate) static BLOBS: Row = Row {
    name: "unread_blobs",
    fault: "the client stops reading while 2,000 blob answers of 64 KiB are due, then reads on",
    must: "all arrive in order; memory stayed under a stated bound",
    checks: &[
        Check::new("all_arrive_within_the_bound", Era::BOTH, all_arrive),
        Check::new("in_the_order_of_commitment", Era::BOTH, in_order),
    ],
};

pub(crate) static FLOOD: Row = Row {
    name: "unread_flood",
    fault: "the client floods calls and never reads, for 6 s; then also closes stdin",
    must: "memory flat within a stated bound; after the close the process ends within the drain deadline although its \
           output is still blocked",
    checks: &[
        Check::new("echo", Era::BOTH, |context| {
            flood_and_close(context, "echo", &json!({ "text": "x".repeat(1_000) }))
        }),
        Check::new("blob", Era::BOTH, |context| flood_and_close(context, "blob", &json!({ "bytes": 65_536 }))),
        Check::new("blob_with_a_slow_writer", Era::BOTH, slow_flood),
        Check::new("read_on_afterwards", Era::BOTH, flood_and_read_on),
    ],
};

const BLOB_COUNT: usize = 2_000;
const BLOB_BYTES: usize = 65_536;
/// How long the output is not read once the calls are written, or the server reads no more.
const UNREAD_FOR: Duration = Duration::from_secs(1);
/// A server that waits for its client to read may keep the writer waiting: reading goes on then.
const WRITING_FOR: Duration = Duration::from_secs(4);
/// The flood of the table.
const FLOOD_FOR: Duration = Duration::from_secs(6);
const SAMPLE: Duration = Duration::from_millis(20);

/// Writes from a thread, so that a server that stops reading blocks only the writer.
struct Writer {
    thread: std::thread::JoinHandle<Verdict<Input>>,
    done: Arc<AtomicBool>,
}

impl Writer {
    fn start(input: Input, bytes: Vec<u8>) -> Verdict<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let finished = Arc::clone(&done);
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            let written = input.write_all(&bytes, CHECK_TIMEOUT);
            finished.store(true, Ordering::Release);
            written.map(|()| input)
        })?;
        Ok(Self { thread, done })
    }

    /// Until everything is written, or that long.
    fn wait(&self, time: Duration) {
        let start = Instant::now();
        while !self.done.load(Ordering::Acquire) && start.elapsed() < time {
            std::thread::sleep(SAMPLE);
        }
    }

    fn finish(self) -> Verdict<Input> {
        self.thread.join().map_err(|_| Failure("the writer panicked".to_owned()))?
    }
}

/// Sends the blob calls without reading, then reads. Returns the ids in order and the memory that it took above idle.
fn unread_blobs(client: &mut Client) -> Verdict<(Vec<Id>, u64)> {
    client.round_trip()?;
    let idle = client.server.memory()?.resident;
    client.server.output.hold_back();
    let mut lines = String::new();
    let mut ids = Vec::new();
    for _ in 0..BLOB_COUNT {
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, "blob", json!({ "bytes": BLOB_BYTES })));
        ids.push(id);
    }
    let writer = Writer::start(client.server.take_input()?, lines.into_bytes())?;
    writer.wait(WRITING_FOR);
    std::thread::sleep(UNREAD_FOR);
    client.server.output.read_on();
    let _still_open = writer.finish()?;
    for id in &ids {
        let text = client.text(id)?;
        ensure!(text.len() == BLOB_BYTES, "a blob of {} bytes", text.len());
    }
    let peak = client.server.memory()?.peak.saturating_sub(idle);
    Ok((ids, peak))
}

fn all_arrive(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let (ids, peak) = unread_blobs(&mut client)?;
    context.note_memory("peak over idle", peak);
    ensure!(peak <= UNREAD_BLOBS_KIB, "peak of {peak} KiB over idle, the bound is {UNREAD_BLOBS_KIB} KiB");
    let mut places = Vec::new();
    for id in &ids {
        places.push(client.answer_place(id)?);
    }
    let turned = places.windows(2).filter(|pair| pair[0] > pair[1]).count();
    context.note(format!("{turned} ended before the call before them"));
    client.ended(ENDING_ACCEPTED)?;
    Ok(())
}

/// Calls that run side by side end in any order, and a peer sees them in the order in which they were committed. What of
/// that order can be known from outside: lists are answered as they are read, so in the order of their requests; each
/// progress comes before the next, and before its answer.
fn in_order(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    client.server.output.hold_back();
    let mut lines = String::new();
    let (mut lists, mut others) = (Vec::new(), Vec::new());
    for number in 0..BLOB_COUNT {
        let id = client.fresh_id();
        client.count(&id);
        lines.push_str(&client.call_line(&id, "blob", json!({ "bytes": BLOB_BYTES })));
        others.push(id);
        if number % 20 == 0 {
            let (id, _, line) = client.progress_call_line("progress", json!({ "steps": 5, "ms": 1 }));
            lines.push_str(&line);
            others.push(id);
            let id = client.fresh_id();
            client.count(&id);
            lines.push_str(&client.request_line(&id, "tools/list", json!({})));
            lists.push(id);
        }
    }
    let writer = Writer::start(client.server.take_input()?, lines.into_bytes())?;
    writer.wait(WRITING_FOR);
    std::thread::sleep(UNREAD_FOR);
    client.server.output.read_on();
    let input = writer.finish()?;
    for id in &others {
        client.text(id)?;
    }
    let mut places = Vec::new();
    for id in &lists {
        places.push(client.answer_place(id)?);
    }
    ensure!(places.is_sorted(), "the answers to {} lists came in another order", lists.len());
    drop(input);
    client.ended(ENDING_ACCEPTED)?;
    Ok(())
}

/// What a flood did to the memory of the server.
struct UnreadBytes {
    idle: u64,
    early: u64,
    late: u64,
}

/// Floods for that long from a thread and watches the memory. Gives back the open input, and how many calls were
/// written whole.
fn flood(
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    time: Duration,
    gap: Duration,
) -> Verdict<(Input, u64, UnreadBytes)> {
    client.round_trip()?;
    let idle = client.server.memory()?.resident;
    client.server.output.hold_back();
    let input = client.server.take_input()?;
    let line = client.call_line(&Id::raw("@"), tool, arguments.clone());
    let Some((front, back)) = line.split_once('@') else {
        return Err(Failure("no place for the id".to_owned()));
    };
    let (front, back) = (front.to_owned(), back.to_owned());
    let deadline = Instant::now() + time;
    let calls = Arc::new(AtomicU64::new(0));
    let written = Arc::clone(&calls);
    let writer = std::thread::Builder::new().name("flood".to_owned()).spawn(move || -> Verdict<Input> {
        for number in 0.. {
            let line = format!("{front}{number}{back}");
            if input.write_until(line.as_bytes(), deadline)? < line.len() || Instant::now() >= deadline {
                break;
            }
            written.fetch_add(1, Ordering::Relaxed);
            if !gap.is_zero() {
                std::thread::sleep(gap);
            }
        }
        Ok(input)
    })?;
    let mut tide = UnreadBytes { idle, early: 0, late: 0 };
    while Instant::now() < deadline {
        let resident = client.server.memory()?.resident;
        let left = deadline.saturating_duration_since(Instant::now());
        let stretch = if left > time / 3 { &mut tide.early } else { &mut tide.late };
        *stretch = resident.max(*stretch);
        std::thread::sleep(SAMPLE);
    }
    let input = writer.join().map_err(|_| Failure("the flood panicked".to_owned()))??;
    Ok((input, calls.load(Ordering::Relaxed), tide))
}

/// Under the bound.
fn judge_height(context: &mut CheckContext, tide: &UnreadBytes, calls: u64) -> Verdict {
    let over = tide.early.max(tide.late).saturating_sub(tide.idle);
    context.note(format!("{calls} calls taken"));
    context.note_memory("over idle", over);
    ensure!(over <= FLOOD_KIB, "{over} KiB over idle, the bound is {FLOOD_KIB} KiB");
    Ok(())
}

/// Flat: the last third of the flood no higher than what came before.
fn judge_flatness(context: &mut CheckContext, tide: &UnreadBytes) -> Verdict {
    let growth = tide.late.saturating_sub(tide.early);
    context.note_memory("growth in the last third", growth);
    ensure!(growth <= FLOOD_GROWTH_KIB, "grew by {growth} KiB in the last third, the bound is {FLOOD_GROWTH_KIB} KiB");
    Ok(())
}

fn flood_and_close(context: &mut CheckContext, tool: &str, arguments: &Value) -> Verdict {
    flood_slowly_and_close(context, tool, arguments, Duration::ZERO)
}

/// Slow enough that each call is taken alone, so that no single read is refused as a whole.
fn slow_flood(context: &mut CheckContext) -> Verdict {
    flood_slowly_and_close(context, "blob", &json!({ "bytes": 65_536 }), Duration::from_millis(1))
}

fn flood_slowly_and_close(context: &mut CheckContext, tool: &str, arguments: &Value, gap: Duration) -> Verdict {
    let mut client = context.open()?;
    let (input, calls, tide) = flood(&mut client, tool, arguments, FLOOD_FOR, gap)?;
    judge_height(context, &tide, calls)?;
    judge_flatness(context, &tide)?;
    drop(input);
    let ending = client.ended_somehow(ENDING_ACCEPTED)?;
    context.note_exit(ending);
    Ok(())
}

/// No call is lost: each call that was written whole is answered, with its result or with a refusal.
fn flood_and_read_on(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let arguments = json!({ "text": "x".repeat(1_000) });
    let (input, calls, tide) = flood(&mut client, "echo", &arguments, Duration::from_secs(2), Duration::ZERO)?;
    judge_height(context, &tide, calls)?;
    let start = Instant::now();
    client.server.output.read_on();
    for number in 0..calls {
        client.answer(&Id::number(number))?;
    }
    context.note(format!("all answered {} later", seconds(start.elapsed())));
    drop(input);
    // The last call may have been cut by the deadline, so a bad last line is possible; the end is not judged by it.
    client.ended(ENDING_ACCEPTED)?;
    Ok(())
}
