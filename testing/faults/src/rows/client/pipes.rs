//! The three pipes of a server: one that it closes, one that it does not read, one that it floods.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client_under_test::{ClientUnderTest, FaultyServerOptions};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::faulty_server::behavior;
use crate::limits::{CLIENT_DEAF_KIB, CLIENT_PEAK_KIB, CLIENT_SHORT_MS};
use crate::process::memory::Memory;
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
        Check::new("in_lines", Era::STATELESS, |context| flood(context, true)),
        Check::new("without_an_end", Era::STATELESS, |context| flood(context, false)),
        Check::new("to_a_reader_that_is_stuck", Era::STATELESS, stuck),
    ],
};

fn closes_output(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    for behavior in [behavior::HONEST, behavior::STUBBORN] {
        for deaf_to_term in [false, true] {
            let connection =
                client.connect(&FaultyServerOptions { deaf_to_term, ..FaultyServerOptions::with(behavior) })?;
            let beside = client.call(&connection.name, "hang", json!({}))?;
            let call = client.call(&connection.name, "close_output", json!({}))?;
            client.ended(&call)?.is("Unknown", &["Closed"])?;
            client.ended(&beside)?.is("Unknown", &["Closed"])?;
            client.gone(&connection.name)?;
            client.is_over(&connection.name)?;
            client.close(&connection.name)?;
        }
    }
    client.finish(context)
}

fn pile_up(context: &mut CheckContext) -> Verdict {
    const CALLS: usize = 64;
    const PAD: usize = 512 * 1024;
    let mut client = ClientUnderTest::start(context)?;
    let before = client.baseline()?.resident;
    for _ in 0..2 {
        let connection = client.connect(&FaultyServerOptions::with(behavior::DEAF))?;
        connection.journal.wait("open")?;
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let more = json!({ "pad": PAD, "deadline_ms": 2 * CLIENT_SHORT_MS });
            calls.push(client.call_with(&connection.name, "echo", json!({}), &more)?);
        }
        client.ended(&calls[0])?.is("Unknown", &["TimedOut"])?;
        for call in &calls[1..] {
            client.ended(call)?.is("NotSent", &["TimedOut"])?;
        }
        // The rest of the first call is still to be written, so no later one ever is.
        let more = json!({ "deadline_ms": CLIENT_SHORT_MS / 2 });
        let call = client.call_with(&connection.name, "echo", json!({ "text": "behind it" }), &more)?;
        client.ended(&call)?.is("NotSent", &["TimedOut"])?;
        client.close(&connection.name)?;
    }
    let peak = Memory::of(client.process())?.peak.saturating_sub(before);
    context.note_memory("peak", peak);
    ensure!(peak <= CLIENT_DEAF_KIB, "a peak of {peak} KiB, the bound is {CLIENT_DEAF_KIB} KiB");
    client.finish(context)
}

fn flood(context: &mut CheckContext, lines: bool) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let before = client.baseline()?.resident;
    for errors in ["log", "lines", "null"] {
        let connection = client.connect(&FaultyServerOptions { errors, ..FaultyServerOptions::honest() })?;
        let call = client.call(&connection.name, "flood", json!({ "mib": 128, "lines": lines }))?;
        let other = client.connect(&FaultyServerOptions::honest())?;
        for _ in 0..20 {
            client.works(&other.name)?;
        }
        client.ended(&call)?.done("flooded")?;
        client.works(&connection.name)?;
        client.close(&connection.name)?;
        client.close(&other.name)?;
    }
    let peak = Memory::of(client.process())?.peak.saturating_sub(before);
    context.note_memory("peak", peak);
    ensure!(peak <= CLIENT_PEAK_KIB / 4, "a peak of {peak} KiB for lines that are not kept");
    client.finish(context)
}

/// Its callback does not return, so the pipe fills and the server hangs. Its calls end by their deadlines, and
/// another server is not affected.
fn stuck(context: &mut CheckContext) -> Verdict {
    let mut client = ClientUnderTest::start(context)?;
    let connection = client.connect(&FaultyServerOptions { errors: "stuck", ..FaultyServerOptions::honest() })?;
    let more = json!({ "deadline_ms": CLIENT_SHORT_MS });
    let call = client.call_with(&connection.name, "flood", json!({ "mib": 1, "lines": true }), &more)?;
    let other = client.connect(&FaultyServerOptions::honest())?;
    client.works(&other.name)?;
    client.ended(&call)?.is("Unknown", &["TimedOut"])?;
    client.close(&connection.name)?;
    client.works(&other.name)?;
    client.finish(context)
}
