//! The event stream of an HTTP+SSE session. The stream takes messages from the connection's queue only when the HTTP
//! server can write them to the client.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use steadfast_proto::frame::sse;

use super::session::ServerLegacySseSession;
use crate::transport::http::server::keep_alive::SseKeepAliveTimer;
use crate::transport::http::server::sessions::HttpSessionTable;

/// The approximate maximum number of bytes that are written to the event stream at once.
const CHUNK: usize = 16 * 1024;

/// The event stream of one HTTP+SSE session. When the HTTP server drops the event stream of an HTTP+SSE
/// session, the session ends.
pub(crate) struct ServerLegacySseStream {
    session: Arc<ServerLegacySseSession>,
    sessions: Weak<HttpSessionTable>,
    /// The first event.
    endpoint: Option<Bytes>,
    keep_alive: SseKeepAliveTimer,
}

impl ServerLegacySseStream {
    /// Creates an event stream that begins with the endpoint event, which names the URL to POST to.
    pub(crate) fn new(session: Arc<ServerLegacySseSession>, sessions: Weak<HttpSessionTable>, endpoint: &str) -> Self {
        let mut out = Vec::new();
        let data = Some(endpoint.as_bytes());
        sse::SseEvent { name: Some("endpoint"), data, ..sse::SseEvent::default() }.write(&mut out);
        Self { session, sessions, endpoint: Some(out.into()), keep_alive: SseKeepAliveTimer::default() }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(endpoint) = self.endpoint.take() {
            return Poll::Ready(Some(endpoint));
        }
        let mut guard = self.session.lock();
        let state = &mut *guard;
        let mut out = Vec::new();
        while out.len() < CHUNK {
            let Some(transmit) = state.engine.connection.poll_transmit() else { break };
            if let Some(call) = transmit.call() {
                state.engine.connection.handle_call_sent(call);
            }
            let data = Some(&*transmit.body);
            sse::SseEvent { name: Some("message"), data, ..sse::SseEvent::default() }.write(&mut out);
        }
        if !out.is_empty() {
            state.last_used = self.session.runtime.now();
            // There is room again for handlers that wait to send.
            state.wake_driver();
            self.keep_alive.reset();
            return Poll::Ready(Some(out.into()));
        }
        // This is polled again only after the bytes before were written.
        state.engine.connection.handle_flushed();
        state.engine.process_events();
        if state.ended || state.engine.ended().is_some() {
            state.wake_driver();
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        drop(guard);
        let session = &self.session;
        let comment = std::task::ready!(self.keep_alive.poll(&*session.runtime, session.keep_alive, cx));
        session.lock().last_used = session.runtime.now();
        Poll::Ready(Some(comment))
    }
}

impl Drop for ServerLegacySseStream {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.remove(self.session.id());
        }
        self.session.end();
    }
}
