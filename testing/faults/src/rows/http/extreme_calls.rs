//! Calls at the limits of what can be read, over HTTP: served, or refused under their id in their own response.

use serde_json::{Value, json};

use super::reference_server::{HttpSession, ReferenceServer, answer, maybe_answer};
use super::wire::Request;
use crate::check_context::CheckContext;
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
        Check::new("arguments_nested_5000", Era::BOTH, |context| nested(context, 5_000)),
        Check::new("arguments_nested_100000", Era::BOTH, |context| nested(context, 100_000)),
        Check::new("id_2_to_53_plus_1", Era::BOTH, |context| large_id(context, "9007199254740993")),
        Check::new("id_2_to_63", Era::BOTH, |context| large_id(context, "9223372036854775808")),
        Check::new("id_2_to_64", Era::BOTH, |context| large_id(context, "18446744073709551616")),
        Check::new("id_below_zero", Era::BOTH, |context| large_id(context, "-9223372036854775809")),
        Check::new("id_odd_strings", Era::BOTH, odd_string_ids),
        Check::new("id_of_100000_bytes", Era::BOTH, huge_string_id),
        Check::new("invalid_utf8_in_a_string", Era::BOTH, invalid_utf8),
        Check::new("lone_surrogate_in_a_string", Era::BOTH, lone_surrogate),
        Check::new("split_at_every_byte", Era::BOTH, split_at_every_byte),
        Check::new("in_chunks_of_one_byte", Era::BOTH, one_byte_chunks),
    ],
};

/// A call of `echo` with `extra` in place of an argument that the tool does not know, its id first or last.
fn call_with(session: &HttpSession<'_>, id: &Id, extra: &[u8], id_last: bool) -> Request {
    const MARK: &[u8] = b"\"MARK\"";
    let mut request = session.call(id, "echo", json!({ "text": "deep", "extra": "MARK" }));
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

fn nested_150(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let (head, mut wire) = server.send(&call_with(&session, &id, nest(150, objects).as_bytes(), id_last))?;
            expect::result(&answer(&head, &mut wire, &id)?)?;
        }
    }
    server.finish().map(drop)
}

fn nested(context: &mut CheckContext, depth: usize) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut served = 0;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let place = |failure: Failure| failure.at(format!("objects: {objects}, the id behind: {id_last}"));
            let said =
                respond(&server, &call_with(&session, &id, nest(depth, objects).as_bytes(), id_last)).map_err(place)?;
            ensure!(said.answers() == Some(&id), "not under its id: {}", said.opening);
            served += usize::from(matches!(said.body, Body::Result(_)));
            session.round_trip()?;
        }
    }
    context.note(format!("{served} served, {} refused", 4 - served));
    server.finish().map(drop)
}

fn large_id(context: &mut CheckContext, digits: &str) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = Id::raw(digits);
    let said = respond(&server, &session.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
    ensure!(said.answers() == Some(&id), "not under its id: {}", said.opening);
    let served = matches!(said.body, Body::Result(_));
    context.note(if served { "served" } else { "refused" });
    if served && session.id.is_some() {
        ensure!(expect::text(&said, server.era)? == "5", "2 + 3 under {id}");
        // Exactly that id, not one that is the same float: a cancellation of its neighbour does not touch it.
        let (front, last) = digits.split_at(digits.len() - 1);
        let neighbour = Id::raw(format!("{front}{}", if last == "9" { "8" } else { "9" }));
        let mut running = session.begin(&id, "progress", json!({ "steps": 5, "ms": 10 }))?;
        session.cancel(&neighbour)?;
        super::hang_ups::ends_with_text(&session, &mut running, &id)?;
        let mut cancelled = session.begin(&id, "slow_cleanup", json!({ "ms": LONG_MS }))?;
        session.cancel(&id)?;
        ensure!(
            super::reference_server::rest(&mut cancelled, &id)?.is_none(),
            "{id} was answered after its cancellation"
        );
    }
    server.finish().map(drop)
}

fn odd_string_ids(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let long = "i".repeat(1_000);
    for text in ["", " ", "7", "null", "ü-✓", "\"quoted\" \\ \n", &long] {
        let id = Id::string(text);
        let (head, mut wire) = server.send(&session.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
        ensure!(expect::text(&answer(&head, &mut wire, &id)?, server.era)? == "5", "2 + 3 under {id}");
    }
    server.finish().map(drop)
}

fn huge_string_id(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = Id::string(&"i".repeat(100_000));
    let said = respond(&server, &session.call(&id, "add", json!({ "a": 2, "b": 3 })))?;
    let refused = said.is_unnamed_error() || matches!(said.body, Body::Error(_));
    context.note(if refused { "refused" } else { "served" });
    if !refused {
        ensure!(expect::text(&said, server.era)? == "5", "2 + 3");
    }
    session.round_trip()?;
    server.finish().map(drop)
}

fn invalid_utf8(context: &mut CheckContext) -> Verdict {
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
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let flying = server.fresh_id();
    let mut running = session.begin(&flying, "progress", json!({ "steps": 10, "ms": 10 }))?;
    for sequence in sequences {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let text = [b"\"".as_slice(), sequence, b"\""].concat();
            let said = respond(&server, &call_with(&session, &id, &text, id_last))?;
            expect::error(&said, &[PARSE_ERROR]).map_err(|failure| failure.at(format!("{sequence:x?}")))?;
            session.round_trip()?;
        }
    }
    super::hang_ups::ends_with_text(&session, &mut running, &flying)?;
    server.finish().map(drop)
}

fn lone_surrogate(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for escape in ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800"] {
        for id_last in [false, true] {
            let id = server.fresh_id();
            let said = respond(&server, &call_with(&session, &id, format!("\"{escape}\"").as_bytes(), id_last))?;
            ensure!(said.answers() == Some(&id), "{escape}: not under its id: {}", said.opening);
        }
    }
    session.round_trip()?;
    server.finish().map(drop)
}

/// The arguments that come there and back.
fn text() -> Value {
    json!({ "text": "ü✓\u{1f980}" })
}

/// However the bytes of a call arrive, it is the same call.
fn split_at_every_byte(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let mut wire = server.connect()?;
    for cut in 1.. {
        let id = server.fresh_id();
        let bytes = session.call(&id, "echo", text()).bytes();
        if cut >= bytes.len() {
            break;
        }
        wire.write(&bytes[..cut])?;
        context.random.pause(100);
        wire.write(&bytes[cut..])?;
        let head = wire.head()?;
        let Some(said) = maybe_answer(&head, &mut wire, &id)? else {
            return Err(Failure(format!("no answer, cut after {cut} bytes")));
        };
        ensure!(expect::text(&said, server.era)? == "ü✓\u{1f980}", "cut after {cut} bytes");
    }
    server.finish().map(drop)
}

fn one_byte_chunks(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let request = session.call(&id, "echo", text()).with("Transfer-Encoding", "chunked");
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
