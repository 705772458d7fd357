//! Lines that are not JSON-RPC: bytes, text and nesting.

use serde_json::json;

use super::Expected::{Named, Silence, Unnamed};
use super::{bad, between_calls};
use crate::check_context::CheckContext;
use crate::client::expect::{INVALID_REQUEST, PARSE_ERROR};
use crate::client::message::Id;
use crate::failure::{Verdict, ensure};

pub(super) fn invalid_utf8(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            bad(b"\xff\xfe\xfd", Unnamed(&[PARSE_ERROR])),
            bad(b"\xc3", Unnamed(&[PARSE_ERROR])),
            bad(b"{\"jsonrpc\":\"2.0\",\"method\xff\":1}", Unnamed(&[PARSE_ERROR])),
            bad(b"\xef\xbb\xbf\xff", Unnamed(&[PARSE_ERROR])),
        ]
    })
}

pub(super) fn malformed_json(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            bad("{", Unnamed(&[PARSE_ERROR])),
            bad("this is not JSON", Unnamed(&[PARSE_ERROR])),
            bad("{\"jsonrpc\":\"2.0\",", Unnamed(&[PARSE_ERROR])),
            bad("{'jsonrpc':'2.0'}", Unnamed(&[PARSE_ERROR])),
            bad("}{", Unnamed(&[PARSE_ERROR])),
            bad("\"no end", Unnamed(&[PARSE_ERROR])),
            bad("[1,", Unnamed(&[PARSE_ERROR])),
            bad("{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\"id\":}", Unnamed(&[PARSE_ERROR])),
            // The id stands before the fault: it can be read, so the refusal is under it.
            bad(
                "{\"jsonrpc\":\"2.0\",\"id\":41,\"method\":\"tools/call\",\"params\":{",
                Named(Id::number(41), &[PARSE_ERROR]),
            ),
            bad(
                "{\"jsonrpc\":\"2.0\",\"id\":\"fortytwo\",\"method\":\"tools/call\",\"params\":{\"name\":nope}}",
                Named(Id::string("fortytwo"), &[PARSE_ERROR]),
            ),
            bad(
                "{\"jsonrpc\":\"2.0\",\"id\":43,\"method\":\"tools/list\"} trailing",
                Named(Id::number(43), &[PARSE_ERROR]),
            ),
        ]
    })
}

pub(super) fn not_json_rpc(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            bad("{\"hello\":\"world\"}", Unnamed(&[INVALID_REQUEST])),
            bad("{}", Unnamed(&[INVALID_REQUEST])),
            bad("42", Unnamed(&[INVALID_REQUEST])),
            bad("\"text\"", Unnamed(&[INVALID_REQUEST])),
            bad("null", Unnamed(&[INVALID_REQUEST])),
            bad("true", Unnamed(&[INVALID_REQUEST])),
            bad("{\"jsonrpc\":\"1.0\",\"id\":44,\"method\":\"tools/list\"}", Named(Id::number(44), &[INVALID_REQUEST])),
            bad("{\"jsonrpc\":2.0,\"id\":45,\"method\":\"tools/list\"}", Named(Id::number(45), &[INVALID_REQUEST])),
            bad("{\"id\":46,\"method\":\"tools/list\"}", Named(Id::number(46), &[INVALID_REQUEST])),
        ]
    })
}

pub(super) fn nul_bytes(context: &mut CheckContext) -> Verdict {
    between_calls(context, |client| {
        let inside = client.call_line(&Id::number(47), "echo", json!({ "text": "NUL" })).trim_end().to_owned();
        vec![
            bad([0; 1], Unnamed(&[PARSE_ERROR])),
            bad([0; 1000], Unnamed(&[PARSE_ERROR])),
            bad(inside.replace("NUL", "a\0b"), Named(Id::number(47), &[PARSE_ERROR])),
        ]
    })
}

pub(super) fn blank_lines(context: &mut CheckContext) -> Verdict {
    between_calls(context, |_| {
        vec![
            bad("", Silence),
            bad("\r", Silence),
            bad("\n\n\n\r\n\r\n", Silence),
            bad("   ", Silence),
            bad(" \t \r", Silence),
            bad("\n".repeat(10_000), Silence),
        ]
    })?;
    // A line may end as it does on other systems.
    let mut client = context.open()?;
    let id = client.fresh_id();
    let line = client.call_line(&id, "add", json!({ "a": 2, "b": 3 })).replace('\n', "\r\n");
    client.send_request(&id, &line)?;
    ensure!(client.text(&id)? == "5", "a call that ends with CRLF");
    client.finish()?;
    Ok(())
}

pub(super) fn nesting(context: &mut CheckContext) -> Verdict {
    const DEEP: usize = 100_000;
    const EITHER: &[i64] = &[PARSE_ERROR, INVALID_REQUEST];
    between_calls(context, |_| {
        let objects = "{\"a\":".repeat(DEEP) + "1" + &"}".repeat(DEEP);
        vec![
            bad("[".repeat(DEEP) + &"]".repeat(DEEP), Unnamed(EITHER)),
            bad("[".repeat(DEEP), Unnamed(EITHER)),
            bad(&objects, Unnamed(EITHER)),
            bad(
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nothing\",\"params\":{objects}}}"),
                Unnamed(EITHER),
            ),
        ]
    })
}
