//! HTTP+SSE, the transport of 2024-11-05, for servers that know no other.
//!
//! ```text
//!   GET  the URL       --> 200, a stream of events:  endpoint: where to POST to
//!                                                    message:  whatever the server has to say
//!   POST the endpoint  --> 202; what it comes to is on the stream
//! ```
//!
//! The stream is the connection, as a socket would be: its end is the end of every call, and nothing is resumed. It is opened
//! for `initialize`, if the target says so or if the server refuses the POST that newer servers take.
//!
//! **Invariant:** nothing is sent to an endpoint of another origin than the server's URL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::StatusCode;
use reqwest::Url;
use steadfast_model::{ErrorObject, code};
use steadfast_proto::frame::sse::SseFrame;
use tokio::sync::mpsc;
use tracing::Level;

use super::exchange::DriverEvent;
use super::fetch::FetchResponse;
use super::request::{HttpRequest, NoResponse};
use super::shared::Shared;
use super::stream::events::{Events, StreamEvent, is_events};
use crate::runtime::timeout::timeout_at;

/// How long a server may take to say where to POST to. One that says nothing is of another kind, and its refusal is what
/// is told.
const ENDPOINT: Duration = Duration::from_secs(5);

/// What was found out about a server, for all who connect to it by one target.
#[derive(Default)]
pub(crate) struct LegacySupport {
    /// It has refused what is newer.
    speaks_legacy_sse: AtomicBool,
}

/// Whether this transport is spoken on a connection.
pub(crate) struct LegacySse {
    /// Nothing else may be tried.
    only: bool,
    known: Arc<LegacySupport>,
    /// Where to POST to, once the stream is open.
    endpoint: OnceLock<Url>,
}

impl LegacySse {
    pub(crate) fn new(only: bool, known: Arc<LegacySupport>) -> Self {
        Self { only, known, endpoint: OnceLock::new() }
    }

    /// Whether nothing else may be tried.
    pub(crate) fn is_demanded(&self) -> bool {
        self.only
    }

    /// Whether it is to be tried first.
    pub(crate) fn is_expected(&self) -> bool {
        self.only || self.known.speaks_legacy_sse.load(Ordering::Relaxed)
    }

    /// Where to POST to, once the stream is open.
    pub(crate) fn endpoint(&self) -> Option<&Url> {
        self.endpoint.get()
    }

    fn note(&self, endpoint: Url) {
        self.known.speaks_legacy_sse.store(true, Ordering::Relaxed);
        // There is one stream a connection: a second handshake finds the first one's endpoint, and opens none.
        let _ = self.endpoint.set(endpoint);
    }

    /// A server that spoke it may have learned something newer.
    pub(crate) fn forget(&self) {
        self.known.speaks_legacy_sse.store(false, Ordering::Relaxed);
    }
}

/// Whether a POST of `initialize` was refused as servers of this transport do. One that answers with an error that only newer
/// servers know is not one of them.
pub(crate) fn is_refusal_of_its_kind(status: StatusCode, error: Option<&ErrorObject>) -> bool {
    let newer = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION, code::METHOD_NOT_FOUND];
    let is_newer = error.is_some_and(|error| newer.contains(&error.code));
    let refused = matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    refused && !is_newer
}

/// Why there is no stream.
pub(crate) enum OpenStreamError {
    NoResponse(NoResponse),
    /// The server says no.
    Refused(FetchResponse),
    /// It is not the stream of this transport.
    NotIt(String),
    /// It is, and what it names must not be used.
    Elsewhere(String),
}

/// Opens the stream, and takes note of its endpoint.
pub(crate) async fn open(shared: &Shared) -> Result<Events, OpenStreamError> {
    let response = shared.send(HttpRequest::default()).await.map_err(OpenStreamError::NoResponse)?;
    if !response.status().is_success() {
        return Err(OpenStreamError::Refused(response));
    }
    if !is_events(&response) {
        return Err(OpenStreamError::NotIt("what the server has at its URL is not a stream of events".to_owned()));
    }
    let mut events = Events::new(response, shared.longest);
    let named = first(shared, &mut events).await.map_err(OpenStreamError::NotIt)?;
    shared.legacy.note(endpoint_of(&shared.url, &named).map_err(OpenStreamError::Elsewhere)?);
    Ok(events)
}

/// The first event, which names the endpoint.
async fn first(shared: &Shared, events: &mut Events) -> Result<Vec<u8>, String> {
    let until = shared.runtime.now() + ENDPOINT;
    let first = timeout_at(&*shared.runtime, Some(until), events.event()).await;
    match first.unwrap_or_else(|| Err("the server does not name one".to_owned())) {
        Ok(SseFrame::Message(event)) if event.name == "endpoint" => Ok(event.data),
        Ok(_) => Err("the stream does not begin with an endpoint".to_owned()),
        Err(why) => Err(format!("the stream has no endpoint: {why}")),
    }
}

/// The endpoint that a server names, if it is one of its own.
fn endpoint_of(server: &Url, named: &[u8]) -> Result<Url, String> {
    let named = std::str::from_utf8(named).map_err(|_| "the endpoint is not a URL".to_owned())?;
    let mut endpoint = server.join(named.trim()).map_err(|_| "the endpoint is not a URL".to_owned())?;
    if endpoint.origin() != server.origin() {
        let origin = endpoint.origin().ascii_serialization();
        return Err(format!("the server names an endpoint of another origin ({origin}), where nothing is sent"));
    }
    // Who we are is for the server to read, and not for it to say.
    let secrets = (server.username().to_owned(), server.password().map(str::to_owned));
    let kept = endpoint.set_username(&secrets.0).and_then(|()| endpoint.set_password(secrets.1.as_deref()));
    kept.map_err(|()| "the endpoint is not a URL".to_owned())?;
    endpoint.set_fragment(None);
    Ok(endpoint)
}

const ENDED: &str = "the stream of the server has ended, and the connection with it";

/// Reads the stream to its end, which is that of the connection.
pub(crate) async fn read(shared: Arc<Shared>, mut events: Events, driver: mpsc::Sender<DriverEvent>) {
    loop {
        match events.next().await {
            StreamEvent::Message(message) => {
                if driver.send(DriverEvent::Message(message)).await.is_err() {
                    return;
                }
            }
            StreamEvent::TooLong => {
                // It may be an answer, and whose is not known. Nobody is to wait for it.
                let why = format!("a message is longer than {} bytes", shared.longest);
                shared.log(Level::WARN, ENDED, &why);
                break;
            }
            StreamEvent::End(why) => {
                shared.log(Level::DEBUG, ENDED, &why);
                break;
            }
        }
    }
    // If the driver is gone, so is whoever waited.
    let _ = driver.send(DriverEvent::StreamEnded).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(server: &str, named: &str) -> Result<String, String> {
        endpoint_of(&Url::parse(server).unwrap(), named.as_bytes()).map(String::from)
    }

    #[test]
    fn an_endpoint_may_be_written_in_many_ways() {
        for (named, url) in [
            ("/messages?session=1", "http://a.example:1/messages?session=1"),
            ("messages", "http://a.example:1/x/messages"),
            ("?session=1", "http://a.example:1/x/sse?session=1"),
            ("http://a.example:1/messages#here", "http://a.example:1/messages"),
            ("//A.example:1/messages", "http://a.example:1/messages"),
            (" /messages ", "http://a.example:1/messages"),
        ] {
            assert_eq!(endpoint("http://a.example:1/x/sse", named).as_deref(), Ok(url), "{named}");
        }
    }

    #[test]
    fn an_endpoint_of_another_origin_is_refused() {
        for named in [
            "http://b.example:1/messages",
            "//b.example/messages",
            "http://a.example/messages",
            "https://a.example:1/messages",
            "http://a.example:1@b.example/messages",
            "file:///etc/passwd",
            "\\\\b.example\\messages",
        ] {
            let refused = endpoint("http://a.example:1/sse", named).unwrap_err();
            assert!(refused.contains("another origin"), "{named}: {refused}");
        }
    }

    #[test]
    fn who_we_are_is_not_for_the_server_to_say() {
        let url = endpoint("http://me:mine@a.example/sse", "http://you:yours@a.example/messages").unwrap();
        assert_eq!(url, "http://me:mine@a.example/messages");
    }

    #[test]
    fn only_some_refusals_are_of_its_kind() {
        for (status, code, its) in [
            (400, None, true),
            (404, None, true),
            (405, None, true),
            (400, Some(-32000), true),
            (400, Some(code::UNSUPPORTED_VERSION), false),
            (404, Some(code::METHOD_NOT_FOUND), false),
            (401, None, false),
            (415, None, false),
            (500, None, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = code.map(|code| ErrorObject::new(code, "no"));
            assert_eq!(is_refusal_of_its_kind(status, error.as_ref()), its, "{status} {code:?}");
        }
    }
}
