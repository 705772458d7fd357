//! The server on HTTP hangs: before its response, in its head, in its body, or while it says nothing for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::http_server_dies::start;
use super::raw_server::{CHUNKED_EVENTS, Came, Door, EVENTS, Guest};
use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{CLIENT_SHORT_MS, PATIENCE};
use crate::subject::Subject;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_server_hangs",
    fault: "the server takes a call and says nothing, half a head, half a body, comments for ever, a byte now and then",
    must: "the call ends by its own deadline as Unknown; the server is told: by the end of the connection, and before \
           2026-07-28 in words; other calls work all the while",
    checks: &[
        Check::new("the_deadline_passes", Era::BOTH, |bench| hangs(bench, false)),
        Check::new("the_call_is_taken_back", Era::BOTH, |bench| hangs(bench, true)),
        Check::new("many_at_once", Era::BOTH, many_at_once),
        Check::new("it_does_not_let_go_of_the_session", Era::HANDSHAKE, keeps_session),
    ],
};

const WAYS: [&str; 6] = ["nothing", "half_a_head", "half_a_body", "half_an_event", "comments", "a_byte_now_and_then"];

/// Hangs as the call says, and counts those whose clients have let go.
fn hang(came: &Came, guest: &mut Guest, let_go: &AtomicUsize) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    match came.argument("way").as_str() {
        Some("half_a_head") => drop(guest.write(head.as_bytes())),
        Some("half_a_body") => drop(guest.write(format!("{head}content-length: 99\r\n\r\n{{\"jsonrpc\"").as_bytes())),
        Some("half_an_event") => drop(guest.write(format!("{EVENTS}data: {{\"jsonrpc\"").as_bytes())),
        Some("comments") => {
            guest.write(CHUNKED_EVENTS.as_bytes());
            drip(guest, b"3\r\n:\n\n\r\n");
        }
        Some("a_byte_now_and_then") => {
            guest.write(format!("{head}content-length: 1000000\r\n\r\n").as_bytes());
            drip(guest, b" ");
        }
        _ => {}
    }
    if guest.wait_for_end() {
        let_go.fetch_add(1, Ordering::SeqCst);
    }
}

/// The same again and again, until the client lets go.
fn drip(guest: &mut Guest, bytes: &[u8]) {
    let start = Instant::now();
    while guest.write(bytes) && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn hangs(bench: &mut Bench, take_back: bool) -> Verdict {
    let let_go = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&let_go);
    let door = Door::open(bench.era, move |came, guest| hang(came, guest, &inside))?;
    let mut subject = start(bench, &door)?;
    let name = subject.connect_to(&door.url(), &json!({}))?;
    for (number, way) in WAYS.into_iter().enumerate() {
        let came = give_up_hanging(&mut subject, &door, &name, way, take_back)?;
        let start = Instant::now();
        while let_go.load(Ordering::SeqCst) <= number {
            ensure!(start.elapsed() < PATIENCE, "{way}: the client does not let go of the connection");
            std::thread::sleep(Duration::from_millis(1));
        }
        if !bench.era.is_stateless() {
            wait_for_cancellation(&door, &came)?;
        }
        subject.works(&name)?;
    }
    subject.finish(bench)
}

/// Makes a call that hangs, while others work, and has it end: by its deadline, or taken back. Returns how it came.
pub(super) fn give_up_hanging(
    subject: &mut Subject,
    door: &Door,
    name: &str,
    way: &str,
    take_back: bool,
) -> Verdict<Came> {
    let more = if take_back { json!({}) } else { json!({ "deadline_ms": CLIENT_SHORT_MS }) };
    let call = subject.call_with(name, "hang", json!({ "way": way }), &more)?;
    let came = door.wait("the call", |came| came.mark() == call)?;
    subject.works(name)?;
    if take_back {
        subject.take_back(&call)?;
    } else {
        subject.ended(&call)?.is("Unknown", &["TimedOut"]).map_err(|failure| failure.at(way))?;
    }
    Ok(came)
}

/// Waits until the server is told in words that nobody waits for a call any more.
pub(super) fn wait_for_cancellation(door: &Door, call: &Came) -> Verdict<Came> {
    let of = |said: &Came| said.is("notifications/cancelled") && said.body["params"]["requestId"] == call.body["id"];
    door.wait("the cancellation", of)
}

fn many_at_once(bench: &mut Bench) -> Verdict {
    const CALLS: usize = 200;
    let let_go = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&let_go);
    let door = Door::open(bench.era, move |came, guest| hang(came, guest, &inside))?;
    let mut subject = start(bench, &door)?;
    let name = subject.connect_to(&door.url(), &json!({}))?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(subject.call_with(&name, "hang", json!({}), &json!({ "deadline_ms": 4 * CLIENT_SHORT_MS }))?);
    }
    subject.works(&name)?;
    for call in &calls {
        let ended = subject.ended(call)?;
        ensure!(ended.kind == "TimedOut", "{ended}");
    }
    let came = calls.iter().filter(|call| door.count(call) > 0).count();
    let start = Instant::now();
    while let_go.load(Ordering::SeqCst) < came {
        ensure!(start.elapsed() < PATIENCE, "{} of {came} connections were let go", let_go.load(Ordering::SeqCst));
        std::thread::sleep(Duration::from_millis(2));
    }
    bench.note(format!("{came} hung"));
    subject.works(&name)?;
    subject.finish(bench)
}

/// The goodbye is not answered: the client leaves all the same.
fn keeps_session(bench: &mut Bench) -> Verdict {
    let good = Door::open(bench.era, |_, _| {})?;
    let mut subject = start(bench, &good)?;
    let door = Door::guarded(bench.era, "DELETE", |_, guest| {
        guest.wait_for_end();
    })?;
    let name = subject.connect_to(&door.url(), &json!({}))?;
    subject.works(&name)?;
    subject.close(&name)?;
    door.wait("the goodbye", |came| came.method == "DELETE")?;
    subject.finish(bench)
}
