//! The server on HTTP hangs: before its response, in its head, in its body, or while it sends nothing for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::http_server_dies::start;
use super::raw_server::{CHUNKED_EVENTS, Connection, EVENTS, RawServer, ReceivedRequest};
use crate::check_context::CheckContext;
use crate::client_under_test::ClientUnderTest;
use crate::era::Era;
use crate::failure::{Verdict, ensure};
use crate::limits::{CHECK_TIMEOUT, CLIENT_SHORT_MS};
use crate::table::{Check, Row};

pub(crate) static ROW: Row = Row {
    name: "client_http_server_hangs",
    fault: "the server takes a call and says nothing, half a head, half a body, comments for ever, a byte now and then",
    must: "the call ends by its own deadline as Unknown; the server is notified: by the end of the connection, and before \
           2026-07-28 in words; other calls work all the while",
    checks: &[
        Check::new("the_deadline_passes", Era::BOTH, |context| hangs(context, false)),
        Check::new("the_call_is_taken_back", Era::BOTH, |context| hangs(context, true)),
        Check::new("many_at_once", Era::BOTH, many_at_once),
        Check::new("it_does_not_let_go_of_the_session", Era::HANDSHAKE, keeps_session),
    ],
};

const WAYS: [&str; 6] = ["nothing", "half_a_head", "half_a_body", "half_an_event", "comments", "a_byte_now_and_then"];

/// Hangs in the way that the call names, and counts the connections that clients have closed.
fn hang(request: &ReceivedRequest, connection: &mut Connection, release_connection: &AtomicUsize) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    match request.argument("way").as_str() {
        Some("half_a_head") => drop(connection.write(head.as_bytes())),
        Some("half_a_body") => {
            connection.write(format!("{head}content-length: 99\r\n\r\n{{\"jsonrpc\"").as_bytes());
        }
        Some("half_an_event") => drop(connection.write(format!("{EVENTS}data: {{\"jsonrpc\"").as_bytes())),
        Some("comments") => {
            connection.write(CHUNKED_EVENTS.as_bytes());
            drip(connection, b"3\r\n:\n\n\r\n");
        }
        Some("a_byte_now_and_then") => {
            connection.write(format!("{head}content-length: 1000000\r\n\r\n").as_bytes());
            drip(connection, b" ");
        }
        _ => {}
    }
    if connection.wait_for_end() {
        release_connection.fetch_add(1, Ordering::SeqCst);
    }
}

/// The same again and again, until the client lets go.
fn drip(connection: &mut Connection, bytes: &[u8]) {
    let start = Instant::now();
    while connection.write(bytes) && start.elapsed() < CHECK_TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn hangs(context: &mut CheckContext, take_back: bool) -> Verdict {
    let release_connection = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&release_connection);
    let server = RawServer::open(context.era, move |request, connection| hang(request, connection, &inside))?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (number, way) in WAYS.into_iter().enumerate() {
        let request = give_up_hanging(&mut client, &server, &name, way, take_back)?;
        let start = Instant::now();
        while release_connection.load(Ordering::SeqCst) <= number {
            ensure!(start.elapsed() < CHECK_TIMEOUT, "{way}: the client does not let go of the connection");
            std::thread::sleep(Duration::from_millis(1));
        }
        if !context.era.is_stateless() {
            wait_for_cancellation(&server, &request)?;
        }
        client.works(&name)?;
    }
    client.finish(context)
}

/// Starts a call that hangs, while others work, and ends it by its deadline or by a drop. Returns its outcome.
pub(super) fn give_up_hanging(
    client: &mut ClientUnderTest,
    server: &RawServer,
    name: &str,
    way: &str,
    take_back: bool,
) -> Verdict<ReceivedRequest> {
    let more = if take_back { json!({}) } else { json!({ "deadline_ms": CLIENT_SHORT_MS }) };
    let call = client.call_with(name, "hang", json!({ "way": way }), &more)?;
    let request = server.wait("the call", |request| request.mark() == call)?;
    client.works(name)?;
    if take_back {
        client.drop_call(&call)?;
    } else {
        client.ended(&call)?.is("Unknown", &["TimedOut"]).map_err(|failure| failure.at(way))?;
    }
    Ok(request)
}

/// Waits until the server has received a cancellation of the call.
pub(super) fn wait_for_cancellation(server: &RawServer, call: &ReceivedRequest) -> Verdict<ReceivedRequest> {
    let of = |said: &ReceivedRequest| {
        said.is("notifications/cancelled") && said.body["params"]["requestId"] == call.body["id"]
    };
    server.wait("the cancellation", of)
}

fn many_at_once(context: &mut CheckContext) -> Verdict {
    const CALLS: usize = 200;
    let release_connection = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&release_connection);
    let server = RawServer::open(context.era, move |request, connection| hang(request, connection, &inside))?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(client.call_with(&name, "hang", json!({}), &json!({ "deadline_ms": 4 * CLIENT_SHORT_MS }))?);
    }
    client.works(&name)?;
    for call in &calls {
        let ended = client.ended(call)?;
        ensure!(ended.kind == "TimedOut", "{ended}");
    }
    let came = calls.iter().filter(|call| server.count(call) > 0).count();
    let start = Instant::now();
    while release_connection.load(Ordering::SeqCst) < came {
        ensure!(
            start.elapsed() < CHECK_TIMEOUT,
            "{} of {came} connections were let go",
            release_connection.load(Ordering::SeqCst)
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    context.note(format!("{came} hung"));
    client.works(&name)?;
    client.finish(context)
}

/// The goodbye is not answered: the client leaves all the same.
fn keeps_session(context: &mut CheckContext) -> Verdict {
    let good = RawServer::open(context.era, |_, _| {})?;
    let mut client = start(context, &good)?;
    let server = RawServer::with_fault_on(context.era, "DELETE", |_, connection| {
        connection.wait_for_end();
    })?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    client.works(&name)?;
    client.close(&name)?;
    server.wait("the goodbye", |request| request.method == "DELETE")?;
    client.finish(context)
}
