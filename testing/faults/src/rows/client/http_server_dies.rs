//! The server on HTTP closes or resets the connection, in every phase of a call.

use serde_json::{Value, json};

use super::raw_server::{CHUNKED_EVENTS, Connection, EVENTS, OnAccept, RawServer, ReceivedRequest, text};
use crate::check_context::CheckContext;
use crate::client_under_test::ClientUnderTest;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_server_dies",
    fault: "the server cannot be reached; closes or resets before the request, behind its head, behind all of it, in the head \
            and in the body of its response, and between two requests",
    must: "NotSent if no connection was made, Unknown where the server may have begun; never sent twice; other calls work",
    checks: &[
        Check::new("it_cannot_be_reached", Era::BOTH, unreachable),
        Check::new("before_it_reads_the_request", Era::BOTH, before_reading),
        Check::new("in_every_phase_of_the_response", Era::BOTH, every_phase),
        Check::new("between_two_requests", Era::BOTH, between_requests),
    ],
};

fn unreachable(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |_, _| {})?;
    let mut client = start(context, &server)?;
    let mut others = Vec::new();
    for _ in 0..5 {
        let short_lived = RawServer::open(context.era, |_, _| {})?;
        short_lived.close_after_each_response();
        let name = client.connect_to(&short_lived.url(), &json!({}))?;
        client.works(&name)?;
        let address = short_lived.address;
        drop(short_lived);
        // Once the port is closed.
        while std::net::TcpStream::connect(address).is_ok() {
            std::thread::yield_now();
        }
        others.push(name);
    }
    for name in &others {
        let call = client.call(name, "echo", json!({ "text": "x" }))?;
        client.ended(&call)?.is("NotSent", &["Transport"])?;
        client.close(name)?;
    }
    client.finish(context)
}

fn before_reading(context: &mut CheckContext) -> Verdict {
    let server = RawServer::open(context.era, |_, _| {})?;
    let mut client = start(context, &server)?;
    for on_accept in [OnAccept::Close, OnAccept::Reset, OnAccept::CloseAfterHead] {
        for _ in 0..5 {
            let fresh = RawServer::open(context.era, |_, _| {})?;
            fresh.close_after_each_response();
            let name = client.connect_to(&fresh.url(), &json!({}))?;
            client.works(&name)?;
            // What opened the conversation is through with it, too: the server's own stream was asked for and refused.
            if !context.era.is_stateless() {
                fresh.wait("the request for the stream", |request| request.method == "GET")?;
            }
            fresh.set_on_accept(on_accept);
            let connections = fresh.connections();
            let call = client.call(&name, "echo", json!({ "text": "x" }))?;
            let ended = client.ended(&call)?;
            let right = ["NotSent", "Unknown"].contains(&ended.ends.as_str()) && ended.kind == "Transport";
            ensure!(right, "{on_accept:?}: {ended}");
            ensure!(
                fresh.connections() == connections + 1,
                "{on_accept:?}: it was tried {} times",
                fresh.connections() - connections
            );
            fresh.set_on_accept(OnAccept::Serve);
            client.works(&name)?;
            client.close(&name)?;
        }
    }
    client.finish(context)
}

/// What there is of a response before it breaks off, by the name of its phase.
fn beginning(phase: &str, message: &str) -> Option<Vec<u8>> {
    let half = &message[..message.len() / 2];
    let whole = message.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {whole}\r\n");
    let chunked = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    Some(match phase {
        "behind_the_request" => Vec::new(),
        "in_the_status_line" => b"HTTP/1.1 2".to_vec(),
        "in_the_head" => head.into_bytes(),
        "behind_the_head" => format!("{head}\r\n").into_bytes(),
        "in_the_body" => format!("{head}\r\n{half}").into_bytes(),
        "in_a_chunk" => format!("{chunked}{whole:x}\r\n{half}").into_bytes(),
        "before_the_last_chunk" => format!("{chunked}{whole:x}\r\n{message}\r\n").into_bytes(),
        "in_the_events" => format!("{EVENTS}data: {half}").into_bytes(),
        "in_the_chunked_events" => format!("{CHUNKED_EVENTS}{:x}\r\ndata: {half}", whole + 8).into_bytes(),
        _ => return None,
    })
}

const PHASES: [&str; 9] = [
    "behind_the_request",
    "in_the_status_line",
    "in_the_head",
    "behind_the_head",
    "in_the_body",
    "in_a_chunk",
    "before_the_last_chunk",
    "in_the_events",
    "in_the_chunked_events",
];

fn break_off(request: &ReceivedRequest, connection: &mut Connection, era: Era) {
    let phase = request.argument("phase").as_str().unwrap_or_default();
    if let Some(bytes) = beginning(phase, &request.message(&text(era.is_stateless(), "whole"))) {
        connection.write(&bytes);
    }
    if request.argument("by") == "reset" { connection.reset() } else { connection.close() }
}

fn every_phase(context: &mut CheckContext) -> Verdict {
    let era = context.era;
    let server = RawServer::open(era, move |request, connection| break_off(request, connection, era))?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for by in ["close", "reset"] {
        for phase in PHASES {
            let call = client.call(&name, "break_off", json!({ "phase": phase, "by": by }))?;
            let ended = client.ended(&call)?;
            ended.is("Unknown", &["Transport"]).map_err(|failure| failure.at(format!("{phase} by {by}")))?;
            let count = server.count(&call);
            ensure!(count == 1, "{phase} by {by}: the call came {count} times");
            client.works(&name)?;
        }
    }
    client.finish(context)
}

/// A pooled connection is closed when the client may be about to use it. The call is sent on another, or its outcome is
/// unknown; but it is not sent twice.
fn between_requests(context: &mut CheckContext) -> Verdict {
    let modern = context.era.is_stateless();
    let server = RawServer::open(context.era, move |request, connection| {
        connection.write(&request.answer(&text(modern, "and gone")));
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    let mut unknown = 0;
    for _ in 0..200 {
        let call = client.call(&name, "answer_and_close", json!({}))?;
        let ended = client.ended(&call)?;
        if ended.ends != "Done" {
            ended.is("Unknown", &["Transport"])?;
            unknown += 1;
        }
        context.random.pause(300);
        let count = server.count(&call);
        ensure!(count <= 1, "the call came {count} times");
        ensure!(count == 1 || ended.ends != "Done", "a call was answered that never came");
    }
    context.note(format!("{unknown} of 200 met the close"));
    client.works(&name).or_else(|_| client.works(&name))?;
    client.finish(context)
}

/// A client that has spoken to a server once.
pub(super) fn start(context: &mut CheckContext, server: &RawServer) -> Verdict<ClientUnderTest> {
    start_with(context, server, &json!({}))
}

pub(super) fn start_with(context: &mut CheckContext, server: &RawServer, more: &Value) -> Verdict<ClientUnderTest> {
    let mut client = ClientUnderTest::begin(context)?;
    let name = client.connect_to(&server.url(), more)?;
    client.works(&name)?;
    client.close(&name)?;
    client.take_baseline()?;
    Ok(client)
}
