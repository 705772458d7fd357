//! HTTP+SSE, the transport of 2024-11-05: one stream is the connection, and what goes wrong with it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::http_server_dies::start;
use super::http_server_hangs::{give_up_hanging, wait_for_cancellation};
use super::raw_server::{Connection, EVENTS, RawServer, ReceivedRequest, response, text};
use crate::bench::Bench;
use crate::era::Era;
use crate::failure::{Failure, Verdict, ensure};
use crate::limits::PATIENCE;
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
enum Word {
    Say(Vec<u8>),
    Close,
    Reset,
}

/// The streams of those who have come, by the number of their session.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<HashMap<usize, Sender<Word>>>>);

impl Streams {
    fn open(&self) -> (usize, Receiver<Word>) {
        let (sender, words) = channel();
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = streams.len();
        streams.insert(number, sender);
        (number, words)
    }

    /// To the stream of who has sent this. One that has ended says nothing.
    fn tell(&self, request: &ReceivedRequest, word: Word) {
        let session = request.path().split_once("session=").and_then(|(_, number)| number.parse().ok());
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = session.and_then(|session: usize| streams.get(&session)) {
            let _ = stream.send(word);
        }
    }

    fn answer(&self, request: &ReceivedRequest, result: &Value) {
        self.tell(request, Word::Say(event(&request.message(result)).into_bytes()));
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
fn speak(connection: &mut Connection, words: &Receiver<Word>) {
    while let Ok(word) = words.recv_timeout(PATIENCE) {
        match word {
            Word::Say(bytes) if connection.write(&bytes) => {}
            Word::Say(_) => return,
            Word::Close => return connection.close(),
            Word::Reset => return connection.reset(),
        }
    }
}

fn accept(connection: &mut Connection) {
    connection.write(&response("202 Accepted", &[], b""));
    connection.keep();
}

fn cut_in_an_answer(bench: &mut Bench) -> Verdict {
    let server = good(|request, connection, streams| {
        accept(connection);
        let whole = event(&request.message(&text(false, "whole")));
        let at = request.argument("at").as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        streams.tell(request, Word::Say(whole.as_bytes()[..at.min(whole.len())].to_vec()));
        streams.tell(request, if request.argument("by") == "reset" { Word::Reset } else { Word::Close });
    })?;
    let mut subject = start(bench, &server)?;
    for by in ["close", "reset"] {
        for at in 0.. {
            let name = subject.connect_to(&server.url(), &json!({}))?;
            let call = subject.call(&name, "cut", json!({ "at": at, "by": by }))?;
            let request = server.wait("the call", |request| request.mark() == call)?;
            let whole = event(&request.message(&text(false, "whole"))).len();
            let place = |failure: Failure| failure.at(format!("cut at {at} of {whole} by {by}"));
            let ended = subject.ended(&call)?;
            // A reset may also take away what was written before it.
            if at == whole && (by == "close" || ended.ends == "Done") {
                ended.done("whole").map_err(place)?;
            } else {
                ended.is("Unknown", &["Closed", "Transport"]).map_err(place)?;
            }
            subject.gone(&name).map_err(place)?;
            subject.is_over(&name).map_err(place)?;
            subject.close(&name)?;
            ensure!(server.count(&call) == 1, "cut at {at}: the call came {} times", server.count(&call));
            if at == whole {
                break;
            }
        }
    }
    subject.finish(bench)
}

fn cut_in_the_endpoint(bench: &mut Bench) -> Verdict {
    let server = good(|_, connection, _| accept(connection))?;
    let mut subject = start(bench, &server)?;
    for at in 0..named(0).len() {
        let cut = old(move |session| (named(session)[..at].to_owned(), false), |_, connection, _| accept(connection))?;
        let name = subject.begin_connect_to(&cut.url(), &json!({}))?;
        // The server has refused what is newer, and nothing else is known of it.
        let place = |failure: Failure| failure.at(format!("cut at {at}"));
        subject.not_connected(&name)?.is("Refused", &["Refused"]).map_err(place)?;
        let posted = cut.requests().iter().filter(|request| request.is("initialize")).count();
        ensure!(posted == 1, "cut at {at}: `initialize` came {posted} times");
    }
    subject.finish(bench)
}

fn elsewhere(bench: &mut Bench) -> Verdict {
    let stranger = RawServer::bare(bench.era, |_, _| {})?;
    let server = good(|_, connection, _| accept(connection))?;
    let mut subject = start(bench, &server)?;
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
        let name = subject.begin_connect_to(&sends_away.url(), &credentials)?;
        subject.not_connected(&name)?.is("NotSent", &["Transport"]).map_err(|failure| failure.at(place))?;
    }
    subject.finish(bench)?;
    ensure!(
        stranger.connections() == 0,
        "{} connections went elsewhere: {:?}",
        stranger.connections(),
        stranger.requests()
    );
    Ok(())
}

/// Streams that say nothing, and streams that say something else. The silent one is waited for, a few seconds.
fn no_endpoint(bench: &mut Bench) -> Verdict {
    let server = good(|_, connection, _| accept(connection))?;
    let mut subject = start(bench, &server)?;
    let other = event(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }).to_string());
    for begins in [String::new(), ": nothing\n\n".to_owned(), other] {
        let says = begins.clone();
        let nameless = old(move |_| (says.clone(), true), |_, connection, _| accept(connection))?;
        let name = subject.begin_connect_to(&nameless.url(), &json!({}))?;
        let place = |failure: Failure| failure.at(format!("a stream that begins with {begins:?}"));
        subject.not_connected(&name)?.is("Refused", &["Refused"]).map_err(place)?;
    }
    subject.finish(bench)
}

fn refuses(bench: &mut Bench) -> Verdict {
    let server = good(|request, connection, _| {
        connection.write(&response(request.argument("status").as_str().unwrap_or_default(), &[], b"no"));
        connection.keep();
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    for (status, outcome, kind) in [
        ("400 Bad Request", "Refused", "Refused"),
        ("401 Unauthorized", "Refused", "Refused"),
        ("403 Forbidden", "Refused", "Refused"),
        ("413 Content Too Large", "Refused", "Refused"),
        ("429 Too Many Requests", "Refused", "Refused"),
        ("500 Internal Server Error", "Unknown", "Transport"),
        ("503 Service Unavailable", "Unknown", "Transport"),
    ] {
        let call = subject.call(&name, "refuse", json!({ "status": status }))?;
        subject.ended(&call)?.is(outcome, &[kind]).map_err(|failure| failure.at(status))?;
        ensure!(server.count(&call) == 1, "{status}: the call came {} times", server.count(&call));
        subject.works(&name).map_err(|failure| failure.at(status))?;
    }
    // The session is gone, and with it the connection.
    let call = subject.call(&name, "refuse", json!({ "status": "404 Not Found" }))?;
    subject.ended(&call)?.is("NotSent", &["Transport", "Closed"])?;
    subject.gone(&name)?;
    subject.finish(bench)
}

/// The server accepts the call, or not even that, and never responds. It gets a cancellation when the call is dropped.
fn never_answers(bench: &mut Bench) -> Verdict {
    let server = good(|request, connection, streams| match request.argument("way").as_str() {
        Some("a_comment") => {
            accept(connection);
            streams.tell(request, Word::Say(b": a comment\n\n".to_vec()));
        }
        Some("accepted") => accept(connection),
        _ => drop(connection.wait_for_end()),
    })?;
    let mut subject = start(bench, &server)?;
    let name = subject.connect_to(&server.url(), &json!({}))?;
    for way in ["accepted", "a_comment", "no_word"] {
        for take_back in [false, true] {
            let request = give_up_hanging(&mut subject, &server, &name, way, take_back)?;
            wait_for_cancellation(&server, &request).map_err(|failure| failure.at(way))?;
            subject.works(&name)?;
        }
    }
    subject.finish(bench)
}
