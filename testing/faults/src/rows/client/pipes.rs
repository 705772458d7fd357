//! The three pipes of a server: one that it closes, one that it does not read, one that it floods.

use serde_json::json;

use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::habit;
use crate::limits::{CLIENT_DEAF_KIB, CLIENT_PEAK_KIB, CLIENT_SHORT_MS};
use crate::process::memory::Memory;
use crate::subject::{Play, Subject};
use crate::table::{Check, Row};

pub(crate) static CLOSED_OUTPUT: Row = Row {
    name: "client_server_closes_stdout",
    fault: "the server closes its standard output and lives on",
    must: "what was sent is Unknown at once, what comes later is NotSent, and the process is ended",
    checks: &[Check::new("and_lives", Era::BOTH, closes_output)],
};

pub(crate) static DEAF: Row = Row {
    name: "client_server_never_reads",
    fault: "the server does not read its standard input; 64 calls of 512 KiB pile up",
    must: "each ends by its own deadline: Unknown if its first byte was written, and NotSent if not; memory is what the calls \
           need, and is given back; closing works",
    checks: &[Check::new("large_calls_pile_up", Era::BOTH, pile_up)],
};

pub(crate) static STDERR: Row = Row {
    name: "client_server_floods_stderr",
    fault: "the server writes 128 MiB to standard error, in lines or without an end, to a client that logs them, counts them, \
            throws them away, or got stuck with the first",
    must: "calls are answered and the client does not grow; a blocked log handler affects only its own server",
    checks: &[
        Check::new("in_lines", Era::STATELESS, |bench| flood(bench, true)),
        Check::new("without_an_end", Era::STATELESS, |bench| flood(bench, false)),
        Check::new("to_a_reader_that_is_stuck", Era::STATELESS, stuck),
    ],
};

fn closes_output(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    for habit in [habit::HONEST, habit::STUBBORN] {
        for deaf_to_term in [false, true] {
            let line = subject.connect(&Play { deaf_to_term, ..Play::with(habit) })?;
            let beside = subject.call(&line.name, "hang", json!({}))?;
            let call = subject.call(&line.name, "close_output", json!({}))?;
            subject.ended(&call)?.is("Unknown", &["Closed"])?;
            subject.ended(&beside)?.is("Unknown", &["Closed"])?;
            subject.gone(&line.name)?;
            subject.is_over(&line.name)?;
            subject.close(&line.name)?;
        }
    }
    subject.finish(bench)
}

fn pile_up(bench: &mut Bench) -> Verdict {
    const CALLS: usize = 64;
    const PAD: usize = 512 * 1024;
    let mut subject = Subject::start(bench)?;
    let before = subject.baseline()?.resident;
    for _ in 0..2 {
        let line = subject.connect(&Play::with(habit::DEAF))?;
        line.journal.wait("open")?;
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let more = json!({ "pad": PAD, "deadline_ms": 2 * CLIENT_SHORT_MS });
            calls.push(subject.call_with(&line.name, "echo", json!({}), &more)?);
        }
        subject.ended(&calls[0])?.is("Unknown", &["TimedOut"])?;
        for call in &calls[1..] {
            subject.ended(call)?.is("NotSent", &["TimedOut"])?;
        }
        // The rest of the first call is still to be written, so no later one ever is.
        let more = json!({ "deadline_ms": CLIENT_SHORT_MS / 2 });
        let call = subject.call_with(&line.name, "echo", json!({ "text": "behind it" }), &more)?;
        subject.ended(&call)?.is("NotSent", &["TimedOut"])?;
        subject.close(&line.name)?;
    }
    let peak = Memory::of(subject.process())?.peak.saturating_sub(before);
    bench.note_memory("peak", peak);
    ensure!(peak <= CLIENT_DEAF_KIB, "a peak of {peak} KiB, the bound is {CLIENT_DEAF_KIB} KiB");
    subject.finish(bench)
}

fn flood(bench: &mut Bench, lines: bool) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let before = subject.baseline()?.resident;
    for errors in ["log", "lines", "null"] {
        let line = subject.connect(&Play { errors, ..Play::honest() })?;
        let call = subject.call(&line.name, "flood", json!({ "mib": 128, "lines": lines }))?;
        let other = subject.connect(&Play::honest())?;
        for _ in 0..20 {
            subject.works(&other.name)?;
        }
        subject.ended(&call)?.done("flooded")?;
        subject.works(&line.name)?;
        subject.close(&line.name)?;
        subject.close(&other.name)?;
    }
    let peak = Memory::of(subject.process())?.peak.saturating_sub(before);
    bench.note_memory("peak", peak);
    ensure!(peak <= CLIENT_PEAK_KIB / 4, "a peak of {peak} KiB for lines that nobody keeps");
    subject.finish(bench)
}

/// Its callback does not return, so the pipe fills and the server hangs. Its calls end by their deadlines, and
/// another server is not affected.
fn stuck(bench: &mut Bench) -> Verdict {
    let mut subject = Subject::start(bench)?;
    let line = subject.connect(&Play { errors: "stuck", ..Play::honest() })?;
    let more = json!({ "deadline_ms": CLIENT_SHORT_MS });
    let call = subject.call_with(&line.name, "flood", json!({ "mib": 1, "lines": true }), &more)?;
    let other = subject.connect(&Play::honest())?;
    subject.works(&other.name)?;
    subject.ended(&call)?.is("Unknown", &["TimedOut"])?;
    subject.close(&line.name)?;
    subject.works(&other.name)?;
    subject.finish(bench)
}
