//! The client side of HTTP+SSE, the transport of 2024-11-05, for servers that support no other transport.
//!
//! ```text
//!   GET  the URL       --> 200, a stream of events:  endpoint: where to POST to
//!                                                    message:  any message of the server
//!   POST the endpoint  --> 202; the response is on the stream
//! ```
//!
//! The event stream of HTTP+SSE is the connection, as a socket would be: its end is the end of every call, and nothing
//! is resumed. The client opens the event stream for `initialize`, if the target asks for HTTP+SSE, if the server is
//! known to need it, or if the server refuses the POST that newer servers accept.
//!
//! **Invariant:** the client sends nothing to an endpoint of another origin than the server's URL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::StatusCode;
use reqwest::Url;
use steadfast_model::{ErrorObject, code};
use steadfast_proto::frame::sse::SseDecoderOutput;
use tokio::sync::mpsc;
use tracing::Level;

use super::exchange::HttpClientDriverEvent;
use super::fetch::TransportFetchResponse;
use super::shared::HttpClientConnection;
use super::shared::{ClientHttpRequest, ClientHttpRequestError};
use super::stream::events::{SseMessageOrEnd, SseMessageReader, is_events};
use crate::runtime::timeout::timeout_at;

/// How long a server may take to send the endpoint event of HTTP+SSE, which names the URL to POST to. A server that
/// sends no endpoint event has another kind of event stream at its URL, and `initialize` ends with the server's refusal
/// of the POST.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a server is known to need HTTP+SSE, for all connections of one `HttpTarget`.
#[derive(Default)]
pub(crate) struct ServerNeedsLegacySse {
    /// The server has opened an event stream of HTTP+SSE, so later connections try HTTP+SSE first.
    needs_legacy_sse: AtomicBool,
}

/// Whether a connection of the client uses HTTP+SSE.
pub(crate) struct ClientLegacySseState {
    /// Only HTTP+SSE is used, and Streamable HTTP is not tried.
    required: bool,
    known: Arc<ServerNeedsLegacySse>,
    /// The URL to which the client POSTs messages, once the event stream of HTTP+SSE is open.
    endpoint: OnceLock<Url>,
}

impl ClientLegacySseState {
    pub(crate) fn new(required: bool, known: Arc<ServerNeedsLegacySse>) -> Self {
        Self { required, known, endpoint: OnceLock::new() }
    }

    /// Whether only HTTP+SSE is used and Streamable HTTP is not tried.
    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether the client tries HTTP+SSE before Streamable HTTP.
    pub(crate) fn is_tried_first(&self) -> bool {
        self.required || self.known.needs_legacy_sse.load(Ordering::Relaxed)
    }

    /// The URL to which the client POSTs messages, once the event stream of HTTP+SSE is open.
    pub(crate) fn endpoint(&self) -> Option<&Url> {
        self.endpoint.get()
    }

    fn note_endpoint(&self, endpoint: Url) {
        self.known.needs_legacy_sse.store(true, Ordering::Relaxed);
        // There is one stream per connection: a second handshake finds the endpoint of the first and opens no other stream.
        let _ = self.endpoint.set(endpoint);
    }

    /// Notes that the server does not offer HTTP+SSE any more: it may have been updated.
    pub(crate) fn forget(&self) {
        self.known.needs_legacy_sse.store(false, Ordering::Relaxed);
    }
}

/// Whether a server that supports only HTTP+SSE would refuse `initialize` in this way. A server that responds with an
/// error code of a newer revision does not need HTTP+SSE.
pub(crate) fn is_legacy_refusal(status: StatusCode, error: Option<&ErrorObject>) -> bool {
    let newer = [code::HEADER_MISMATCH, code::MISSING_CAPABILITY, code::UNSUPPORTED_VERSION, code::METHOD_NOT_FOUND];
    let is_newer = error.is_some_and(|error| newer.contains(&error.code));
    let refused = matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    refused && !is_newer
}

/// Why the event stream of HTTP+SSE was not opened.
pub(crate) enum LegacySseOpenError {
    NoResponse(ClientHttpRequestError),
    /// The server responded to the GET with a status other than success.
    Refused(TransportFetchResponse),
    /// The response at the URL is not an event stream of HTTP+SSE.
    NotLegacy(String),
    /// The event stream names an endpoint that the client must not use.
    BadEndpoint(String),
}

/// Opens the event stream of HTTP+SSE and stores the endpoint that it names.
pub(crate) async fn open(shared: &HttpClientConnection) -> Result<SseMessageReader, LegacySseOpenError> {
    let response = shared.send(ClientHttpRequest::default()).await.map_err(LegacySseOpenError::NoResponse)?;
    if !response.status().is_success() {
        return Err(LegacySseOpenError::Refused(response));
    }
    if !is_events(&response) {
        return Err(LegacySseOpenError::NotLegacy("there is no event stream at the URL of the server".to_owned()));
    }
    let mut events = SseMessageReader::new(response, shared.max_message_bytes);
    let named = read_endpoint(shared, &mut events).await.map_err(LegacySseOpenError::NotLegacy)?;
    shared.legacy.note_endpoint(endpoint_of(&shared.url, &named).map_err(LegacySseOpenError::BadEndpoint)?);
    Ok(events)
}

/// Reads the first event of the stream, which names the endpoint to POST to.
async fn read_endpoint(shared: &HttpClientConnection, events: &mut SseMessageReader) -> Result<Vec<u8>, String> {
    let until = shared.runtime.now() + ENDPOINT_TIMEOUT;
    let first = timeout_at(&*shared.runtime, Some(until), events.event()).await;
    match first.unwrap_or_else(|| Err("timed out waiting for the endpoint event".to_owned())) {
        Ok(SseDecoderOutput::Message(event)) if event.name == "endpoint" => Ok(event.data),
        Ok(_) => Err("the event stream does not begin with an endpoint event".to_owned()),
        Err(why) => Err(format!("the event stream names no endpoint: {why}")),
    }
}

/// The URL of the endpoint that the server names, if it has the origin of the server.
fn endpoint_of(server: &Url, named: &[u8]) -> Result<Url, String> {
    let named = std::str::from_utf8(named).map_err(|_| "the endpoint that the server names is not a URL".to_owned())?;
    let mut endpoint =
        server.join(named.trim()).map_err(|_| "the endpoint that the server names is not a URL".to_owned())?;
    if endpoint.origin() != server.origin() {
        let origin = endpoint.origin().ascii_serialization();
        return Err(format!("the server names an endpoint of another origin ({origin}), which is not used"));
    }
    // The credentials are those of the server's URL, whatever the server writes.
    let (username, password) = (server.username().to_owned(), server.password().map(str::to_owned));
    let set = endpoint.set_username(&username).and_then(|()| endpoint.set_password(password.as_deref()));
    set.map_err(|()| "the endpoint that the server names is not a URL".to_owned())?;
    endpoint.set_fragment(None);
    Ok(endpoint)
}

const ENDED: &str = "the event stream of the server has ended, and the connection with it";

/// Reads the event stream of HTTP+SSE to its end, which is the end of the connection.
pub(crate) async fn read(
    shared: Arc<HttpClientConnection>,
    mut events: SseMessageReader,
    driver: mpsc::Sender<HttpClientDriverEvent>,
) {
    loop {
        match events.next().await {
            SseMessageOrEnd::Message(message) => {
                if driver.send(HttpClientDriverEvent::Message(shared.parse(message))).await.is_err() {
                    return;
                }
            }
            SseMessageOrEnd::TooLong => {
                // It may be a response, and to which request is not known. No caller may wait for it.
                let why = format!("the server sent a message of more than {} bytes", shared.max_message_bytes);
                shared.log(Level::WARN, ENDED, &why);
                break;
            }
            SseMessageOrEnd::End(why) => {
                shared.log(Level::DEBUG, ENDED, &why);
                break;
            }
        }
    }
    // Fails only if the driver is gone.
    let _ = driver.send(HttpClientDriverEvent::LegacyStreamEnded).await;
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
    fn credentials_are_those_of_the_servers_url() {
        let url = endpoint("http://me:mine@a.example/sse", "http://you:yours@a.example/messages").unwrap();
        assert_eq!(url, "http://me:mine@a.example/messages");
    }

    #[test]
    fn only_some_refusals_are_those_of_legacy_servers() {
        for (status, code, legacy) in [
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
            assert_eq!(is_legacy_refusal(status, error.as_ref()), legacy, "{status} {code:?}");
        }
    }
}
