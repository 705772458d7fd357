//! The GET stream on which a server of an older revision sends messages that belong to no request of the client.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::mpsc;
use tracing::Level;

use super::backoff::StreamBackoff;
use super::events::{SseMessageOrEnd, SseMessageReader, is_events};
use crate::runtime::timeout::sleep;
use crate::transport::http::client::exchange::HttpClientDriverEvent;
use crate::transport::http::client::fetch::TransportFetchResponse;
use crate::transport::http::client::shared::ClientHttpRequest;
use crate::transport::http::client::shared::HttpClientConnection;

/// Reads the GET stream of server-initiated messages, and reopens it when it ends, until the server does not offer it,
/// does not know the session any more, or could not be reached after all retries.
pub(crate) async fn listen(shared: Arc<HttpClientConnection>, driver: mpsc::Sender<HttpClientDriverEvent>) {
    let mut backoff = StreamBackoff::for_server_stream();
    let mut events: Option<SseMessageReader> = None;
    loop {
        match open(&shared, events.as_ref().and_then(SseMessageReader::last_event_id)).await {
            GetStreamOpenResult::Stream(response) => {
                shared.note_receives_notifications();
                backoff.note_opened(shared.runtime.now());
                let stream = continue_with(events.take(), response, shared.max_message_bytes);
                if read(&shared, events.insert(stream), &mut backoff, &driver).await == SseReadEndCause::DriverGone {
                    break;
                }
            }
            GetStreamOpenResult::SessionLost => {
                // Fails only if the driver is gone.
                let _ = driver.send(HttpClientDriverEvent::SessionLost).await;
                break;
            }
            GetStreamOpenResult::Unsupported => break,
            GetStreamOpenResult::Failed => {}
        }
        let retry = events.as_ref().and_then(SseMessageReader::retry);
        let Some(pause) = backoff.pause(retry, &*shared.runtime) else {
            let what = "notifications and requests of the server are no longer received";
            shared.log(Level::WARN, what, "the GET stream could not be reopened");
            break;
        };
        sleep(&*shared.runtime, pause).await;
    }
    // It will not be opened any more: nothing may wait for it.
    shared.note_receives_notifications();
}

/// The outcome of the client's GET request for the stream of server messages.
enum GetStreamOpenResult {
    Stream(TransportFetchResponse),
    /// The server does not know the session of this client any more.
    SessionLost,
    /// The server offers no GET stream for the messages that it sends by itself, which the protocol allows.
    Unsupported,
    /// Worth a retry.
    Failed,
}

async fn open(shared: &HttpClientConnection, last_event_id: Option<&str>) -> GetStreamOpenResult {
    let request = ClientHttpRequest { last_event_id, ..ClientHttpRequest::default() };
    let response = match shared.send(request).await {
        Ok(response) => response,
        Err(why) if why.is_final() => return GetStreamOpenResult::Unsupported,
        Err(_) => return GetStreamOpenResult::Failed,
    };
    match response.status() {
        status if status.is_success() && is_events(&response) => GetStreamOpenResult::Stream(response),
        StatusCode::NOT_FOUND if shared.session().id.is_some() => GetStreamOpenResult::SessionLost,
        status if status.is_client_error() || status.is_success() => GetStreamOpenResult::Unsupported,
        _ => GetStreamOpenResult::Failed,
    }
}

/// Reads the events of an HTTP response. If the response resumes a stream, the reader of the previous response is
/// continued.
fn continue_with(
    before: Option<SseMessageReader>,
    response: TransportFetchResponse,
    max_bytes: usize,
) -> SseMessageReader {
    match before {
        Some(mut events) => {
            events.resume_with(response, max_bytes);
            events
        }
        None => SseMessageReader::new(response, max_bytes),
    }
}

/// Why reading an event stream ended.
#[derive(PartialEq)]
enum SseReadEndCause {
    StreamEnd,
    DriverGone,
}

async fn read(
    shared: &HttpClientConnection,
    events: &mut SseMessageReader,
    backoff: &mut StreamBackoff,
    driver: &mpsc::Sender<HttpClientDriverEvent>,
) -> SseReadEndCause {
    loop {
        match events.next().await {
            SseMessageOrEnd::Message(message) => {
                backoff.note_message();
                if driver.send(HttpClientDriverEvent::Message(shared.parse(message))).await.is_err() {
                    return SseReadEndCause::DriverGone;
                }
            }
            SseMessageOrEnd::TooLong => {
                let why = format!("the message is longer than {} bytes", shared.max_message_bytes);
                shared.log(Level::WARN, "a message of the server was dropped", &why);
            }
            SseMessageOrEnd::End(_) => return SseReadEndCause::StreamEnd,
        }
    }
}
