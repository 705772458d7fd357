//! Event streams that are not read, or that are resumed with a wrong event id. Up to 2025-11-25, unless noted.

use serde_json::json;

use super::reference_server::{ReferenceServer, message, rest};
use crate::check_context::{CheckContext, seconds};
use crate::client::expect;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure, fail};
use crate::limits::{LONG_MS, PROMPT};
use crate::table::{Check, Row};

pub(crate) static UNREAD: Row = Row {
    name: "http_unread_streams",
    fault: "a stream of events, or an answer of many megabytes, that the client does not read",
    must: "a ping of the same session, and everybody else, is answered without delay; what was not read is there when it \
           is read at last",
    checks: &[
        Check::new("stream_of_a_call", Era::BOTH, stream_of_a_call),
        Check::new("stream_of_get", Era::HANDSHAKE, stream_of_get),
        Check::new("large_answers", Era::BOTH, large_answers),
    ],
};

pub(crate) static LAST_EVENT_ID: Row = Row {
    name: "http_last_event_id",
    fault: "Last-Event-ID that is unknown, stale, of another session, of an event that was never sent, twice, or garbage",
    must: "400, the session and its streams untouched; a good one is served again and again",
    checks: &[
        Check::new("unknown", Era::HANDSHAKE, unknown),
        Check::new("of_another_session", Era::HANDSHAKE, of_another_session),
        Check::new("stale", Era::HANDSHAKE, stale),
        Check::new("of_a_deleted_session", Era::HANDSHAKE, of_a_deleted_session),
        Check::new("good_again_and_again", Era::HANDSHAKE, again_and_again),
    ],
};

/// More than the buffers of both sides of a connection hold.
const LARGE: usize = 8 << 20;

fn stream_of_a_call(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    // The handler sends all the time, and the stream is not read.
    let mut unread = session.begin(&id, "progress", json!({ "steps": 1_000, "ms": 0 }))?;
    let mut slowest = std::time::Duration::ZERO;
    for _ in 0..20 {
        slowest = slowest.max(session.quick()?);
        session.round_trip()?;
    }
    context.note(format!("slowest list {}", seconds(slowest)));
    ensure!(slowest < PROMPT, "an unread stream delayed others by {slowest:?}");
    let Some(answer) = rest(&mut unread, &id)? else { fail!("no answer at the end of the stream") };
    expect::text(&answer, server.era)?;
    server.finish().map(drop)
}

fn stream_of_get(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let (head, mut unread) = session.listen(None)?;
    ensure!(head.status == 200, "GET was answered with {}", head.status);
    for _ in 0..20 {
        let took = session.quick()?;
        ensure!(took < PROMPT, "an unread GET delayed a list by {took:?}");
    }
    // Another GET takes its place, and the first learns that it has.
    let (head, second) = session.listen(None)?;
    ensure!(head.status == 200, "the second GET was answered with {}", head.status);
    while unread.event()?.is_some() {}
    drop(second);
    session.round_trip()?;
    server.finish().map(drop)
}

fn large_answers(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let id = server.fresh_id();
        let mut wire = server.connect()?;
        wire.send(&session.call(&id, "blob", json!({ "bytes": LARGE })))?;
        unread.push((id, wire));
    }
    for _ in 0..20 {
        let took = session.quick()?;
        ensure!(took < PROMPT, "unread answers delayed a list by {took:?}");
    }
    for (id, mut wire) in unread {
        let head = wire.head()?;
        let text = expect::text(&super::reference_server::answer(&head, &mut wire, &id)?, server.era)?;
        ensure!(text.len() == LARGE, "{} bytes of {LARGE} came", text.len());
    }
    server.finish().map(drop)
}

fn refused(session: &super::reference_server::HttpSession<'_>, id: &str) -> Verdict {
    let (head, _) = session.listen(Some(id))?;
    ensure!(head.status == 400, "Last-Event-ID {id:?} was answered with {}", head.status);
    Ok(())
}

fn unknown(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let (_, mut listening) = session.listen(None)?;
    let first = listening.event()?.and_then(|event| event.id);
    let first = first.ok_or_else(|| Failure("the GET stream was not primed".to_owned()))?;
    for id in ["", "0", "-1", "0-99", "99-0", "nonsense", "18446744073709551616", "' or 1=1", "\u{fffd}"] {
        refused(&session, id)?;
    }
    for changed in [format!("{first}0"), format!("0{first}"), format!("{first},{first}"), format!("{first}x")] {
        refused(&session, &changed)?;
    }
    let twice = session.request("GET").with("Last-Event-ID", &first).with("Last-Event-ID", &first);
    let status = server.status(&twice)?;
    ensure!(status == 400, "Last-Event-ID twice was answered with {status}");
    // The stream that was open all the time is still the one that is read.
    ensure!(listening.is_silent(std::time::Duration::from_millis(5))?, "a refusal ended another stream");
    session.round_trip()?;
    server.finish().map(drop)
}

/// Every event of one session, asked for in another that has streams and events of its own.
fn of_another_session(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let (mine, other) = (server.session()?, server.session()?);
    let mut ids = Vec::new();
    for session in [&mine, &other] {
        let (_, mut listening) = session.listen(None)?;
        let primed = listening.event()?.and_then(|event| event.id);
        ids.extend(primed.filter(|_| session.id == other.id));
        let id = server.fresh_id();
        let (_, mut wire) =
            server.send(&session.call_with_progress(&id, "progress", json!({ "steps": 3, "ms": 1 })))?;
        while let Some(event) = wire.event()? {
            ids.extend(event.id.filter(|_| session.id == other.id));
        }
    }
    ensure!(ids.len() >= 3, "the other session had {} events", ids.len());
    for id in &ids {
        refused(&mine, id).map_err(|failure| failure.at("an event of another session"))?;
    }
    context.note(format!("{} events", ids.len()));
    server.finish().map(drop)
}

/// The log keeps so many events; what is older cannot be resumed, and says so instead of leaving a gap.
fn stale(context: &mut CheckContext) -> Verdict {
    const KEPT: usize = 4_096;
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let (_, mut wire) = server.send(&session.call_with_progress(&id, "progress", json!({ "steps": 2, "ms": 1 })))?;
    let mut first = None;
    while let Some(event) = wire.event()? {
        first = first.or(event.id);
    }
    let first = first.ok_or_else(|| Failure("no event had an id".to_owned()))?;
    let (head, mut again) = session.listen(Some(&first))?;
    ensure!(head.status == 200, "a fresh event was answered with {}", head.status);
    rest(&mut again, &id)?;
    let mut count = 0;
    let mut wire = server.connect()?;
    while count < KEPT {
        let id = server.fresh_id();
        wire.send(&session.call_with_progress(&id, "progress", json!({ "steps": 1, "ms": 0 })))?;
        let head = wire.head()?;
        ensure!(head.is_events(), "progress was not answered with events");
        while wire.event()?.is_some() {
            count += 1;
        }
    }
    refused(&session, &first)?;
    session.round_trip()?;
    server.finish().map(drop)
}

fn of_a_deleted_session(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let (_, mut wire) = server.send(&session.call_with_progress(&id, "slow_cleanup", json!({ "ms": LONG_MS })))?;
    let first = wire.event()?.and_then(|event| event.id).unwrap_or_default();
    session.delete()?;
    let (head, _) = session.listen(Some(&first))?;
    ensure!(head.status == 404, "an event of a deleted session was answered with {}", head.status);
    // In a session that came after it, which a client may open at once with what it remembers.
    refused(&server.session()?, &first)?;
    server.finish().map(drop)
}

fn again_and_again(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let (_, mut wire) = server.send(&session.call_with_progress(&id, "progress", json!({ "steps": 4, "ms": 1 })))?;
    let mut events = Vec::new();
    while let Some(event) = wire.event()? {
        events.push((event.id.clone().unwrap_or_default(), message(&event)?.map(|message| message.opening)));
    }
    for _ in 0..5 {
        for place in 0..events.len() {
            let (head, mut again) = session.listen(Some(&events[place].0))?;
            ensure!(head.status == 200, "event {place} was answered with {}", head.status);
            for (id, opening) in &events[place + 1..] {
                let Some(event) = again.event()? else { fail!("the event {id} did not come again") };
                ensure!(event.id.as_ref() == Some(id), "{:?} came instead of {id}", event.id);
                let said = message(&event)?.map(|message| message.opening);
                ensure!(said == *opening, "{id} says something else the second time");
            }
            ensure!(again.event()?.is_none(), "there is more the second time");
        }
    }
    context.note(format!("{} events", events.len()));
    server.finish().map(drop)
}
