//! Calls at the limits of what can be read: served, or refused under their id, never dropped in silence.

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::expect::{self, PARSE_ERROR};
use crate::client::message::{Body, Id, Message};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{CHECK_TIMEOUT, LONG_MS};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "extreme_calls",
    fault: "arguments nested 150, 5,000 and 100,000 deep; ids 2^53+1, 2^63 and 2^64; a last line without a newline before \
            the close; invalid UTF-8 inside a string of a call whose id can be read",
    must: "served, or refused with an error under that id; never dropped in silence",
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
        Check::new("last_line_without_newline", Era::BOTH, no_last_newline),
        Check::new("last_line_without_newline_and_bad", Era::THREE, no_last_newline_and_bad),
        Check::new("invalid_utf8_in_a_string", Era::BOTH, invalid_utf8_in_string),
        Check::new("lone_surrogate_in_a_string", Era::BOTH, lone_surrogate),
        Check::new("split_at_every_byte", Era::BOTH, split_at_every_byte),
    ],
};

/// Where the marker stands in a template.
const MARK: &str = "\"MARK\"";

/// A call of `echo` with `extra` in place of an argument that the tool does not know, its id first or last.
fn call_with(client: &Client, id: &Id, extra: &str, id_last: bool) -> String {
    let line = client.call_line(id, "echo", json!({ "text": "deep", "extra": "MARK" })).replace(MARK, extra);
    if !id_last {
        return line;
    }
    let in_front = format!("\"id\":{id},");
    let line = line.replacen(&in_front, "", 1);
    format!("{},\"id\":{id}}}\n", line.trim_end().strip_suffix('}').unwrap_or_default())
}

fn nest(depth: usize, objects: bool) -> String {
    if objects { "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth) } else { "[".repeat(depth) + &"]".repeat(depth) }
}

/// Well within the limit of nesting: the call runs. Whether the tool likes its argument is its own affair.
fn nested_150(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = client.fresh_id();
            let line = call_with(&client, &id, &nest(150, objects), id_last);
            client.send_request(&id, &line)?;
            expect::result(&client.answer(&id)?)?;
        }
    }
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn nested(context: &mut CheckContext, depth: usize) -> Verdict {
    let mut client = context.open()?;
    let mut served = 0;
    for objects in [false, true] {
        for id_last in [false, true] {
            let id = client.fresh_id();
            let line = call_with(&client, &id, &nest(depth, objects), id_last);
            client.send_request(&id, &line)?;
            let answer = client
                .answer(&id)
                .map_err(|failure| failure.at(format!("objects: {objects}, the id behind the arguments: {id_last}")))?;
            served += usize::from(matches!(answer.body, Body::Result(_)));
            client.round_trip()?;
        }
    }
    context.note(format!("{served} served, {} refused", 4 - served));
    client.finish()?;
    Ok(())
}

fn large_id(context: &mut CheckContext, digits: &str) -> Verdict {
    let mut client = context.open()?;
    let id = Id::raw(digits);
    client.call_as(&id, "add", json!({ "a": 2, "b": 3 }))?;
    let answer = client.answer(&id)?;
    let served = matches!(answer.body, Body::Result(_));
    if served {
        ensure!(expect::text(&answer, context.era)? == "5", "2 + 3 under {id}");
        // Exactly that id, not one that is the same float: a cancellation of its neighbour does not touch it.
        client.call_as(&id, "sleep", json!({ "ms": 100 }))?;
        client.cancel(&Id::raw(neighbour(digits)))?;
        let transcript = &client.server.output.transcript;
        let came = transcript.wait(CHECK_TIMEOUT, |seen| (seen.answer_count(&id) == 2).then_some(()));
        ensure!(came.is_some(), "a cancellation of {} stopped {id}", neighbour(digits));
        client.call_as(&id, "sleep", json!({ "ms": LONG_MS }))?;
        client.cancel(&id)?;
        let (place, _) = client.round_trip()?;
        client.silent_since(&id, place)?;
        ensure!(client.answer_count(&id) == 2, "{id} was answered after its cancellation");
    }
    context.note(if served { "served" } else { "refused" });
    client.finish()?;
    Ok(())
}

/// The number with its last digit changed by one: the same float.
fn neighbour(digits: &str) -> String {
    let (front, last) = digits.split_at(digits.len() - 1);
    let changed = if last == "9" { "8" } else { "9" };
    format!("{front}{changed}")
}

fn odd_string_ids(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let long = "i".repeat(1_000);
    for text in ["", " ", "7", "null", "ü-✓", "\"quoted\" \\ \n", &long] {
        let id = Id::string(text);
        client.call_as(&id, "add", json!({ "a": 2, "b": 3 }))?;
        ensure!(client.text(&id)? == "5", "2 + 3 under {id}");
    }
    client.finish()?;
    Ok(())
}

/// An id has to be stored and echoed, so its size may be limited: then the call is refused, not dropped.
fn huge_string_id(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = Id::string(&"i".repeat(100_000));
    let start = client.place();
    client.call_as(&id, "add", json!({ "a": 2, "b": 3 }))?;
    let (end, _) = client.round_trip()?;
    let came = client.between(start, end);
    let refused = came.iter().any(Message::is_unnamed_error);
    context.note(if refused { "refused" } else { "served" });
    if !refused {
        client.text(&id)?;
    }
    client.finish()?;
    Ok(())
}

fn no_last_newline(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.fresh_id();
    let line = client.call_line(&id, "add", json!({ "a": 2, "b": 3 }));
    client.send_request(&id, line.trim_end())?;
    let ending = client.finish()?;
    context.note_exit(ending);
    ensure!(client.text(&id)? == "5", "2 + 3");
    Ok(())
}

fn no_last_newline_and_bad(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    let start = client.place();
    client.send("{\"jsonrpc\":\"2.0\",")?;
    client.finish()?;
    let came = client.between(start, client.place());
    ensure!(came.len() == 1, "{} lines for a bad last line", came.len());
    for message in &came {
        expect::error(message, &[PARSE_ERROR])?;
        expect::unnamed(message, context.era.writes_null_id())?;
    }
    Ok(())
}

fn invalid_utf8_in_string(context: &mut CheckContext) -> Verdict {
    // A stray byte, a cut sequence, an overlong form, a surrogate, and a number past the last character.
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
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 200 }))?;
    for sequence in sequences {
        for id_last in [false, true] {
            let id = client.fresh_id();
            let line = call_with(&client, &id, MARK, id_last);
            let Some(cut) = line.find("MARK") else {
                continue;
            };
            let bytes = [&line.as_bytes()[..cut], sequence, &line.as_bytes()[cut + 4..]].concat();
            client.count(&id);
            client.send(bytes)?;
            let answer =
                client.answer(&id).map_err(|failure| failure.at(format!("{sequence:x?}, the id behind: {id_last}")))?;
            expect::error(&answer, &[PARSE_ERROR])?;
            client.round_trip()?;
        }
    }
    client.text(&flying)?;
    client.finish()?;
    Ok(())
}

/// Well-formed JSON that is no text: half of a pair of escapes.
fn lone_surrogate(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for escape in ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800"] {
        for id_last in [false, true] {
            let id = client.fresh_id();
            let line = call_with(&client, &id, MARK, id_last).replace("\"deep\"", &format!("\"{escape}\""));
            client.send_request(&id, &line)?;
            client.answer(&id).map_err(|failure| failure.at(escape))?;
        }
    }
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

/// However the bytes of a call arrive, it is the same call.
fn split_at_every_byte(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let length = client.call_line(&Id::number(100_001), "echo", json!({ "text": "ü✓\u{1f980}" })).len();
    for cut in 1..length {
        let id = client.fresh_id();
        let line = client.call_line(&id, "echo", json!({ "text": "ü✓\u{1f980}" }));
        client.count(&id);
        let cut = cut.min(line.len() - 1);
        client.send(&line.as_bytes()[..cut])?;
        context.random.pause(100);
        client.send(&line.as_bytes()[cut..])?;
        ensure!(client.text(&id)? == "ü✓\u{1f980}", "cut after {cut} bytes");
    }
    client.finish()?;
    Ok(())
}
