//! Handshakes: missing, repeated, or with an unknown revision.

use serde_json::{Value, json};

use crate::check_context::CheckContext;
use crate::client::expect::{
    self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_VERSION,
};
use crate::client::message::{Id, Message};
use crate::client::{CAPABILITIES_KEY, Client, VERSION_KEY, initialize_line, initialized_line, stateless_meta};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "handshake",
    fault: "request before the handshake; handshake twice; unsupported revision",
    must: "the specified answer",
    checks: &[
        Check::new("request_before_it", Era::HANDSHAKE, request_before),
        Check::new("ping_before_it", Era::HANDSHAKE, ping_before),
        Check::new("bad_bytes_before_it", Era::BOTH, bad_bytes_before),
        Check::new("notifications_before_it", Era::BOTH, notifications_before),
        Check::new("bad_initialize_then_a_good_one", Era::HANDSHAKE, bad_initialize),
        Check::new("call_between_answer_and_initialized", Era::HANDSHAKE, before_initialized),
        Check::new("call_in_one_write_with_initialize", Era::LEGACY, pipelined),
        Check::new("twice", Era::LEGACY, twice),
        Check::new("each_revision_is_agreed", Era::LEGACY, each_revision),
        Check::new("unknown_revision_in_initialize", Era::HANDSHAKE, unknown_in_initialize),
        Check::new("unsupported_revision_in_meta", Era::STATELESS, unsupported_in_meta),
        Check::new("incomplete_meta", Era::STATELESS, incomplete_meta),
        Check::new("discover", Era::STATELESS, discover),
        Check::new("methods_of_the_other_era", Era::BOTH, methods_of_other_era),
        Check::new("both_eras_on_one_connection", Era::HANDSHAKE, both_eras),
    ],
};

fn plain_request(id: &Id, method: &str, params: Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

/// Sends one request as it is and gives its answer.
fn ask(client: &mut Client, method: &str, params: Value) -> Verdict<Message> {
    let id = client.fresh_id();
    client.send_request(&id, &plain_request(&id, method, params))?;
    client.answer(&id)
}

fn start(context: &mut CheckContext) -> Verdict<Client> {
    let launch = context.launch();
    context.start(&launch)
}

fn request_before(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "echo", "arguments": { "text": "early" } })),
        ("tools/call", json!({ "name": "echo", "arguments": { "text": "early" }, "_meta": { "progressToken": 1 } })),
    ] {
        let answer = ask(&mut client, method, params)?;
        let error = expect::error(&answer, &[INVALID_PARAMS])?;
        let words = &error.message;
        ensure!(words.contains("initialize"), "the message does not name initialize: {words}");
        ensure!(
            words.contains("_meta") || words.contains(VERSION_KEY) || words.contains("2026-07-28"),
            "the message does not name the stateless way: {words}"
        );
    }
    client.open()?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn ping_before(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    let answer = ask(&mut client, "ping", json!({}))?;
    expect::result(&answer)?;
    client.open()?;
    let answer = ask(&mut client, "ping", json!({}))?;
    expect::result(&answer)?;
    client.finish()?;
    Ok(())
}

/// The revision is not negotiated yet: the id is null, which every one of them can read.
fn bad_bytes_before(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    let lines: &[(&[u8], i64)] = &[
        (b"\xff\xfe", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (b"{\"hello\":1}", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
    ];
    for (line, _) in lines {
        client.send([line, b"\n".as_slice()].concat())?;
    }
    client.open()?;
    let came = client.between(0, lines.len());
    ensure!(came.len() == lines.len(), "{} lines for {} bad ones", came.len(), lines.len());
    for (message, (_, code)) in came.iter().zip(lines) {
        expect::error(message, &[*code])?;
        expect::unnamed(message, true)?;
    }
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn notifications_before(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    client.send(initialized_line())?;
    client.send(crate::client::cancel_line(&Id::number(1)))?;
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n")?;
    client.open()?;
    client.round_trip()?;
    ensure!(client.place() == 2, "the server answered a notification");
    client.finish()?;
    Ok(())
}

fn bad_initialize(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    for params in [json!({}), json!({ "protocolVersion": 7, "capabilities": {}, "clientInfo": {} })] {
        let answer = ask(&mut client, "initialize", params)?;
        expect::error(&answer, &[INVALID_PARAMS])?;
    }
    client.open()?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn before_initialized(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    let id = client.fresh_id();
    client.send_request(&id, &initialize_line(&id, context.era.revision()))?;
    expect::result(&client.answer(&id)?)?;
    client.round_trip()?;
    client.send(initialized_line())?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn pipelined(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    let (opening, call) = (client.fresh_id(), client.fresh_id());
    client.count(&opening);
    client.count(&call);
    let lines = initialize_line(&opening, context.era.revision())
        + &initialized_line()
        + &client.call_line(&call, "add", json!({ "a": 2, "b": 3 }));
    client.send(lines)?;
    ensure!(client.text(&call)? == "5", "2 + 3");
    ensure!(client.answer_place(&opening)? == 0, "the answer to initialize is not the first line");
    client.finish()?;
    Ok(())
}

/// The second is refused under its id, and what the first agreed still holds.
fn twice(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let flying = client.call("sleep", json!({ "ms": 100 }))?;
    for revision in ["2025-11-25", "2024-11-05", "1999-01-01"] {
        let id = client.fresh_id();
        client.send_request(&id, &initialize_line(&id, revision))?;
        expect::error(&client.answer(&id)?, &[INVALID_REQUEST])?;
    }
    client.text(&flying)?;
    client.round_trip()?;
    let start = client.place();
    client.send("{\n")?;
    let (end, _) = client.round_trip()?;
    for message in client.between(start, end) {
        expect::unnamed(&message, context.era.writes_null_id())?;
    }
    client.finish()?;
    Ok(())
}

fn each_revision(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn unknown_in_initialize(context: &mut CheckContext) -> Verdict {
    for revision in ["1999-01-01", "2026-07-28", "2030-01-01", "", "newest"] {
        let mut client = start(context)?;
        let id = client.fresh_id();
        client.send_request(&id, &initialize_line(&id, revision))?;
        let answer = client.answer(&id)?;
        let agreed = expect::result(&answer)?.get("protocolVersion").and_then(Value::as_str);
        ensure!(agreed == Some("2025-11-25"), "asked for {revision:?}, got {agreed:?}");
        client.send(initialized_line())?;
        client.round_trip()?;
        client.finish()?;
    }
    Ok(())
}

fn unsupported_in_meta(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    // The older ones are known, but not in this form.
    for revision in ["1900-01-01", "2030-01-01", "", "2025-11-25", "2024-11-05"] {
        for method in ["server/discover", "tools/list", "tools/call"] {
            let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": stateless_meta(revision) });
            let answer = ask(&mut client, method, params)?;
            let error = expect::error(&answer, &[UNSUPPORTED_VERSION])?;
            let requested = error.data.get("requested").and_then(Value::as_str);
            ensure!(requested == Some(revision), "requested {revision:?}, data says {requested:?}");
            let supported = error.data.get("supported").and_then(Value::as_array).cloned().unwrap_or_default();
            ensure!(supported.contains(&json!("2026-07-28")), "data.supported is {supported:?}");
        }
    }
    client.open()?;
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn incomplete_meta(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let mut without_capabilities = stateless_meta("2026-07-28");
    if let Some(meta) = without_capabilities.as_object_mut() {
        meta.remove(CAPABILITIES_KEY);
    }
    let mut capabilities_of_wrong_shape = stateless_meta("2026-07-28");
    capabilities_of_wrong_shape[CAPABILITIES_KEY] = json!("all");
    let mut version_of_wrong_shape = stateless_meta("2026-07-28");
    version_of_wrong_shape[VERSION_KEY] = json!(20_260_728);
    // Without any version it has neither form: there was no handshake.
    for meta in [without_capabilities, capabilities_of_wrong_shape, version_of_wrong_shape, json!({}), json!(7)] {
        let shown = meta.to_string();
        let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta });
        let answer = ask(&mut client, "tools/call", params)?;
        expect::error(&answer, &[INVALID_PARAMS]).map_err(|failure| failure.at(shown))?;
    }
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

fn discover(context: &mut CheckContext) -> Verdict {
    let mut client = start(context)?;
    let answer = ask(&mut client, "server/discover", json!({ "_meta": stateless_meta("2026-07-28") }))?;
    let result = expect::result(&answer)?;
    ensure!(result.get("resultType") == Some(&json!("complete")), "resultType: {}", answer.opening);
    ensure!(result.get("supportedVersions") == Some(&json!(["2026-07-28"])), "supportedVersions: {}", answer.opening);
    for member in ["capabilities", "ttlMs", "cacheScope"] {
        ensure!(result.get(member).is_some(), "no {member}: {}", answer.opening);
    }
    client.finish()?;
    Ok(())
}

/// The table of methods is the only gate: what a revision does not have does not exist there.
fn methods_of_other_era(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    let foreign: &[&str] = if context.era.is_stateless() {
        &["ping", "logging/setLevel", "resources/subscribe"]
    } else {
        &["server/discover", "subscriptions/listen"]
    };
    for method in foreign {
        let id = client.fresh_id();
        let line = client.request_line(&id, method, json!({}));
        client.send_request(&id, &line)?;
        expect::error(&client.answer(&id)?, &[METHOD_NOT_FOUND]).map_err(|failure| failure.at(method))?;
    }
    client.round_trip()?;
    client.finish()?;
    Ok(())
}

/// Each request is answered in the form in which it was asked.
fn both_eras(context: &mut CheckContext) -> Verdict {
    let mut client = context.open()?;
    for _ in 0..20 {
        client.era = Era::V2026_07_28;
        client.round_trip()?;
        client.era = Era::V2025_11_25;
        client.round_trip()?;
    }
    client.finish()?;
    Ok(())
}
