//! Ten thousand calls in flight over HTTP/2, all cancelled.

use std::time::Instant;

use serde_json::json;

use super::frames::Frames;
use super::reference_server::{HttpSession, ReferenceServer};
use crate::check_context::{CheckContext, seconds};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{HTTP_SLEEPERS_GROWTH_KIB, HTTP_SLEEPERS_KIB, LONG_MS};
use crate::process::memory::{Settled, Windows};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_ten_thousand_sleepers",
    fault: "10,000 sleep calls in flight on 100 connections of HTTP/2, 1,000 in a session; then all are reset, or their session is deleted; again and \
            again",
    must: "others are served all the while; all of them are gone: nothing is waited for at the end, and the memory is used again",
    checks: &[Check::new("all_taken_back", Era::BOTH, all_taken_back).alone()],
};

const CONNECTIONS: usize = 100;
const EACH: usize = 100;
/// In a session each call has a stream of its own to be opened and stored: a tenth of them.
const EACH_IN_A_SESSION: usize = 10;
const ROUNDS: Windows = Windows { rounds: 2, most: 4, bound: HTTP_SLEEPERS_GROWTH_KIB };

fn all_taken_back(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    server.alive()?;
    let idle = server.server.memory()?.resident;
    let (start, mut rounds) = (Instant::now(), 0);
    let settled = ROUNDS.run(|| {
        rounds += 1;
        let session = server.session()?;
        let mut wires = begin(&session)?;
        for (wire, _) in &mut wires {
            wire.ping()?;
        }
        server.alive()?;
        if session.id.is_some() {
            let status = session.delete()?;
            ensure!(status == 204, "DELETE was answered with {status}");
        } else {
            for (wire, streams) in &mut wires {
                for stream in std::mem::take(streams) {
                    wire.cancel(stream)?;
                }
                wire.ping()?;
            }
        }
        server.alive()?;
        drop(wires);
        Ok(server.server.memory()?.resident)
    });
    let peak = server.server.memory()?.peak.saturating_sub(idle);
    context.note_memory("peak over idle", peak);
    context.note(format!("{rounds} rounds in {}", seconds(start.elapsed())));
    ensure!(peak <= HTTP_SLEEPERS_KIB, "peak of {peak} KiB over idle, the bound is {HTTP_SLEEPERS_KIB} KiB");
    let Settled { first, last } = settled?;
    context.note_memory("growth over rounds", last.saturating_sub(first));
    // With a handler that was left it would wait for it, twenty seconds.
    server.finish().map(drop)
}

/// A connection, and the streams of its sleepers.
type Sleepers = (Frames, Vec<u32>);

fn begin(session: &HttpSession<'_>) -> Verdict<Vec<Sleepers>> {
    let mut wires = Vec::new();
    let each = if session.id.is_some() { EACH_IN_A_SESSION } else { EACH };
    for _ in 0..CONNECTIONS {
        let mut wire = Frames::connect(session.server.address)?;
        let mut streams = Vec::new();
        for _ in 0..each {
            streams.push(wire.send(&session.call(&session.server.fresh_id(), "sleep", json!({ "ms": LONG_MS })))?);
        }
        wires.push((wire, streams));
    }
    Ok(wires)
}
