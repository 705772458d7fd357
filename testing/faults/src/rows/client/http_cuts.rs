//! A stream of events that is cut, at every byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::http_server_dies::start;
use super::raw_server::{CHUNKED_EVENTS, Connection, EVENTS, RawServer, ReceivedRequest, response, text};
use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_stream_cut",
    fault: "the stream of a response is cut at every byte: with and without event ids, chunked and not",
    must: "Unknown if the answer had not come whole; before 2026-07-28, where an id was given, it is resumed behind that event \
           and the answer comes once",
    checks: &[
        Check::new("without_ids", Era::BOTH, |context| cut(context, false)),
        Check::new("with_ids", Era::BOTH, |context| cut(context, true)),
        Check::new("resumed_and_cut_again", Era::HANDSHAKE, cut_again),
        Check::new("what_was_lost_cannot_be_had", Era::HANDSHAKE, lost),
    ],
};

/// The events of the response to a call: one that only has an id, one that is a notification, and the answer.
fn events(mark: &str, answer: &str, ids: bool) -> Vec<String> {
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "nobody's", "progress": 1 } });
    let id = |number: usize| if ids { format!("id: {mark}/{number}\n") } else { String::new() };
    vec![
        format!("{}retry: 1\ndata:\n\n", id(0)),
        format!("{}data: {notice}\n\n", id(1)),
        format!("{}event: message\ndata: {answer}\n\n", id(2)),
    ]
}

/// Where the stream of a call had which events whole.
type EventOffsets = Arc<Mutex<HashMap<String, Vec<usize>>>>;

/// Cuts the response of `cut`, and sends the rest to a client that resumes.
fn serve(request: &ReceivedRequest, connection: &mut Connection, era: Era, offsets: &EventOffsets) {
    let mut offsets = offsets.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(last) = request.header("last-event-id") {
        // The rest is known by the call that it belongs to.
        let Some((mark, number)) = last.split_once('/') else { return };
        let id = offsets.get(&format!("id of {mark}")).and_then(|id| id.first().copied()).unwrap_or(0);
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": text(era.is_stateless(), "whole") }).to_string();
        let from = number.parse::<usize>().map_or(0, |number| number + 1);
        connection.write(EVENTS.as_bytes());
        connection.write(events(mark, &answer, true)[from..].concat().as_bytes());
        return connection.close();
    }
    let events =
        events(request.mark(), &request.message(&text(era.is_stateless(), "whole")), request.argument("ids") == true);
    let ends = events.iter().scan(0, |end, event| {
        *end += event.len();
        Some(*end)
    });
    offsets.insert(request.mark().to_owned(), ends.collect());
    let id = request.body["id"].as_u64().and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
    offsets.insert(format!("id of {}", request.mark()), vec![id]);
    drop(offsets);
    let whole = events.concat();
    let at = request.argument("at").as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
    let part = &whole.as_bytes()[..at.min(whole.len())];
    if request.argument("chunked") == true {
        connection.write(format!("{CHUNKED_EVENTS}{:x}\r\n", whole.len()).as_bytes());
    } else {
        connection.write(EVENTS.as_bytes());
    }
    connection.write(part);
    if at.is_multiple_of(2) || request.argument("chunked") != true { connection.close() } else { connection.reset() }
}

fn cut(context: &mut CheckContext, ids: bool) -> Verdict {
    let era = context.era;
    let offsets = EventOffsets::default();
    let inside = Arc::clone(&offsets);
    let server = RawServer::open(era, move |request, connection| serve(request, connection, era, &inside))?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    let mut cuts = 0;
    for chunked in [false, true] {
        for at in 0.. {
            let call = client.call(&name, "cut", json!({ "at": at, "ids": ids, "chunked": chunked }))?;
            let ended = client.ended(&call)?;
            let ends = offsets.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
            let ends = ends.ok_or_else(|| Failure(format!("{call} never came")))?;
            let whole = ends.last().copied().unwrap_or(0);
            let resumable = ids && !era.is_stateless() && ends.first().is_some_and(|first| at >= *first);
            let place = |failure: Failure| failure.at(format!("cut at {at} of {whole}, chunked {chunked}"));
            // A reset may also take away what was written before it.
            let reset = chunked && at % 2 == 1;
            match (at == whole || resumable, reset) {
                (true, true) if ended.ends != "Done" => ended.is("Unknown", &["Transport"]).map_err(place)?,
                (true, _) => ended.done("whole").map_err(place)?,
                (false, _) => ended.is("Unknown", &["Transport"]).map_err(place)?,
            }
            let (posted, resumed) = (server.count(&call), resumptions(&server, &call));
            ensure!(posted == 1, "cut at {at}: the call came {posted} times");
            ensure!(resumed <= usize::from(resumable && at < whole), "cut at {at}: resumed {resumed} times");
            cuts += 1;
            if at == whole {
                break;
            }
        }
    }
    context.note(format!("{cuts} cuts"));
    client.works(&name)?;
    client.finish(context)
}

fn resumptions(server: &RawServer, call: &str) -> usize {
    let of = format!("{call}/");
    server
        .requests()
        .iter()
        .filter(|request| request.header("last-event-id").is_some_and(|id| id.starts_with(&of)))
        .count()
}

/// Each resumed stream is cut after one more event: the client continues from there, and never goes back.
fn cut_again(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, move |request, connection| {
        let last = request.header("last-event-id").map(str::to_owned);
        let (mark, next) = match last.as_deref().and_then(|last| last.split_once('/')) {
            Some((mark, number)) => (mark.to_owned(), number.parse::<u64>().unwrap_or(0) + 1),
            None => (format!("{}|{}", request.mark(), request.body["id"]), 0),
        };
        connection.write(EVENTS.as_bytes());
        if next < 20 {
            connection.write(format!("id: {mark}/{next}\nretry: 1\ndata:\n\nid: half").as_bytes());
        } else {
            let id: Value = mark.split_once('|').and_then(|(_, id)| id.parse().ok()).unwrap_or_default();
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": text(false, "at last") });
            connection.write(format!("id: {mark}/{next}\ndata: {answer}\n\n").as_bytes());
        }
        connection.close();
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    // A notification between the cuts would make it a pace; without one the client comes less and less often, so few of them.
    let call = client.call_with(&name, "again", json!({}), &json!({ "deadline_ms": 2_000 }))?;
    let ended = client.ended(&call)?;
    let right = ended.ends == "Done" || (ended.ends == "Unknown" && ended.kind == "TimedOut");
    ensure!(right, "{ended}");
    let numbers: Vec<u64> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("last-event-id")?.split_once('/')?.1.parse().ok())
        .collect();
    context.note(format!("{} resumptions", numbers.len()));
    ensure!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "it went on at {numbers:?}");
    client.works(&name)?;
    client.finish(context)
}

/// The server has forgotten the events: Unknown, without another word.
fn lost(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |request, connection| {
        if request.header("last-event-id").is_some() {
            connection.write(&response("400 Bad Request", &[], b""));
            return connection.keep();
        }
        connection.write(format!("{EVENTS}id: {}/0\nretry: 1\ndata:\n\n", request.mark()).as_bytes());
        connection.close();
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for _ in 0..5 {
        let call = client.call(&name, "cut", json!({}))?;
        client.ended(&call)?.is("Unknown", &["Transport"])?;
        let resumed = resumptions(&server, &call);
        ensure!(resumed == 1, "it was asked for {resumed} times");
    }
    client.works(&name)?;
    client.finish(context)
}
