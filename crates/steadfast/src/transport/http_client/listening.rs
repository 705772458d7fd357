//! The stream on which a server of the older revisions speaks first.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::mpsc;

use super::events::{Events, Heard, is_events};
use super::exchange::Incoming;
use super::pace::pause;
use super::request::Wanted;
use super::shared::Shared;
use crate::runtime::waiting::sleep;

/// A stream that lasted this long was not opened for nothing.
const LASTED: Duration = Duration::from_secs(10);

/// Listens until the server has no such stream, does not know the session, or cannot be reached often enough.
pub(super) async fn listen(shared: Arc<Shared>, driver: mpsc::Sender<Incoming>) {
    let audible = Arc::clone(&shared);
    let listening = hear(shared, driver);
    listening.await;
    // There is nothing to wait for any more.
    audible.note_audible();
}

async fn hear(shared: Arc<Shared>, driver: mpsc::Sender<Incoming>) {
    let runtime = &*shared.runtime;
    let mut events: Option<Events> = None;
    let mut attempt = 0;
    let mut opened = None;
    loop {
        let last_event_id = events.as_ref().and_then(Events::last_event_id);
        match shared.send(Wanted { last_event_id, ..Wanted::default() }).await {
            Ok(response) if response.status().is_success() && is_events(&response) => {
                opened = Some(runtime.now());
                shared.note_audible();
                let longest = shared.longest;
                match &mut events {
                    Some(events) => events.go_on(response, longest),
                    None => events = Some(Events::new(response, longest)),
                }
            }
            Ok(response) if response.status() == StatusCode::NOT_FOUND && shared.session().id.is_some() => {
                // If the driver is gone, nobody listens.
                let _ = driver.send(Incoming::SessionLost).await;
                return;
            }
            // A server need not have it.
            Ok(response) if response.status().is_client_error() || response.status().is_success() => return,
            _ => {}
        }
        if let (Some(events), Some(opened)) = (&mut events, opened.take()) {
            loop {
                match events.next().await {
                    Heard::Message(message) => {
                        attempt = 0;
                        if driver.send(Incoming::Message(message)).await.is_err() {
                            return;
                        }
                    }
                    Heard::TooLong => tracing::warn!("the server said something that is too long"),
                    Heard::End(_) => break,
                }
            }
            if runtime.now().since(opened) >= LASTED {
                // It has served its purpose, though there was nothing to say.
                attempt = 0;
            }
        }
        let retry = events.as_ref().and_then(Events::retry);
        let Some(pause) = pause(attempt, retry, runtime) else {
            tracing::warn!("the server's stream cannot be opened again: what it says by itself is not heard any more");
            return;
        };
        attempt += 1;
        sleep(runtime, pause).await;
    }
}
