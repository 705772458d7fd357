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
    fault: "10,000 sleep calls in flight on 100 connections of HTTP/2, and more than there is room for; then all are reset, or their session is \
            deleted; again and again",
    must: "none of them is answered, those too many are told to come again; all of them are gone at once, and the memory is used \
           again",
    checks: &[Check::new("all_taken_back", Era::BOTH, all_taken_back).alone()],
};

const SLEEPERS: usize = 10_000;
const CONNECTIONS: usize = 100;
/// So many more are made than there is room for.
const TOO_MANY: usize = 100;
const ROUNDS: usize = 3;

/// There is room for exactly as many: one that was left behind would take the place of one of the next round.
fn all_taken_back(bench: &mut Bench) -> Verdict {
    let launch = launch(bench).argument("--max-in-flight").argument(SLEEPERS.to_string());
    let mut site = Site::watched(bench, launch)?;
    site.alive()?;
    let idle = site.server.memory()?.resident;
    let mut after = Vec::new();
    let mut longest = Duration::ZERO;
    for round in 0..ROUNDS {
        let talk = site.talk()?;
        let mut wires = start(&talk)?;
        let asked = wait_for_status(&talk, 503)?;
        let sleeping = Instant::now();
        let mut responses = 0;
        for (wire, _) in &mut wires {
            wire.ping()?;
            responses += wire.responses;
        }
        // In a session the response of a call that lasts is begun. Else those too many have one, and whoever's place was taken by
        // our own question.
        let most = TOO_MANY + asked;
        ensure!(talk.session.is_some() || responses <= most, "{responses} responses, and {most} at most were too many");
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
        for _ in 0..(SLEEPERS + TOO_MANY) / CONNECTIONS {
            streams.push(wire.send(&talk.call(&talk.site.fresh_id(), "sleep", json!({ "ms": LONG_MS })))?);
        }
        wires.push((wire, streams));
    }
    Ok(wires)
}

/// Asks until that is what comes: there is no room left, or there is some again. The answer in between says the other.
/// Gives how often it asked.
fn wait_for_status(talk: &Talk<'_>, wanted: u16) -> Verdict<usize> {
    let start = Instant::now();
    for asked in 1.. {
        let status = talk.site.status(&talk.call(&talk.site.fresh_id(), "echo", json!({ "text": "room?" })))?;
        if status == wanted {
            return Ok(asked);
        }
        ensure!([200, 503].contains(&status), "a call was answered with {status}");
        ensure!(start.elapsed() < PATIENCE, "no {wanted} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(0)
}
