//! Ten thousand calls in flight over HTTP/2, all taken back; and one call too many.

use std::time::{Duration, Instant};

use serde_json::json;

use super::frames::Frames;
use super::site::{Site, Talk, launch};
use crate::bench::{Bench, seconds};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{HTTP_SLEEPERS_GROWTH_KIB, HTTP_SLEEPERS_KIB, LONG_MS, PATIENCE};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_ten_thousand_sleepers",
    fault: "10,000 sleep calls in flight on 100 connections of HTTP/2, and one more; then all are reset, or their session is \
            deleted; again and again",
    must: "none is answered, the one too many is told to come again; all of them are gone at once, and the memory is used \
           again",
    checks: &[Check::new("all_taken_back", Era::BOTH, all_taken_back).alone()],
};

const CONNECTIONS: usize = 100;
const EACH: usize = 100;
const ROUNDS: usize = 3;

/// The server takes exactly as many as there are: one that was left behind would leave no room for one of the next round.
fn all_taken_back(bench: &mut Bench) -> Verdict {
    let launch = launch(bench).argument("--max-in-flight").argument((CONNECTIONS * EACH).to_string());
    let mut site = Site::watched(bench, launch)?;
    site.alive()?;
    let idle = site.server.memory()?.resident;
    let mut after = Vec::new();
    let mut longest = Duration::ZERO;
    for round in 0..ROUNDS {
        let talk = site.talk()?;
        let mut wires = start(&talk)?;
        wait_for_status(&talk, 503)?;
        let sleeping = Instant::now();
        for (wire, streams) in &mut wires {
            wire.ping()?;
            // In a session a call that lasts has its response begun; else none is answered, not even with a refusal.
            let most = if talk.session.is_some() { streams.len() } else { 0 };
            ensure!(wire.responses <= most, "{} responses to {} sleepers", wire.responses, streams.len());
        }
        if talk.session.is_some() {
            let status = talk.delete()?;
            ensure!(status == 204, "DELETE was answered with {status}");
        } else {
            for (wire, streams) in &mut wires {
                for stream in std::mem::take(streams) {
                    wire.cancel(stream)?;
                }
            }
        }
        let asking = if talk.session.is_some() { site.talk()? } else { talk };
        wait_for_status(&asking, 200).map_err(|failure| failure.at(format!("round {round}")))?;
        longest = longest.max(sleeping.elapsed());
        drop(wires);
        after.push(site.server.memory()?.resident);
    }
    let peak = site.server.memory()?.peak.saturating_sub(idle);
    let growth = after.last().copied().unwrap_or(0).saturating_sub(after.first().copied().unwrap_or(0));
    bench.note_memory("peak over idle", peak);
    bench.note_memory("growth over rounds", growth);
    bench.note(format!("gone after {}", seconds(longest)));
    ensure!(peak <= HTTP_SLEEPERS_KIB, "peak of {peak} KiB over idle, the bound is {HTTP_SLEEPERS_KIB} KiB");
    ensure!(growth <= HTTP_SLEEPERS_GROWTH_KIB, "each round leaves something: {growth} KiB more after {ROUNDS} rounds");
    site.finish().map(drop)
}

/// A connection, and the streams of its sleepers.
type Sleepers = (Frames, Vec<u32>);

fn start(talk: &Talk<'_>) -> Verdict<Vec<Sleepers>> {
    let mut wires = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut wire = Frames::connect(talk.site.address)?;
        let mut streams = Vec::new();
        for _ in 0..EACH {
            streams.push(wire.send(&talk.call(&talk.site.fresh_id(), "sleep", json!({ "ms": LONG_MS })))?);
        }
        wires.push((wire, streams));
    }
    Ok(wires)
}

/// Asks until that is what comes: there is no room left, or there is some again. The answer in between says the other.
fn wait_for_status(talk: &Talk<'_>, wanted: u16) -> Verdict {
    let start = Instant::now();
    loop {
        let status = talk.site.status(&talk.call(&talk.site.fresh_id(), "echo", json!({ "text": "room?" })))?;
        if status == wanted {
            return Ok(());
        }
        ensure!([200, 503].contains(&status), "a call was answered with {status}");
        ensure!(start.elapsed() < PATIENCE, "no {wanted} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
