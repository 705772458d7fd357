//! HTTP+SSE, the transport of 2024-11-05: one stream is the connection, and what goes wrong with it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::http_server_dies::start;
use super::http_server_hangs::{give_up_hanging, wait_for_cancellation};
use super::raw_server::{Connection, EVENTS, RawServer, ReceivedRequest, response, text};
use crate::check_context::CheckContext;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;
use crate::table::{Check, Row};

const OLDEST: &[Era] = &[Era::V2024_11_05];

pub(crate) static ROW: Row = Row {
    name: "client_http_sse",
    fault: "a server of HTTP+SSE ends its stream at every byte of its endpoint and of an answer, names an endpoint elsewhere or none, \
            refuses what is POSTed, or never answers",
    must: "a stream that ends has ended every call, Unknown unless its answer was whole; nothing goes to another origin; each refusal \
           has its outcome; what hangs is let go, and others work",
    checks: &[
        Check::new("cut_in_an_answer", OLDEST, cut_in_an_answer),
        Check::new("cut_in_the_endpoint", OLDEST, cut_in_the_endpoint),
        Check::new("an_endpoint_of_another_origin", OLDEST, elsewhere),
        Check::new("no_endpoint", OLDEST, no_endpoint),
        Check::new("refuses_what_is_posted", OLDEST, refuses),
        Check::new("never_answers", OLDEST, never_answers),
    ],
};

/// What the stream of a client is to do next.
enum StreamCommand {
    Write(Vec<u8>),
    Close,
    Reset,
}

/// The streams of those who have come, by the number of their session.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<HashMap<usize, Sender<StreamCommand>>>>);

impl Streams {
    fn open(&self) -> (usize, Receiver<StreamCommand>) {
        let (sender, words) = channel();
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = streams.len();
        streams.insert(number, sender);
        (number, words)
    }

    /// To the stream of who has sent this. One that has ended says nothing.
    fn tell(&self, request: &ReceivedRequest, word: StreamCommand) {
        let session = request.path().split_once("session=").and_then(|(_, number)| number.parse().ok());
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = session.and_then(|session: usize| streams.get(&session)) {
            let _ = stream.send(word);
        }
    }

    fn answer(&self, request: &ReceivedRequest, result: &Value) {
        self.tell(request, StreamCommand::Write(event(&request.message(result)).into_bytes()));
    }
}

fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// A server that speaks nothing newer. `endpoint` is what its stream begins with, for a session; calls but `echo` are left to `fault`.
fn old(
    endpoint: impl Fn(usize) -> (String, bool) + Send + Sync + 'static,
    fault: impl Fn(&ReceivedRequest, &mut Connection, &Streams) + Send + Sync + 'static,
) -> Verdict<RawServer> {
    let streams = Streams::default();
    RawServer::bare(Era::V2024_11_05, move |request, connection| {
        match (request.method.as_str(), request.body["method"].as_str()) {
            ("GET", _) => {
                let (number, words) = streams.open();
                let (begins, goes_on) = endpoint(number);
                connection.write(format!("{EVENTS}{begins}").as_bytes());
                if goes_on { speak(connection, &words) } else { connection.close() }
            }
            ("POST", Some(method)) if request.path().starts_with("/messages") => {
                match method {
                    "initialize" => streams.answer(
                        request,
                        &json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "old", "version": "1" } }),
                    ),
                    "tools/call" if request.tool() == "echo" => {
                        streams.answer(request, &text(false, request.argument("text").as_str().unwrap_or_default()));
                    }
                    "tools/call" => return fault(request, connection, &streams),
                    _ => {}
                }
                connection.write(&response("202 Accepted", &[], b""));
                connection.keep();
            }
            _ => {
                connection.write(&response("405 Method Not Allowed", &[], b""));
                connection.keep();
            }
        }
    })
}

fn named(session: usize) -> String {
    format!("event: endpoint\ndata: /messages?session={session}\n\n")
}

fn good(fault: impl Fn(&ReceivedRequest, &mut Connection, &Streams) + Send + Sync + 'static) -> Verdict<RawServer> {
    old(|session| (named(session), true), fault)
}

/// Writes what the check sends it, until the check ends it.
fn speak(connection: &mut Connection, words: &Receiver<StreamCommand>) {
    while let Ok(word) = words.recv_timeout(CHECK_TIMEOUT) {
        match word {
            StreamCommand::Write(bytes) if connection.write(&bytes) => {}
            StreamCommand::Write(_) => return,
            StreamCommand::Close => return connection.close(),
            StreamCommand::Reset => return connection.reset(),
        }
    }
}

fn accept(connection: &mut Connection) {
    connection.write(&response("202 Accepted", &[], b""));
    connection.keep();
}

fn cut_in_an_answer(context: &mut CheckContext) -> Verdict {
    let server = good(|request, connection, streams| {
        accept(connection);
        let whole = event(&request.message(&text(false, "whole")));
        let at = request.argument("at").as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        streams.tell(request, StreamCommand::Write(whole.as_bytes()[..at.min(whole.len())].to_vec()));
        streams
            .tell(request, if request.argument("by") == "reset" { StreamCommand::Reset } else { StreamCommand::Close });
    })?;
    let mut client = start(context, &server)?;
    for by in ["close", "reset"] {
        for at in 0.. {
            let name = client.connect_to(&server.url(), &json!({}))?;
            let call = client.call(&name, "cut", json!({ "at": at, "by": by }))?;
            let request = server.wait("the call", |request| request.mark() == call)?;
            let whole = event(&request.message(&text(false, "whole"))).len();
            let place = |failure: Failure| failure.at(format!("cut at {at} of {whole} by {by}"));
            let ended = client.ended(&call)?;
            // A reset may also take away what was written before it.
            if at == whole && (by == "close" || ended.ends == "Done") {
                ended.done("whole").map_err(place)?;
            } else {
                ended.is("Unknown", &["Closed", "Transport"]).map_err(place)?;
            }
            client.gone(&name).map_err(place)?;
            client.is_over(&name).map_err(place)?;
            client.close(&name)?;
            ensure!(server.count(&call) == 1, "cut at {at}: the call came {} times", server.count(&call));
            if at == whole {
                break;
            }
        }
    }
    client.finish(context)
}

fn cut_in_the_endpoint(context: &mut CheckContext) -> Verdict {
    let server = good(|_, connection, _| accept(connection))?;
    let mut client = start(context, &server)?;
    for at in 0..named(0).len() {
        let cut = old(move |session| (named(session)[..at].to_owned(), false), |_, connection, _| accept(connection))?;
        let name = client.begin_connect_to(&cut.url(), &json!({}))?;
        // The server has refused what is newer, and nothing else is known of it.
        let place = |failure: Failure| failure.at(format!("cut at {at}"));
        client.not_connected(&name)?.is("Refused", &["Refused"]).map_err(place)?;
        let posted = cut.requests().iter().filter(|request| request.is("initialize")).count();
        ensure!(posted == 1, "cut at {at}: `initialize` came {posted} times");
    }
    client.finish(context)
}

fn elsewhere(context: &mut CheckContext) -> Verdict {
    let stranger = RawServer::bare(context.era, |_, _| {})?;
    let server = good(|_, connection, _| accept(connection))?;
    let mut client = start(context, &server)?;
    let port = stranger.address.port();
    let places = [
        format!("http://{}/messages", stranger.address),
        format!("//{}/messages", stranger.address),
        format!("http://localhost:{port}/messages"),
        format!("http://127.0.0.1:1@{}/messages", stranger.address),
    ];
    for place in places {
        let named = format!("event: endpoint\ndata: {place}\n\n");
        let sends_away = old(move |_| (named.clone(), true), |_, connection, _| accept(connection))?;
        let credentials = json!({ "headers": { "x-secret": "of the header" }, "token": "of the token" });
        let name = client.begin_connect_to(&sends_away.url(), &credentials)?;
        client.not_connected(&name)?.is("NotSent", &["Transport"]).map_err(|failure| failure.at(place))?;
    }
    client.finish(context)?;
    ensure!(
        stranger.connections() == 0,
        "{} connections went elsewhere: {:?}",
        stranger.connections(),
        stranger.requests()
    );
    Ok(())
}

/// Streams that say nothing, and streams that say something else. The silent one is waited for, a few seconds.
fn no_endpoint(context: &mut CheckContext) -> Verdict {
    let server = good(|_, connection, _| accept(connection))?;
    let mut client = start(context, &server)?;
    let other = event(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }).to_string());
    for begins in [String::new(), ": nothing\n\n".to_owned(), other] {
        let says = begins.clone();
        let nameless = old(move |_| (says.clone(), true), |_, connection, _| accept(connection))?;
        let name = client.begin_connect_to(&nameless.url(), &json!({}))?;
        let place = |failure: Failure| failure.at(format!("a stream that begins with {begins:?}"));
        client.not_connected(&name)?.is("Refused", &["Refused"]).map_err(place)?;
    }
    client.finish(context)
}

fn refuses(context: &mut CheckContext) -> Verdict {
    let server = good(|request, connection, _| {
        connection.write(&response(request.argument("status").as_str().unwrap_or_default(), &[], b"no"));
        connection.keep();
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for (status, outcome, kind) in [
        ("400 Bad Request", "Refused", "Refused"),
        ("401 Unauthorized", "Refused", "Refused"),
        ("403 Forbidden", "Refused", "Refused"),
        ("413 Content Too Large", "Refused", "Refused"),
        ("429 Too Many Requests", "Refused", "Refused"),
        ("500 Internal Server Error", "Unknown", "Transport"),
        ("503 Service Unavailable", "Unknown", "Transport"),
    ] {
        let call = client.call(&name, "refuse", json!({ "status": status }))?;
        client.ended(&call)?.is(outcome, &[kind]).map_err(|failure| failure.at(status))?;
        ensure!(server.count(&call) == 1, "{status}: the call came {} times", server.count(&call));
        client.works(&name).map_err(|failure| failure.at(status))?;
    }
    // The session is gone, and with it the connection.
    let call = client.call(&name, "refuse", json!({ "status": "404 Not Found" }))?;
    client.ended(&call)?.is("NotSent", &["Transport", "Closed"])?;
    client.gone(&name)?;
    client.finish(context)
}

/// The server accepts the call, or not even that, and never responds. It gets a cancellation when the call is dropped.
fn never_answers(context: &mut CheckContext) -> Verdict {
    let server = good(|request, connection, streams| match request.argument("way").as_str() {
        Some("a_comment") => {
            accept(connection);
            streams.tell(request, StreamCommand::Write(b": a comment\n\n".to_vec()));
        }
        Some("accepted") => accept(connection),
        _ => drop(connection.wait_for_end()),
    })?;
    let mut client = start(context, &server)?;
    let name = client.connect_to(&server.url(), &json!({}))?;
    for way in ["accepted", "a_comment", "no_word"] {
        for take_back in [false, true] {
            let request = give_up_hanging(&mut client, &server, &name, way, take_back)?;
            wait_for_cancellation(&server, &request).map_err(|failure| failure.at(way))?;
            client.works(&name)?;
        }
    }
    client.finish(context)
}
