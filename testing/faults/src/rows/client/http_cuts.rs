//! A stream of events that is cut, at every byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::http_server_dies::start;
use super::raw_server::{CHUNKED_EVENTS, Connection, EVENTS, RawServer, ReceivedRequest, response, text};
use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_stream_cut",
    fault: "the stream of a response is cut at every byte: with and without event ids, chunked and not",
    must: "Unknown if the answer had not come whole; before 2026-07-28, where an id was given, it is resumed behind that event \
           and the answer comes once",
    checks: &[
        Check::new("without_ids", Era::BOTH, |bench| cut(bench, false)),
        Check::new("with_ids", Era::BOTH, |bench| cut(bench, true)),
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
type Seams = Arc<Mutex<HashMap<String, Vec<usize>>>>;

/// Cuts the response of `cut`, and sends the rest to a client that resumes.
fn serve(request: &ReceivedRequest, connection: &mut Connection, era: Era, seams: &Seams) {
    let mut seams = seams.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(last) = request.header("last-event-id") {
        // The rest is known by the call that it belongs to.
        let Some((mark, number)) = last.split_once('/') else { return };
        let id = seams.get(&format!("id of {mark}")).and_then(|id| id.first().copied()).unwrap_or(0);
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
    seams.insert(request.mark().to_owned(), ends.collect());
    let id = request.body["id"].as_u64().and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
    seams.insert(format!("id of {}", request.mark()), vec![id]);
    drop(seams);
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

fn cut(bench: &mut Bench, ids: bool) -> Verdict {
    let era = bench.era;
    let seams = Seams::default();
    let inside = Arc::clone(&seams);
    let server = RawServer::open(era, move |request, connection| serve(request, connection, era, &inside))?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    let mut cuts = 0;
    for chunked in [false, true] {
        for at in 0.. {
            let call = subject.call(&name, "cut", json!({ "at": at, "ids": ids, "chunked": chunked }))?;
            let ended = subject.ended(&call)?;
            let ends = seams.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
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
    bench.note(format!("{cuts} cuts"));
    subject.works(&name)?;
    subject.finish(bench)
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
fn cut_again(bench: &mut Bench) -> Verdict {
    let server = RawServer::open(bench.era, move |request, connection| {
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
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    // A notification between the cuts would make it a pace; without one the client comes less and less often, so few of them.
    let call = subject.call_with(&name, "again", json!({}), &json!({ "deadline_ms": 2_000 }))?;
    let ended = subject.ended(&call)?;
    let right = ended.ends == "Done" || (ended.ends == "Unknown" && ended.kind == "TimedOut");
    ensure!(right, "{ended}");
    let numbers: Vec<u64> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("last-event-id")?.split_once('/')?.1.parse().ok())
        .collect();
    bench.note(format!("{} resumptions", numbers.len()));
    ensure!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "it went on at {numbers:?}");
    subject.works(&name)?;
    subject.finish(bench)
}

/// The server has forgotten the events: Unknown, without another word.
fn lost(bench: &mut Bench) -> Verdict {
    let server = RawServer::open(bench.era, |request, connection| {
        if request.header("last-event-id").is_some() {
            connection.write(&response("400 Bad Request", &[], b""));
            return connection.keep();
        }
        connection.write(format!("{EVENTS}id: {}/0\nretry: 1\ndata:\n\n", request.mark()).as_bytes());
        connection.close();
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    for _ in 0..5 {
        let call = subject.call(&name, "cut", json!({}))?;
        subject.ended(&call)?.is("Unknown", &["Transport"])?;
        let resumed = resumptions(&server, &call);
        ensure!(resumed == 1, "it was asked for {resumed} times");
    }
    subject.works(&name)?;
    subject.finish(bench)
}
