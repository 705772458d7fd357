//! Ambiguous heads, which two readers parse differently; and foreign hosts and origins.

use serde_json::json;

use super::reference_server::{HttpSession, ReferenceServer, answer};
use super::wire::Request;
use crate::check_context::CheckContext;
use crate::client::expect;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::LONG_MS;
use crate::table::{Check, Row};

pub(crate) static SMUGGLING: Row = Row {
    name: "http_header_smuggling",
    fault: "headers that are there twice, folded, at odds with the body or with each other; two lengths; a length and chunks; \
            a second request in the body of the first",
    must: "4xx or the end of the connection; never two readings of one request, no handler runs without a request",
    checks: &[
        Check::new("two_ends_of_a_body", Era::BOTH, two_ends),
        Check::new("folded", Era::BOTH, folded),
        Check::new("twice", Era::BOTH, twice),
        Check::new("at_odds_with_the_body", Era::STATELESS, at_odds),
        Check::new("session_of_another_revision", Era::HANDSHAKE, other_revision),
    ],
};

pub(crate) static GUARD: Row = Row {
    name: "http_host_and_origin",
    fault: "a Host that is not this machine, none, or two; an Origin of a page elsewhere, two, or null",
    must: "403 (or 400) before anything is read, in every method; pages and names of this machine are let in",
    checks: &[Check::new("host", Era::BOTH, host), Check::new("origin", Era::BOTH, origin)],
};

/// Refused, or the connection closed: and the request hidden after it is not served.
fn refused(server: &ReferenceServer, bytes: &[u8], what: &str) -> Verdict {
    let mut wire = server.connect()?;
    wire.write_regardless(bytes);
    if let Some(head) = wire.maybe_head()? {
        ensure!((400..500).contains(&head.status), "{what} was answered with {}", head.status);
        wire.body()?;
        wire.stop_writing()?;
        let second = wire.maybe_head()?;
        ensure!(second.is_none_or(|head| head.status >= 400), "{what}: what was hidden behind it was served");
    }
    server.alive().map_err(|failure| failure.at(what))
}

fn two_ends(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    // It must never run: the end of the server would wait for it.
    let hidden = session.call(&server.fresh_id(), "sleep", json!({ "ms": LONG_MS })).bytes();
    let good = session.ask(&server.fresh_id(), "tools/list", json!({}));
    let length = good.body.len().to_string();
    let more = (good.body.len() + 5).to_string();
    let both = [("Content-Length", &*length), ("Content-Length", &more)];
    let mut cases = vec![
        ("two lengths", with(&good, &both)),
        ("two lengths in one line", with(&good, &[("Content-Length", &format!("{length}, {more}"))])),
        ("a length with a sign", with(&good, &[("Content-Length", &format!("+{length}"))])),
        ("a length in hexadecimal", with(&good, &[("Content-Length", "0x10")])),
        ("chunks that are not the last encoding", with(&good, &[("Transfer-Encoding", "chunked, identity")])),
        ("an encoding with a tail", with(&good, &[("Transfer-Encoding", "chunkedx")])),
    ];
    // A length and chunks: the specification of HTTP lets a server go by the chunks, if it closes the connection then.
    let mut chunked = with(&good, &[("Content-Length", &length), ("Transfer-Encoding", "chunked")]);
    chunked.body = b"0\r\n\r\n".to_vec();
    cases.push(("a length and chunks", chunked));
    for (what, request) in cases {
        let mut bytes = request.bytes();
        bytes.extend_from_slice(&hidden);
        refused(&server, &bytes, what)?;
    }
    server.finish().map(drop)
}

fn with(request: &Request, headers: &[(&str, &str)]) -> Request {
    headers.iter().fold(request.clone(), |request, (name, value)| request.with(name, value))
}

/// A line that begins with a space went on from the one before, once. No reader may see one header where another sees two.
fn folded(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let good = session.ask(&server.fresh_id(), "tools/list", json!({}));
    for name in ["Host", "Mcp-Session-Id", "Content-Length", "MCP-Protocol-Version", "X-Anything"] {
        for fold in ["\r\n ", "\r\n\t", "\n ", "\r"] {
            let value = good.headers.iter().find(|(known, _)| known == name).map_or("1", |(_, value)| value);
            let bytes = good.clone().replacing(name, &format!("{value}{fold}{value}")).bytes();
            refused(&server, &bytes, &format!("{name} folded with {fold:?}"))?;
        }
    }
    // A space before the colon is another way to hide a name.
    let bytes = good.clone().with("Content-Length ", "3").bytes();
    refused(&server, &bytes, "a space before the colon")?;
    server.finish().map(drop)
}

/// A header given twice means two things to two readers that each use only one of them.
fn twice(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let (session, other) = (server.session()?, server.session()?);
    let id = server.fresh_id();
    let good = session.call(&id, "echo", json!({ "text": "x" }));
    for (name, value) in good.headers.clone() {
        if ["Accept", "Content-Type"].contains(&&*name) {
            continue;
        }
        let different = match (&other.id, &*name) {
            (Some(session), "Mcp-Session-Id") => session.clone(),
            _ => format!("{value}x"),
        };
        for second in [value.clone(), different] {
            let status = server.status(&good.clone().with(&name, &second))?;
            ensure!([400, 403].contains(&status), "{name} twice was answered with {status}");
        }
    }
    let (head, mut wire) = server.send(&good)?;
    expect::text(&answer(&head, &mut wire, &id)?, server.era)?;
    server.finish().map(drop)
}

/// What the headers mirror is what the body says, or nothing is done.
fn at_odds(context: &mut CheckContext) -> Verdict {
    const HEADER_MISMATCH: i64 = -32020;
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let id = server.fresh_id();
    let good = session.call(&id, "sleep", json!({ "ms": LONG_MS }));
    for (name, values) in [
        ("Mcp-Method", &["tools/list", "Tools/Call", "tools/call,tools/call", "", "=?base64?dG9vbHMvY2FsbA==?="][..]),
        ("Mcp-Name", &["echo", "Sleep", "sleep,echo", "", "=?base64?ZWNobw==?=", "=?base64?!!?="]),
        ("MCP-Protocol-Version", &["2025-11-25", "2026-07-29", ""]),
    ] {
        for value in values {
            mismatch(&session, &good.clone().replacing(name, value), &id, HEADER_MISMATCH)
                .map_err(|failure| failure.at(format!("{name}: {value}")))?;
        }
        mismatch(&session, &good.clone().without(name), &id, HEADER_MISMATCH)
            .map_err(|failure| failure.at(format!("no {name}")))?;
    }
    server.finish().map(drop)
}

fn mismatch(session: &HttpSession<'_>, request: &Request, id: &crate::client::message::Id, code: i64) -> Verdict {
    let (head, mut wire) = session.server.send(request)?;
    ensure!(head.status == 400, "answered with {}", head.status);
    expect::error(&answer(&head, &mut wire, id)?, &[code]).map(drop)
}

fn other_revision(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let good = session.call(&server.fresh_id(), "echo", json!({ "text": "x" }));
    for version in ["1999-01-01", "2026-07-28", "", "2025-11-25, 2025-11-25", "draft"] {
        let status = server.status(&good.clone().replacing("MCP-Protocol-Version", version))?;
        ensure!(status == 400, "MCP-Protocol-Version {version:?} was answered with {status}");
    }
    session.round_trip()?;
    server.finish().map(drop)
}

/// Every way in, with this header.
fn every_method(
    session: &HttpSession<'_>,
    change: impl Fn(Request) -> Request,
    allowed: &[u16],
    what: &str,
) -> Verdict {
    let post = session.call(&session.server.fresh_id(), "echo", json!({ "text": "x" }));
    for request in [post, session.request("GET"), session.request("DELETE"), session.request("OPTIONS")] {
        let method = request.method;
        let status = session.server.status(&change(request))?;
        ensure!(allowed.contains(&status), "{method} with {what} was answered with {status}");
    }
    Ok(())
}

fn host(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    let port = server.address.port();
    for name in [
        "evil.example.com",
        &format!("evil.example.com:{port}"),
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "127.0.0.2",
        "0.0.0.0",
        "localhost:80:80",
        "localhost@evil.example.com",
        "",
    ] {
        every_method(&session, |request| request.replacing("Host", name), &[400, 403], &format!("Host {name:?}"))?;
    }
    every_method(&session, |request| request.without("Host"), &[400, 403], "no Host")?;
    every_method(&session, |request| request.with("Host", "evil.example.com"), &[400, 403], "two Hosts")?;
    for name in [format!("localhost:{port}"), format!("LOCALHOST:{port}"), "127.0.0.1".to_owned(), "[::1]".to_owned()] {
        let status = server
            .status(&session.call(&server.fresh_id(), "echo", json!({ "text": "x" })).replacing("Host", &name))?;
        ensure!(status == 200, "Host {name} was answered with {status}");
    }
    // The target may name a host too.
    let target = "http://evil.example.com/mcp".to_owned();
    let status =
        server.status(&Request { target, ..session.call(&server.fresh_id(), "echo", json!({ "text": "x" })) })?;
    ensure!([400, 403].contains(&status), "a target elsewhere was answered with {status}");
    server.finish().map(drop)
}

fn origin(context: &mut CheckContext) -> Verdict {
    let mut server = ReferenceServer::open(context)?;
    let session = server.session()?;
    for origin in [
        "https://evil.example.com",
        "http://localhost.evil.example.com",
        "http://localhost@evil.example.com",
        "http://127.0.0.2",
        "null",
        "",
        "localhost",
        "file://",
        "http://localhost, https://evil.example.com",
    ] {
        every_method(&session, |request| request.with("Origin", origin), &[403], &format!("Origin {origin:?}"))?;
    }
    let two = |request: Request| request.with("Origin", "http://localhost").with("Origin", "https://evil.example.com");
    every_method(&session, two, &[403], "two Origins")?;
    for origin in ["http://localhost", "http://localhost:5173", "http://127.0.0.1:80", "https://[::1]:8443"] {
        let status =
            server.status(&session.call(&server.fresh_id(), "echo", json!({ "text": "x" })).with("Origin", origin))?;
        ensure!(status == 200, "Origin {origin} was answered with {status}");
    }
    server.finish().map(drop)
}
