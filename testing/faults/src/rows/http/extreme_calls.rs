//! Calls at the limits of what can be read, over HTTP: served, or refused under their id in their own response.

use serde_json::{Value, json};

use super::reference_server::{ReferenceServer, Talk, answer, maybe_answer};
use super::wire::Request;
use crate::bench::Bench;
use crate::client::expect::{self, PARSE_ERROR};
use crate::client::message::{Body, Id, Message};
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::limits::LONG_MS;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_extreme_calls",
    fault: "arguments nested 150, 5,000 and 100,000 deep; ids 2^53+1, 2^63, 2^64, odd and huge ones; invalid UTF-8 and half \
            pairs of surrogates inside a string; a body that comes byte by byte, or in chunks of one byte",
    must: "served, or refused with an error in its own response; never dropped in silence; others are served",
    checks: &[
        Check::new("arguments_nested_150", Era::BOTH, nested_150),
        Check::new("arguments_nested_5000", Era::BOTH, |bench| nested(bench, 5_000)),
        Check::new("arguments_nested_100000", Era::BOTH, |bench| nested(bench, 100_000)),
        Check::new("id_2_to_53_plus_1", Era::BOTH, |bench| large_id(bench, "9007199254740993")),
        Check::new("id_2_to_63", Era::BOTH, |bench| large_id(bench, "9223372036854775808")),
        Check::new("id_2_to_64", Era::BOTH, |bench| large_id(bench, "18446744073709551616")),
        Check::new("id_below_zero", Era::BOTH, |bench| large_id(bench, "-9223372036854775809")),
        Check::new("id_odd_strings", Era::BOTH, odd_string_ids),
        Check::new("id_of_100000_bytes", Era::BOTH, huge_string_id),
        Check::new("invalid_utf8_in_a_string", Era::BOTH, invalid_utf8),
        Check::new("lone_surrogate_in_a_string", Era::BOTH, lone_surrogate),
        Check::new("split_at_every_byte", Era::BOTH, split_at_every_byte),
        Check::new("in_chunks_of_one_byte", Era::BOTH, one_byte_chunks),
    ],
};

/// A call of `echo` with `extra` in place of an argument that the tool does not know, its id first or last.
fn call_with(talk: &Talk<'_>, id: &Id, extra: &[u8], id_last: bool) -> Request {
    const MARK: &[u8] = b"\"MARK\"";
    let mut request = talk.call(id, "echo", json!({ "text": "deep", "extra": "MARK" }));
    if let Some(place) = request.body.windows(MARK.len()).position(|part| part == MARK) {
        request.body.splice(place..place + MARK.len(), extra.iter().copied());
    }
    let in_front = format!("\"id\":{id},").into_bytes();
    let place = request.body.windows(in_front.len()).position(|part| part == in_front);
    if let Some(place) = place.filter(|_| id_last) {
        request.body.drain(place..place + in_front.len());
        request.body.pop();
        request.body.extend_from_slice(format!(",\"id\":{id}}}").as_bytes());
    }
    request
}

/// What a request is answered with: under its id, or without one if its id was not read.
fn respond(server: &ReferenceServer, request: &Request) -> Verdict<Message> {
    let (_, mut wire) = server.send(request)?;
    Ok(Message::parse(&wire.body()?))
}

fn nest(depth: usize, objects: bool) -> String {
    if objects { "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth) } else { "[".repeat(depth) + &"]".repeat(depth) }
}

fn nested_150(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let (head, mut wire) = server.send(&call_with(&talk, &id, nest(150, objects).as_bytes(), id_last))?;
            expect::result(&answer(&head, &mut wire, &id)?)?;
        }
    }
    server.finish().map(drop)
}

fn nested(bench: &mut Bench, depth: usize) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let mut served = 0;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let place = |failure: Failure| failure.at(format!("objects: {objects}, the id behind: {id_last}"));
            let said =
                respond(&server, &call_with(&talk, &id, nest(depth, objects).as_bytes(), id_last)).map_err(place)?;
            ensure!(said.answers() == Some(&id), "not under its id: {}", said.opening);
            served += usize::from(matches!(said.body, Body::Result(_)));
            talk.fence()?;
        }
    }
    bench.note(format!("{served} served, {} refused", 4 - served));
    server.finish().map(drop)
}

fn large_id(bench: &mut Bench, digits: &str) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let id = Id::raw(digits);
    let said = respond(&server, &talk.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
    ensure!(said.answers() == Some(&id), "not under its id: {}", said.opening);
    let served = matches!(said.body, Body::Result(_));
    bench.note(if served { "served" } else { "refused" });
    if served && talk.session.is_some() {
        ensure!(expect::text(&said, server.era)? == "5", "2 + 3 under {id}");
        // Exactly that id, not one that is the same float: a cancellation of its neighbour does not touch it.
        let (front, last) = digits.split_at(digits.len() - 1);
        let neighbour = Id::raw(format!("{front}{}", if last == "9" { "8" } else { "9" }));
        let mut running = talk.begin(&id, "progress", json!({ "steps": 5, "ms": 10 }))?;
        talk.cancel(&neighbour)?;
        super::hang_ups::ends_with_text(&talk, &mut running, &id)?;
        let mut cancelled = talk.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        talk.cancel(&id)?;
        ensure!(
            super::reference_server::rest(&mut cancelled, &id)?.is_none(),
            "{id} was answered after its cancellation"
        );
    }
    server.finish().map(drop)
}

fn odd_string_ids(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let long = "i".repeat(1_000);
    for text in ["", " ", "7", "null", "ü-✓", "\"quoted\" \\ \n", &long] {
        let id = Id::string(text);
        let (head, mut wire) = server.send(&talk.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
        ensure!(expect::text(&answer(&head, &mut wire, &id)?, server.era)? == "5", "2 + 3 under {id}");
    }
    server.finish().map(drop)
}

fn huge_string_id(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let id = Id::string(&"i".repeat(100_000));
    let said = respond(&server, &talk.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
    let refused = said.is_unnamed_error() || matches!(said.body, Body::Error(_));
    bench.note(if refused { "refused" } else { "served" });
    if !refused {
        ensure!(expect::text(&said, server.era)? == "5", "2 + 3");
    }
    talk.fence()?;
    server.finish().map(drop)
}

fn invalid_utf8(bench: &mut Bench) -> Verdict {
    let sequences: &[&[u8]] = &[
        b"\xff",
        b"\xc3",
        b"\xe2\x82",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\x80abc",
        b"ok\xfe\xffok",
    ];
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let flying = server.fresh_id();
    let mut running = talk.begin(&flying, "progress", json!({ "steps": 10, "ms": 10 }))?;
    for sequence in sequences {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let text = [b"\"".as_slice(), sequence, b"\""].concat();
            let said = respond(&server, &call_with(&talk, &id, &text, id_last))?;
            expect::error(&said, &[PARSE_ERROR]).map_err(|failure| failure.at(format!("{sequence:x?}")))?;
            talk.fence()?;
        }
    }
    super::hang_ups::ends_with_text(&talk, &mut running, &flying)?;
    server.finish().map(drop)
}

fn lone_surrogate(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    for escape in ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800"] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let said = respond(&server, &call_with(&talk, &id, format!("\"{escape}\"").as_bytes(), id_last))?;
            ensure!(said.answers() == Some(&id), "{escape}: not under its id: {}", said.opening);
        }
    }
    talk.fence()?;
    server.finish().map(drop)
}

/// The arguments that come there and back.
fn text() -> Value {
    json!({ "text": "ü✓\u{1f980}" })
}

/// However the bytes of a call arrive, it is the same call.
fn split_at_every_byte(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let mut wire = server.connect()?;
    for cut in 1.. {
        let id = server.fresh_id();
        let bytes = talk.call(&id, "echo", text()).bytes();
        if cut >= bytes.len() {
            break;
        }
        wire.write(&bytes[..cut])?;
        bench.random.pause(100);
        wire.write(&bytes[cut..])?;
        let head = wire.head()?;
        let Some(said) = maybe_answer(&head, &mut wire, &id)? else {
            return Err(Failure(format!("no answer, cut after {cut} bytes")));
        };
        ensure!(expect::text(&said, server.era)? == "ü✓\u{1f980}", "cut after {cut} bytes");
    }
    server.finish().map(drop)
}

fn one_byte_chunks(bench: &mut Bench) -> Verdict {
    let mut server = ReferenceServer::open(bench)?;
    let talk = server.talk()?;
    let id = server.fresh_id();
    let request = talk.call(&id, "echo", text()).with("Transfer-Encoding", "chunked");
    let mut wire = server.connect()?;
    wire.write(&request.head())?;
    for byte in &request.body {
        wire.write(&[b"1\r\n".as_slice(), &[*byte], b"\r\n"].concat())?;
    }
    wire.write(b"0\r\n\r\n")?;
    let head = wire.head()?;
    ensure!(expect::text(&answer(&head, &mut wire, &id)?, server.era)? == "ü✓\u{1f980}", "in chunks");
    server.finish().map(drop)
}
