//! Servers that redirect their clients, and servers that authorize no request.

use serde_json::{Value, json};

use super::http_server_dies::{start, start_with};
use super::raw_server::{RawServer, response};
use crate::check_context::CheckContext;
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

fn elsewhere(context: &mut CheckContext) -> Verdict {
    let stranger = RawServer::bare(context.era, |_, _| {})?;
    let place = stranger.url();
    let server = RawServer::open(context.era, move |request, connection| {
        let status = request.argument("status").as_str().unwrap_or_default();
        let location = request.argument("location").as_str().unwrap_or(&place);
        connection.write(&response(status, &[("location", location)], b""));
        connection.keep();
    })?;
    let mut client = start_with(context, &server, &credentials())?;
    let name = client.connect_to(&server.url(), &credentials())?;
    let other_name = format!("http://localhost:{}/mcp", stranger.address.port());
    let other_scheme = format!("https://{}/mcp", server.address);
    let without_scheme = format!("//{}/mcp", stranger.address);
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"] {
        for location in [&stranger.url(), &other_name, &other_scheme, &without_scheme] {
            let call = client.call(&name, "redirect", json!({ "status": status, "location": location }))?;
            // The last two say that nothing was begun; the others are also used for what was done.
            let begun = !(status.starts_with("307") || status.starts_with("308"));
            let (outcome, kind) = if begun { ("Unknown", "Transport") } else { ("NotSent", "Unsendable") };
            let place = format!("{status} to {location}");
            client.ended(&call)?.is(outcome, &[kind]).map_err(|failure| failure.at(place))?;
            ensure!(server.count(&call) == 1, "it came {} times", server.count(&call));
        }
    }
    client.works(&name)?;
    client.finish(context)?;
    ensure!(
        stranger.connections() == 0,
        "{} connections went elsewhere: {:?}",
        stranger.connections(),
        stranger.requests()
    );
    Ok(())
}

fn opening_elsewhere(context: &mut CheckContext) -> Verdict {
    let stranger = RawServer::open(context.era, |_, _| {})?;
    let good = RawServer::open(context.era, |_, _| {})?;
    let place = stranger.url();
    let server = RawServer::bare(context.era, move |_, connection| {
        connection.write(&response("307 Temporary Redirect", &[("location", &place)], b""));
        connection.keep();
    })?;
    let mut client = start(context, &good)?;
    let name = client.begin_connect_to(&server.url(), &credentials())?;
    client.not_connected(&name)?.is("NotSent", &["Unsendable"])?;
    client.finish(context)?;
    ensure!(stranger.connections() == 0, "{} connections went elsewhere", stranger.connections());
    Ok(())
}

fn in_circles(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |_, connection| {
        connection.write(&response("307 Temporary Redirect", &[("location", "/mcp")], b""));
        connection.keep();
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    let call = client.call(&name, "redirect", json!({}))?;
    client.ended(&call)?.is("NotSent", &["Unsendable"])?;
    let count = server.count(&call);
    context.note(format!("{count} requests"));
    ensure!((2..=10).contains(&count), "{count} requests of one call");
    client.works(&name)?;
    client.finish(context)
}

const LOCKED: [&str; 2] = ["401 Unauthorized", "403 Forbidden"];

fn locked_call(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |request, connection| {
        let status = request.argument("status").as_str().unwrap_or_default();
        connection.write(&response(status, &[("www-authenticate", "Bearer scope=\"more\"")], b""));
        connection.keep();
    })?;
    let mut client = start_with(context, &server, &credentials())?;
    let (stubborn, plain) =
        (client.connect_to(&server.url(), &credentials())?, client.connect_to(&server.url(), &json!({}))?);
    for status in LOCKED {
        for (name, most) in [(&stubborn, 10), (&plain, 1)] {
            let call = client.call(name, "locked", json!({ "status": status }))?;
            client.ended(&call)?.is("Refused", &["Refused"])?;
            let count = server.count(&call);
            ensure!((1..=most).contains(&count), "{count} requests of one call");
            client.works(name)?;
        }
    }
    client.finish(context)
}

fn locked_opening(context: &mut CheckContext) -> Verdict {
    let good = RawServer::open(context.era, |_, _| {})?;
    let mut client = start(context, &good)?;
    for status in LOCKED {
        for (more, most) in [(credentials(), 10), (json!({}), 1)] {
            let server = RawServer::bare(context.era, move |_, connection| {
                connection.write(&response(status, &[("www-authenticate", "Bearer")], b""));
                connection.keep();
            })?;
            let name = client.begin_connect_to(&server.url(), &more)?;
            client.not_connected(&name)?.is("Refused", &["Refused"])?;
            let count = server.requests().len();
            ensure!((1..=most).contains(&count), "{count} requests of one opening");
        }
    }
    client.finish(context)
}

/// The stream on which a server speaks first: without it, calls work all the same.
fn locked_stream(context: &mut CheckContext) -> Verdict {
    let era = context.era;
    let server = RawServer::with_fault_on(era, "GET", |_, connection| {
        connection.write(&response("401 Unauthorized", &[("www-authenticate", "Bearer")], b""));
        connection.keep();
    })?;
    let mut client = start_with(context, &server, &credentials())?;
    let name = client.connect_to(&server.url(), &credentials())?;
    server.wait("a request for the stream", |request| request.method == "GET")?;
    for _ in 0..20 {
        client.works(&name)?;
    }
    client.finish(context)?;
    let count = server.requests().iter().filter(|request| request.method == "GET").count();
    context.note(format!("{count} requests for two streams"));
    ensure!(count <= 20, "{count} requests for two streams");
    Ok(())
}
