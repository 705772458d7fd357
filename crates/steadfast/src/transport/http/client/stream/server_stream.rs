//! The stream on which a server of the older revisions speaks first.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::mpsc;
use tracing::Level;

use super::backoff::StreamBackoff;
use super::events::{Events, StreamEvent, is_events};
use crate::runtime::timeout::sleep;
use crate::transport::http::client::exchange::DriverEvent;
use crate::transport::http::client::fetch::FetchResponse;
use crate::transport::http::client::request::HttpRequest;
use crate::transport::http::client::shared::Shared;

/// Listens until the server has no such stream, does not know the session, or cannot be reached often enough.
pub(crate) async fn listen(shared: Arc<Shared>, driver: mpsc::Sender<DriverEvent>) {
    let mut backoff = StreamBackoff::of_the_server();
    let mut events: Option<Events> = None;
    loop {
        match open(&shared, events.as_ref().and_then(Events::last_event_id)).await {
            OpenStreamResult::Stream(response) => {
                shared.note_audible();
                backoff.note_opened(shared.runtime.now());
                let stream = going_on(events.take(), response, shared.longest);
                if read(&shared, events.insert(stream), &mut backoff, &driver).await == ReadEnd::NoReceiver {
                    break;
                }
            }
            OpenStreamResult::SessionLost => {
                // If the driver is gone, nobody listens.
                let _ = driver.send(DriverEvent::SessionLost).await;
                break;
            }
            OpenStreamResult::Never => break,
            OpenStreamResult::NotNow => {}
        }
        let retry = events.as_ref().and_then(Events::retry);
        let Some(pause) = backoff.pause(retry, &*shared.runtime) else {
            let unheard = "what the server says by itself is not heard any more";
            shared.log(Level::WARN, unheard, "its stream cannot be opened again");
            break;
        };
        sleep(&*shared.runtime, pause).await;
    }
    // There is nothing to wait for any more.
    shared.note_audible();
}

/// What comes of asking for the stream.
enum OpenStreamResult {
    Stream(FetchResponse),
    /// The server does not know the session.
    SessionLost,
    /// A server need not have it.
    Never,
    NotNow,
}

async fn open(shared: &Shared, last_event_id: Option<&str>) -> OpenStreamResult {
    let request = HttpRequest { last_event_id, ..HttpRequest::default() };
    let response = match shared.send(request).await {
        Ok(response) => response,
        Err(why) if why.is_final() => return OpenStreamResult::Never,
        Err(_) => return OpenStreamResult::NotNow,
    };
    match response.status() {
        status if status.is_success() && is_events(&response) => OpenStreamResult::Stream(response),
        StatusCode::NOT_FOUND if shared.session().id.is_some() => OpenStreamResult::SessionLost,
        status if status.is_client_error() || status.is_success() => OpenStreamResult::Never,
        _ => OpenStreamResult::NotNow,
    }
}

/// The stream, where the one before stopped.
fn going_on(before: Option<Events>, response: FetchResponse, longest: usize) -> Events {
    match before {
        Some(mut events) => {
            events.go_on(response, longest);
            events
        }
        None => Events::new(response, longest),
    }
}

/// How the reading of a stream ends.
#[derive(PartialEq)]
enum ReadEnd {
    StreamEnd,
    /// Nobody listens any more.
    NoReceiver,
}

async fn read(
    shared: &Shared,
    events: &mut Events,
    backoff: &mut StreamBackoff,
    driver: &mpsc::Sender<DriverEvent>,
) -> ReadEnd {
    loop {
        match events.next().await {
            StreamEvent::Message(message) => {
                backoff.note_message();
                if driver.send(DriverEvent::Message(message)).await.is_err() {
                    return ReadEnd::NoReceiver;
                }
            }
            StreamEvent::TooLong => {
                let why = format!("it is longer than {} bytes", shared.longest);
                shared.log(Level::WARN, "a message of the server was not taken", &why);
            }
            StreamEvent::End(_) => return ReadEnd::StreamEnd,
        }
    }
}
