//! Servers that redirect their clients, and servers that authorize no request.

use serde_json::{Value, json};

use super::http_server_dies::{start, start_with};
use super::raw_server::{RawServer, response};
use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static REDIRECTS: Row = Row {
    name: "client_http_redirects",
    fault: "requests are redirected to another origin, or round and round",
    must: "no request and no credentials are sent to another origin; a redirect loop ends",
    checks: &[
        Check::new("a_call_to_another_origin", Era::BOTH, elsewhere),
        Check::new("the_opening_to_another_origin", Era::BOTH, opening_elsewhere),
        Check::new("in_circles", Era::BOTH, in_circles),
    ],
};

pub(crate) static ENDLESS_401: Row = Row {
    name: "client_http_endless_401",
    fault: "everything is answered with 401 or 403, for ever, to a client that authorizes itself again and again",
    must: "a few requests and no more; the call was refused; others work",
    checks: &[
        Check::new("a_call", Era::BOTH, locked_call),
        Check::new("the_opening", Era::BOTH, locked_opening),
        Check::new("the_stream_of_the_server", Era::HANDSHAKE, locked_stream),
    ],
};

/// Things that must not be seen elsewhere.
fn credentials() -> Value {
    json!({ "headers": { "x-secret": "of the header" }, "token": "of the token" })
}

fn elsewhere(bench: &mut Bench) -> Verdict {
    let stranger = RawServer::bare(bench.era, |_, _| {})?;
    let place = stranger.url();
    let server = RawServer::open(bench.era, move |request, connection| {
        let status = request.argument("status").as_str().unwrap_or_default();
        let location = request.argument("location").as_str().unwrap_or(&place);
        connection.write(&response(status, &[("location", location)], b""));
        connection.keep();
    })?;
    let mut subject = start_with(bench, &server, &credentials())?;
    let name = subject.connect_to(&server.url(), &credentials())?;
    let other_name = format!("http://localhost:{}/mcp", stranger.address.port());
    let other_scheme = format!("https://{}/mcp", server.address);
    let without_scheme = format!("//{}/mcp", stranger.address);
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
        for location in [&stranger.url(), &other_name, &other_scheme, &without_scheme] {
            let call = subject.call(&name, "redirect", json!({ "status": status, "location": location }))?;
            // The last two say that nothing was begun; the others are also used for what was done.
            let begun = !(status.starts_with("307") || status.starts_with("308"));
            let (outcome, kind) = if begun { ("Unknown", "Transport") } else { ("NotSent", "Unsendable") };
            let place = format!("{status} to {location}");
            subject.ended(&call)?.is(outcome, &[kind]).map_err(|failure| failure.at(place))?;
            ensure!(server.count(&call) == 1, "it came {} times", server.count(&call));
        }
    }
    subject.works(&name)?;
    subject.finish(bench)?;
    ensure!(
        stranger.connections() == 0,
        "{} connections went elsewhere: {:?}",
        stranger.connections(),
        stranger.requests()
    );
    Ok(())
}

fn opening_elsewhere(bench: &mut Bench) -> Verdict {
    let stranger = RawServer::open(bench.era, |_, _| {})?;
    let good = RawServer::open(bench.era, |_, _| {})?;
    let place = stranger.url();
    let server = RawServer::bare(bench.era, move |_, connection| {
        connection.write(&response("307 Temporary Redirect", &[("location", &place)], b""));
        connection.keep();
    })?;
    let mut subject = start(bench, &good)?;
    let name = subject.begin_connect_to(&server.url(), &credentials())?;
    subject.not_connected(&name)?.is("NotSent", &["Unsendable"])?;
    subject.finish(bench)?;
    ensure!(stranger.connections() == 0, "{} connections went elsewhere", stranger.connections());
    Ok(())
}

fn in_circles(bench: &mut Bench) -> Verdict {
    let server = RawServer::open(bench.era, |_, connection| {
        connection.write(&response("307 Temporary Redirect", &[("location", "/mcp")], b""));
        connection.keep();
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    let call = subject.call(&name, "redirect", json!({}))?;
    subject.ended(&call)?.is("NotSent", &["Unsendable"])?;
    let count = server.count(&call);
    bench.note(format!("{count} requests"));
    ensure!((2..=10).contains(&count), "{count} requests of one call");
    subject.works(&name)?;
    subject.finish(bench)
}

const LOCKED: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

fn locked_call(bench: &mut Bench) -> Verdict {
    let server = RawServer::open(bench.era, |request, connection| {
        let status = request.argument("status").as_str().unwrap_or_default();
        connection.write(&response(status, &[("www-authenticate", "Bearer scope=\"more\"")], b""));
        connection.keep();
    })?;
    let mut subject = start_with(bench, &server, &credentials())?;
    let (stubborn, plain) =
        (subject.connect_to(&server.url(), &credentials())?, subject.connect_to(&server.url(), &json!({}))?);
    for status in LOCKED {
        for (name, most) in [(&stubborn, 10), (&plain, 1)] {
            let call = subject.call(name, "locked", json!({ "status": status }))?;
            subject.ended(&call)?.is("Refused", &["Refused"])?;
            let count = server.count(&call);
            ensure!((1..=most).contains(&count), "{count} requests of one call");
            subject.works(name)?;
        }
    }
    subject.finish(bench)
}

fn locked_opening(bench: &mut Bench) -> Verdict {
    let good = RawServer::open(bench.era, |_, _| {})?;
    let mut subject = start(bench, &good)?;
    for status in LOCKED {
        for (more, most) in [(credentials(), 10), (json!({}), 1)] {
            let server = RawServer::bare(bench.era, move |_, connection| {
                connection.write(&response(status, &[("www-authenticate", "Bearer")], b""));
                connection.keep();
            })?;
            let name = subject.begin_connect_to(&server.url(), &more)?;
            subject.not_connected(&name)?.is("Refused", &["Refused"])?;
            let count = server.requests().len();
            ensure!((1..=most).contains(&count), "{count} requests of one opening");
        }
    }
    subject.finish(bench)
}

/// The stream on which a server speaks first: without it, calls work all the same.
fn locked_stream(bench: &mut Bench) -> Verdict {
    let era = bench.era;
    let server = RawServer::guarded(era, "GET", |_, connection| {
        connection.write(&response("401 Unauthorized", &[("www-authenticate", "Bearer")], b""));
        connection.keep();
    })?;
    let mut subject = start_with(bench, &server, &credentials())?;
    let name = subject.connect_to(&server.url(), &credentials())?;
    server.wait("a request for the stream", |request| request.method == "GET")?;
    for _ in 0..20 {
        subject.works(&name)?;
    }
    subject.finish(bench)?;
    let count = server.requests().iter().filter(|request| request.method == "GET").count();
    bench.note(format!("{count} requests for two streams"));
    ensure!(count <= 20, "{count} requests for two streams");
    Ok(())
}
