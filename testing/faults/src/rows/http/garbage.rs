//! Invalid requests: bytes, heads and bodies of every kind.

use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, answer};
use super::wire::Request;
use crate::check_context::CheckContext;
use crate::client::expect;
use crate::client::message::{Body, Message};
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{FRAME_LIMIT, LONG_LINE_KIB};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "http_garbage",
    fault: "bytes that are no HTTP; heads without end; bodies that are no JSON, too long, too deep, cut or lied about; other \
            methods, types and paths; random damage",
    must: "a status that says whose fault it is, or the end of that connection; everybody else is served, memory stays flat",
    checks: &[
        Check::new("not_http", Era::STATELESS, not_http),
        Check::new("heads", Era::STATELESS, heads),
        Check::new("bodies", Era::BOTH, bodies),
        Check::new("body_over_the_limit", Era::BOTH, over_the_limit),
        Check::new("types_methods_and_paths", Era::BOTH, types_methods_and_paths),
        Check::new("random_damage", Era::BOTH, random_damage),
    ],
};

/// The connection is given an answer of that kind, or closed.
fn refused(server: &ReferenceServer, bytes: &[u8], what: &str) -> Verdict {
    let mut wire = server.connect()?;
    wire.write_regardless(bytes);
    let head = wire.maybe_head().map_err(|failure| failure.at(what))?;
    if let Some(head) = &head {
        ensure!((400..600).contains(&head.status), "{what} was answered with {}", head.status);
    }
    server.alive().map_err(|failure| failure.at(what))
}

fn not_http(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let mut random = vec![0; 4_096];
    random.fill_with(|| u8::try_from(context.random.below(256)).unwrap_or(0));
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a hello of another protocol \x13\x01\r\n\r\n";
    let cases: [(&str, &[u8]); 8] = [
        ("random bytes", &random),
        ("zeros", &[0; 4_096]),
        ("TLS", hello),
        ("JSON without HTTP", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\r\n"),
        ("a version of the future", b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n"),
        ("no version", b"GET /mcp\r\n\r\n"),
        (
            "HTTP/2 and then garbage",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        ("a response", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    for (what, bytes) in cases {
        // Whatever it is answered, in whatever protocol: then the connection is over.
        let mut wire = server.connect()?;
        wire.write_regardless(bytes);
        wire.closed().map_err(|failure| failure.at(what))?;
        server.alive().map_err(|failure| failure.at(what))?;
    }
    server.finish().map(drop)
}

fn heads(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let before = server.server.memory()?.resident;
    let start = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", server.address);
    let long = "x".repeat(1 << 20);
    let many = "X-Many: y\r\n".repeat(5_000);
    for (what, bytes) in [
        ("a header of a megabyte", format!("{start}X-Long: {long}\r\n\r\n")),
        ("a name of a megabyte", format!("{start}{long}: y\r\n\r\n")),
        ("a target of a megabyte", format!("GET /{long} HTTP/1.1\r\n\r\n")),
        ("5,000 headers", format!("{start}{many}\r\n")),
        ("a name with a space", format!("{start}X Y: z\r\n\r\n")),
        ("no name", format!("{start}: z\r\n\r\n")),
        ("no colon", format!("{start}nothing\r\n\r\n")),
        ("a NUL in a value", format!("{start}X: a\0b\r\n\r\n")),
        ("a length that is no number", format!("{start}Content-Length: many\r\n\r\n")),
        ("a negative length", format!("{start}Content-Length: -1\r\n\r\n")),
        ("a length beyond any number", format!("{start}Content-Length: 99999999999999999999999\r\n\r\n")),
        ("an unknown encoding", format!("{start}Transfer-Encoding: gzip\r\n\r\n")),
    ] {
        refused(&server, bytes.as_bytes(), what)?;
    }
    let growth = server.server.memory()?.resident.saturating_sub(before);
    context.note_memory("grown by", growth);
    ensure!(growth < LONG_LINE_KIB, "heads of megabytes were kept: {growth} KiB");
    server.finish().map(drop)
}

/// The error for a body. It has to be in the response, as JSON.
fn answered_error(session: &HttpSession<'_>, request: &Request, what: &str) -> Verdict<Message> {
    let (head, mut wire) = session.server.send(request).map_err(|failure| failure.at(what))?;
    ensure!((400..500).contains(&head.status), "{what} was answered with {}", head.status);
    let message = Message::parse(&wire.body()?);
    ensure!(matches!(message.body, Body::Error(_)), "{what}: {}", message.opening);
    Ok(message)
}

fn bodies(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}", "[".repeat(100_000));
    let bodies: [(&str, &[u8]); 14] = [
        ("nothing", b""),
        ("a space", b" "),
        ("half a message", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth"),
        ("two messages", b"{\"jsonrpc\":\"2.0\",\"method\":\"a\"}{\"jsonrpc\":\"2.0\",\"method\":\"b\"}"),
        ("no UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}"),
        ("a number", b"7"),
        ("null", b"null"),
        ("a string", b"\"ping\""),
        ("an empty object", b"{}"),
        ("an array of nothing", b"[]"),
        ("another JSON-RPC", b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}"),
        ("an invalid id", b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"),
        ("a member twice", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}"),
        ("100,000 levels", deep.as_bytes()),
    ];
    for (what, body) in bodies {
        let request = session.post(body).with("Mcp-Method", "ping");
        answered_error(&session, &request, what)?;
        session.round_trip().map_err(|failure| failure.at(what))?;
        let mut wire = server.connect()?;
        wire.write(&request.replacing("Transfer-Encoding", "chunked").head())?;
        wire.write_regardless(b"zz\r\nnot a chunk\r\n\r\n");
        let head = wire.maybe_head()?;
        ensure!(head.is_none_or(|head| head.status == 400), "bad chunks were taken");
    }
    server.finish().map(drop)
}

/// Refused as soon as it is known, and not read to the end into memory.
fn over_the_limit(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    session.round_trip()?;
    let idle = server.server.memory()?.resident;
    // Said in advance: nothing of it need be sent.
    let request = session.post("").with("Content-Length", &(4 * FRAME_LIMIT).to_string());
    let mut wire = server.connect()?;
    wire.write(&request.head())?;
    let status = wire.head()?.status;
    ensure!(status == 413, "a body of 64 MiB was answered with {status}");
    // Found out on the way.
    let mut wire = server.connect()?;
    wire.write(&session.post("").with("Transfer-Encoding", "chunked").head())?;
    let chunk = vec![b' '; 1 << 20];
    for _ in 0..64 {
        wire.write_regardless(b"100000\r\n");
        wire.write_regardless(&chunk);
        wire.write_regardless(b"\r\n");
    }
    if let Some(head) = wire.maybe_head()? {
        ensure!(head.status == 413, "64 MiB in chunks were answered with {}", head.status);
    }
    let peak = server.server.memory()?.peak.saturating_sub(idle);
    context.note_memory("peak over idle", peak);
    ensure!(peak < LONG_LINE_KIB, "64 MiB were read into memory: {peak} KiB");
    server.finish().map(drop)
}

fn types_methods_and_paths(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let good = session.ask(&server.fresh_id(), "tools/list", json!({}));
    for kind in ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let status = server.status(&good.clone().replacing("Content-Type", kind))?;
        ensure!(status == 415, "a body of type {kind:?} was answered with {status}");
    }
    let status = server.status(&good.clone().without("Content-Type"))?;
    ensure!(status == 415, "a body without a type was answered with {status}");
    for accept in ["text/html", "application/json", "text/event-stream", "application/json;q=0, text/event-stream", ""]
    {
        let status = server.status(&good.clone().replacing("Accept", accept))?;
        ensure!(status == 406, "Accept {accept:?} was answered with {status}");
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "post"] {
        let status = server.status(&session.request(method))?;
        ensure!(status == 405, "{method} was answered with {status}");
    }
    for target in ["/", "/mcp/", "/mcp/..", "/MCP", "//mcp", "/mcp%00", "/mc"] {
        let status = server.status(&Request { target: target.to_owned(), ..good.clone() })?;
        ensure!(status == 404, "{target} was answered with {status}");
    }
    let id = server.fresh_id();
    let request = Request { target: "/mcp?a=b".to_owned(), ..session.ask(&id, "tools/list", json!({})) };
    let (head, mut wire) = server.send(&request)?;
    expect::result(&answer(&head, &mut wire, &id)?)?;
    server.finish().map(drop)
}

/// A good request with one to four bytes changed, put in or left out. What it comes to is its own affair.
fn random_damage(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let (mut served, mut refused, mut closed) = (0, 0, 0);
    context.race(|context| {
        let mut bytes = session.call(&server.fresh_id(), "echo", json!({ "text": "x" })).bytes();
        for _ in 0..=context.random.below(3) {
            let place = context.random.place(bytes.len());
            let byte = u8::try_from(context.random.below(256)).unwrap_or(0);
            match context.random.below(3) {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => drop(bytes.remove(place)),
            }
        }
        let mut wire = server.connect()?;
        wire.write_regardless(&bytes);
        // Damage may have made it longer than it is: then it has an end here.
        wire.stop_writing()?;
        match wire.maybe_head()? {
            Some(head) if head.status < 400 => served += 1,
            Some(_) => refused += 1,
            None => closed += 1,
        }
        Ok(())
    })?;
    session.round_trip()?;
    context.note(format!("{served} served, {refused} refused, {closed} closed"));
    server.finish().map(drop)
}
