//! HTTP responses that are not a JSON-RPC response: statuses, shapes, content types, endless bodies.

use serde_json::json;

use super::http_server_dies::start;
use super::raw_server::{Connection, EVENTS, RawServer, ReceivedRequest, response, text};
use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::CLIENT_PEAK_KIB;
use crate::process::memory::Memory;
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_bad_answers",
    fault: "responses with every kind of status, of wrong kinds and shapes, with another id, twice, of garbage, without an end",
    must: "4xx is Refused, everything else that is no answer is Unknown; bodies are read up to a bound; other calls work",
    checks: &[
        Check::new("statuses", Era::BOTH, statuses),
        Check::new("bodies", Era::BOTH, bodies),
        Check::new("events", Era::BOTH, events),
        Check::new("without_an_end", Era::BOTH, endless),
        Check::new("the_session_is_gone", Era::HANDSHAKE, session_gone),
    ],
};

fn respond(request: &ReceivedRequest, connection: &mut Connection) {
    let text = |name: &str| request.argument(name).as_str().unwrap_or_default();
    let body: Vec<u8> = text("body").replace('@', &request.body["id"].to_string()).chars().map(byte).collect();
    if request.argument("events") == true {
        connection.write(EVENTS.as_bytes());
        connection.write(&body);
        return connection.close();
    }
    let status = request.argument("status").as_str().unwrap_or("200 OK");
    let kind = request.argument("kind").as_str().unwrap_or("application/json");
    connection.write(&response(status, &[("content-type", kind)], &body));
    connection.keep();
}

/// Characters up to U+00FF stand for one byte each.
fn byte(letter: char) -> u8 {
    u8::try_from(u32::from(letter)).unwrap_or(b'?')
}

fn statuses(context: &mut CheckContext) -> Verdict {
    const ROWS: [(&str, &str); 16] = [
        ("200 OK", "Unknown"),
        ("201 Created", "Unknown"),
        ("202 Accepted", "Unknown"),
        ("204 No Content", "Unknown"),
        ("304 Not Modified", "Unknown"),
        ("400 Bad Request", "Refused"),
        ("402 Payment Required", "Refused"),
        ("405 Method Not Allowed", "Refused"),
        ("408 Request Timeout", "Refused"),
        ("413 Content Too Large", "Refused"),
        ("429 Too Many Requests", "Refused"),
        ("500 Internal Server Error", "Unknown"),
        ("502 Bad Gateway", "Unknown"),
        ("503 Service Unavailable", "Unknown"),
        ("504 Gateway Timeout", "Unknown"),
        ("599 Unheard Of", "Unknown"),
    ];
    let server = RawServer::open(context.era, respond)?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (status, outcome) in ROWS {
        let call = client.call(&name, "respond", json!({ "status": status }))?;
        let ended = client.ended(&call)?;
        ensure!(ended.ends == outcome, "{status}: expected {outcome}, {ended}");
        ensure!(server.count(&call) == 1, "{status}: it came {} times", server.count(&call));
        client.works(&name)?;
    }
    client.finish(context)
}

fn bodies(context: &mut CheckContext) -> Verdict {
    let good = format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{}}}", text(context.era.is_stateless(), "good"));
    let rows = [
        ("<html>hello</html>", "text/html", "Unknown"),
        ("<html>hello</html>", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":\"\u{ff}\"}}", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"@\",\"result\":{}}", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}", "application/json", "Unknown"),
        ("[]", "application/json", "Unknown"),
        ("{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":7,\"message\":\"no\"}}", "application/json", "Refused"),
        ("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":7,\"message\":\"no\"}}", "application/json", "Refused"),
        (good.as_str(), "application/json; charset=utf-8", "Done"),
    ];
    let server = RawServer::open(context.era, respond)?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (body, kind, outcome) in rows {
        let call = client.call(&name, "respond", json!({ "body": body, "kind": kind }))?;
        let ended = client.ended(&call)?;
        ensure!(ended.ends == outcome, "{body} as {kind}: expected {outcome}, {ended}");
        client.works(&name)?;
    }
    client.finish(context)
}

fn events(context: &mut CheckContext) -> Verdict {
    let good = format!("{{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{}}}", text(context.era.is_stateless(), "good"));
    let stray = "{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}";
    let rows = [
        (format!("data: {good}\n\ndata: {good}\n\n"), "Done"),
        (format!("data: {stray}\n\ndata: {good}\n\n"), "Done"),
        (format!("data: garbage\n\ndata: \u{ff}\u{fe}\n\nnonsense\n\n: comment\n\ndata: {good}\n\n"), "Done"),
        (format!("\u{ef}\u{bb}\u{bf}data: {good}\r\n\r\n"), "Done"),
        (format!("event: other\ndata: {good}\n\n"), "Unknown"),
        (format!("data: {stray}\n\n"), "Unknown"),
        ("data: garbage\n\n".to_owned(), "Unknown"),
        (String::new(), "Unknown"),
        (format!("data: {good}"), "Unknown"),
    ];
    let server = RawServer::open(context.era, respond)?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (body, outcome) in rows {
        let call = client.call(&name, "respond", json!({ "body": body, "events": true }))?;
        let ended = client.ended(&call)?;
        ensure!(ended.ends == outcome, "{body:?}: expected {outcome}, {ended}");
        client.works(&name)?;
    }
    client.finish(context)
}

/// 64 MiB where 16 are taken: in a body, in an event, in a comment that never ends.
fn endless(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |request, connection| {
        let front = match request.argument("way").as_str() {
            Some("event") => format!("{EVENTS}data: "),
            Some("comment") => format!("{EVENTS}: "),
            Some("id") => format!("{EVENTS}id: "),
            Some("error") => "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\r\n\"".to_owned(),
            _ => "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\"".to_owned(),
        };
        connection.write(front.as_bytes());
        let much = vec![b'x'; 64 * 1024];
        for _ in 0..64 * 16 {
            if !connection.write(&much) {
                return;
            }
        }
        connection.close();
    })?;
    let mut client = start(context, &server)?;
    let before = client.baseline()?.resident;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (way, outcome) in
        [("body", "Unknown"), ("event", "Unknown"), ("comment", "Unknown"), ("id", "Unknown"), ("error", "Refused")]
    {
        let call = client.call(&name, "endless", json!({ "way": way }))?;
        let ended = client.ended(&call)?;
        ensure!(ended.ends == outcome, "{way}: expected {outcome}, {ended}");
        client.works(&name)?;
    }
    let peak = Memory::of(client.process())?.peak.saturating_sub(before);
    context.note_memory("peak", peak);
    ensure!(peak <= CLIENT_PEAK_KIB, "a peak of {peak} KiB, the bound is {CLIENT_PEAK_KIB} KiB");
    client.finish(context)
}

/// A session that the server does not know: nothing was begun, and everything ends.
fn session_gone(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |_, connection| {
        connection.write(&response("404 Not Found", &[], b""));
        connection.keep();
    })?;
    let mut client = start(context, &server)?;
    for _ in 0..2 {
        let name = client.connect_to(&server.url(), &json!({}))?;
        client.works(&name)?;
        let call = client.call(&name, "any", json!({}))?;
        client.ended(&call)?.is("NotSent", &["Transport"])?;
        client.gone(&name)?;
        client.is_over(&name)?;
        client.close(&name)?;
    }
    client.finish(context)
}
