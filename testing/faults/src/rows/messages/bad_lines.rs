//! Malformed lines between calls in flight: each gets its error or is ignored, and the calls are not disturbed.

mod batches;
mod bytes;
mod limits;

use serde_json::json;

use crate::check_context::CheckContext;
use crate::client::Client;
use crate::client::expect::{self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::client::message::{Body, Id, Identity, Message};
use crate::era::Era;
use crate::failure::{Verdict, ensure, fail};
use crate::limits::CHECK_TIMEOUT;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "bad_lines_between_calls",
    fault: "invalid UTF-8, malformed JSON, non-JSON-RPC, NUL bytes, blank lines, nesting of 100,000, a line over the \
            limit, id null, id float, missing method, params of the wrong shape, between calls in flight",
    must: "each gets the specified error or is ignored as specified; every call in flight is answered; the process lives",
    checks: &[
        Check::new("invalid_utf8", Era::THREE, invalid_utf8),
        Check::new("malformed_json", Era::THREE, malformed_json),
        Check::new("not_json_rpc", Era::THREE, not_json_rpc),
        Check::new("nul_bytes", Era::THREE, nul_bytes),
        Check::new("blank_lines", Era::THREE, blank_lines),
        Check::new("nesting_of_100000", Era::THREE, nesting),
        Check::new("line_over_a_small_limit", Era::THREE, line_over_small_limit),
        Check::new("line_over_the_default_limit", Era::BOTH, line_over_default_limit),
        Check::new("id_null", Era::THREE, id_null),
        Check::new("id_float_or_no_id_at_all", Era::THREE, id_of_wrong_type),
        Check::new("missing_method", Era::THREE, missing_method),
        Check::new("params_of_the_wrong_shape", Era::THREE, params_of_wrong_shape),
        Check::new("unknown_names", Era::THREE, unknown_names),
        Check::new("unknown_notifications", Era::THREE, unknown_notifications),
        Check::new("batch_where_there_are_none", Era::THREE, batch_refused),
        Check::new("batch_in_2025_03_26", &[Era::V2025_03_26], batch_served),
        Check::new("id_of_a_call_in_flight", Era::THREE, id_in_flight),
        Check::new("all_of_them_split_anywhere_raced", Era::BOTH, storm),
    ],
};

/// The expected reaction to a bad line.
pub(crate) enum Expected {
    /// One error without an id, with one of these codes.
    Unnamed(&'static [i64]),
    /// One error under this id, with one of these codes.
    Named(Id, &'static [i64]),
    /// One error with one of these codes, under this id or without any.
    MaybeNamed(Id, &'static [i64]),
    /// Nothing at all.
    Silence,
}

use Expected::{MaybeNamed, Named, Silence, Unnamed};
use batches::{batch_refused, batch_served};
use bytes::{blank_lines, invalid_utf8, malformed_json, nesting, not_json_rpc, nul_bytes};
use limits::{line_over_default_limit, line_over_small_limit};

/// A bad line, without its newline.
pub(crate) type Bad = (Vec<u8>, Expected);

fn bad(bytes: impl AsRef<[u8]>, expected: Expected) -> Bad {
    (bytes.as_ref().to_vec(), expected)
}

/// Sends bad lines between calls in flight and compares the output, line by line.
pub(crate) fn between_calls(context: &mut CheckContext, make: impl FnOnce(&Client) -> Vec<Bad>) -> Verdict {
    let mut client = context.open()?;
    let lines = make(&client);
    between_calls_of(&mut client, lines)?;
    client.finish()?;
    Ok(())
}

fn between_calls_of(client: &mut Client, lines: Vec<Bad>) -> Verdict {
    let mut flying = Vec::new();
    for ms in [150, 200, 250] {
        flying.push(client.call("sleep", json!({ "ms": ms }))?);
    }
    client.round_trip()?;
    for (bytes, expected) in lines {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
        judge_line(client, &bytes, &expected, &flying).map_err(|failure| failure.at(shown))?;
    }
    for id in &flying {
        client.text(id)?;
    }
    client.round_trip()?;
    Ok(())
}

/// The error for a line is committed when it is read, so it stands before the answer to a call that was sent after it.
fn judge_line(client: &mut Client, bytes: &[u8], expected: &Expected, flying: &[Id]) -> Verdict {
    let start = client.place();
    client.send([bytes, b"\n"].concat())?;
    let (end, _) = client.round_trip()?;
    let about_flying = |message: &Message| message.answers().is_some_and(|id| flying.contains(id));
    let came: Vec<Message> = client.between(start, end).into_iter().filter(|message| !about_flying(message)).collect();
    let null = client.era.writes_null_id();
    match (expected, came.as_slice()) {
        (Silence, []) => Ok(()),
        (Unnamed(codes), [message]) => {
            expect::error(message, codes)?;
            expect::unnamed(message, null)
        }
        (Named(id, codes), [message]) => {
            expect::error(message, codes)?;
            ensure!(message.id == Identity::Of(id.clone()), "not under {id}: {}", message.opening);
            Ok(())
        }
        (MaybeNamed(id, codes), [message]) => {
            expect::error(message, codes)?;
            if message.id == Identity::Of(id.clone()) { Ok(()) } else { expect::unnamed(message, null) }
        }
        (Silence, came) => fail!("expected nothing, got {}", openings(came)),
        (_, came) => fail!("expected one error, got {} lines: {}", came.len(), openings(came)),
    }
}

fn openings(messages: &[Message]) -> String {
    messages.iter().map(|message| message.opening.as_str()).collect::<Vec<_>>().join(" ")
}

fn id_null(context: &mut CheckContext) -> Verdict {
    between_calls(context, |client| {
        vec![
            bad(client.request_line(&Id::raw("null"), "tools/list", json!({})).trim_end(), Unnamed(&[INVALID_REQUEST])),
            bad(
                client.call_line(&Id::raw("null"), "echo", json!({ "text": "never" })).trim_end(),
                Unnamed(&[INVALID_REQUEST]),
            ),
        ]
    })
}

fn id_of_wrong_type(context: &mut CheckContext) -> Verdict {
    between_calls(context, |client| {
        ["1.5", "-0.5", "1e-3", "true", "false", "{}", "[]", "[1]", "{\"id\":1}"]
            .iter()
            .map(|id| {
                let line = client.request_line(&Id::raw(*id), "tools/list", json!({}));
                bad(line.trim_end(), Unnamed(&[INVALID_REQUEST]))
            })
            .collect()
    })
}

fn missing_method(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            // Without a method it may be a damaged answer, and only a request is refused under its id.
            bad("{\"jsonrpc\":\"2.0\",\"id\":49}", Unnamed(&[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\",\"id\":50,\"params\":{}}", Unnamed(&[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\",\"id\":51,\"method\":7}", Named(Id::number(51), &[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\",\"id\":52,\"method\":null}", Named(Id::number(52), &[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\",\"id\":53,\"method\":[\"ping\"]}", Named(Id::number(53), &[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\",\"params\":{}}", Unnamed(&[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"2.0\"}", Unnamed(&[INVALID_REQUEST])),
        ]
    })
}

fn params_of_wrong_shape(context: &mut CheckContext) -> Verdict {
    const WRONG: &[i64] = &[INVALID_REQUEST, INVALID_PARAMS];
    between_calls(context, |client| {
        let mut lines = Vec::new();
        for (number, params) in ["7", "\"text\"", "true", "[1,2]", "[]"].iter().enumerate() {
            let id = Id::number(60 + number as u64);
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}");
            lines.push((line.into_bytes(), Named(id, WRONG)));
        }
        let nameless = [json!({}), json!({ "name": 7 }), json!({ "name": null }), json!({ "arguments": {} })];
        for (number, params) in nameless.into_iter().enumerate() {
            let id = Id::number(70 + number as u64);
            let line = client.request_line(&id, "tools/call", params);
            lines.push((line.trim_end().as_bytes().to_vec(), Named(id, &[INVALID_PARAMS])));
        }
        let no_params = "{\"jsonrpc\":\"2.0\",\"id\":80,\"method\":\"tools/call\"}";
        lines.push(bad(no_params, Named(Id::number(80), WRONG)));
        // A notification is never answered, whatever its parameters look like.
        for params in ["[]", "{}", "{\"requestId\":{}}"] {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{params}}}");
            lines.push((line.into_bytes(), Silence));
        }
        lines
    })?;
    arguments_of_wrong_shape(context)
}

/// Arguments that a known tool cannot take: a result that a model can mend, or invalid parameters where they are no object.
fn arguments_of_wrong_shape(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for arguments in [json!({}), json!({ "a": "two", "b": 3 }), json!({ "a": 2 }), json!({ "a": null, "b": 3 })] {
        let shown = arguments.to_string();
        let id = client.call("add", arguments)?;
        let words = expect::tool_failure(&client.answer(&id)?, context.era).map_err(|failure| failure.at(&shown))?;
        ensure!(words.contains('a') || words.contains('b'), "{shown}: the message does not name the argument: {words}");
    }
    for arguments in [json!(7), json!([1, 2]), json!("text")] {
        let id = client.call("add", arguments)?;
        let answer = client.answer(&id)?;
        if matches!(answer.body, Body::Result(_)) {
            expect::tool_failure(&answer, context.era)?;
        } else {
            expect::error(&answer, &[INVALID_PARAMS])?;
        }
    }
    client.finish()?;
    Ok(())
}

fn unknown_names(context: &mut CheckContext) -> Verdict {
    between_calls(context, |client| {
        vec![
            bad(
                client.request_line(&Id::number(81), "no/such/method", json!({})).trim_end(),
                Named(Id::number(81), &[METHOD_NOT_FOUND]),
            ),
            bad(
                client.call_line(&Id::number(82), "no_such_tool", json!({})).trim_end(),
                Named(Id::number(82), &[INVALID_PARAMS]),
            ),
        ]
    })
}

fn unknown_notifications(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no_such_thing\"}", Silence),
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}", Silence),
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"panic\"}}", Silence),
            bad(
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}",
                Silence,
            ),
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}", Silence),
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}", Silence),
        ]
    })
}

/// A line that cannot be taken names a call in flight: an error under that id would be read as the call's answer.
fn id_in_flight(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let id = client.call("sleep", json!({ "ms": 300 }))?;
    client.round_trip()?;
    let start = client.place();
    let mut sent = 0;
    for rest in ["\"method\":\"tools/call\",\"params\":{", "\"method\":7}", "\"params\":{}}", "\"method\":\"\u{0}\"}"] {
        client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}\n"))?;
        sent += 1;
    }
    let (end, _) = client.round_trip()?;
    let came = client.between(start, end);
    ensure!(came.len() == sent, "{sent} bad lines, {} errors: {}", came.len(), openings(&came));
    for message in &came {
        expect::error(message, &[PARSE_ERROR, INVALID_REQUEST])?;
        expect::unnamed(message, context.era.writes_null_id())?;
    }
    client.text(&id)?;
    client.finish()?;
    Ok(())
}

/// Bad lines and calls in one stream, cut into two writes anywhere.
fn storm(context: &mut CheckContext) -> Verdict {
    let bad: &[&[u8]] = &[
        b"\xff\xfe",
        b"{",
        b"{\"hello\":1}",
        b"\0\0\0",
        b"[]",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"tools/list\"}",
        b"\"\xc3\x28\"",
    ];
    let mut client = context.open()?;
    let mut calls = Vec::new();
    let mut errors = 0;
    context.race(|context| {
        let mut bytes = Vec::new();
        for _ in 0..4 {
            let id = client.fresh_id();
            client.count(&id);
            let ms = context.random.below(3);
            bytes.extend_from_slice(client.call_line(&id, "sleep", json!({ "ms": ms })).as_bytes());
            calls.push(id);
            bytes.extend_from_slice(bad[context.random.place(bad.len())]);
            bytes.extend_from_slice(if context.random.coin() { b"\n" } else { b"\r\n\n" });
            errors += 1;
        }
        let cut = context.random.place(bytes.len());
        client.send(&bytes[..cut])?;
        context.random.pause(300);
        client.send(&bytes[cut..])
    })?;
    for id in &calls {
        client.text(id)?;
    }
    let transcript = &client.server.output.transcript;
    let count = |seen: &crate::process::output::TranscriptState| {
        seen.messages.iter().filter(|line| line.is_unnamed_error()).count()
    };
    let all = transcript.wait(CHECK_TIMEOUT, |seen| (seen.messages.len() >= calls.len() + errors).then(|| count(seen)));
    ensure!(all == Some(errors), "{errors} bad lines, {all:?} errors");
    client.finish()?;
    let after = count(&client.server.output.transcript.state());
    ensure!(after == errors, "{errors} bad lines, {after} errors");
    Ok(())
}
