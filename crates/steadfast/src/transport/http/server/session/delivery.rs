//! Decides to which HTTP response each message of a session goes.

use std::task::Waker;
use std::time::Duration;

use steadfast_proto::Moment;
use steadfast_proto::frame::sse;
use steadfast_proto::http::resume::SseStreamKey;
use steadfast_proto::mutant;

use super::ServerHttpSessionState;
use super::posts::{PostNumber, PostResponseDestination, ServerSessionPost};

/// The number of unread messages of an event stream above which droppable ones (progress, log messages, other
/// notifications) are dropped, so that they do not push responses out of the event log.
const MAX_UNREAD: usize = 256;

impl ServerHttpSessionState {
    /// Moves the messages that the connection has queued to the HTTP responses that they belong to. `direct` is the
    /// POST whose message was just handled: queued messages that belong to no request are the response to that POST.
    pub(super) fn deliver(&mut self, now: Moment, direct: Option<PostNumber>) {
        let mut touched = Vec::new();
        while let Some(transmit) = self.engine.connection.poll_transmit() {
            let call = transmit.call();
            if let Some(call) = call {
                self.engine.connection.handle_call_sent(call);
            }
            let is_request = call.is_some();
            let number = match transmit.about {
                Some(_) if mutant!(CrossStreams) => None,
                Some(key) => self.routes.get(&key).copied(),
                None => direct.filter(|_| !is_request),
            };
            let running = transmit.about.map(|key| self.engine.connection.is_open(key));
            let droppable = !is_request && running.unwrap_or(number.is_none());
            match number.and_then(|number| self.posts.get_mut(&number)) {
                Some(ServerSessionPost {
                    destination: PostResponseDestination::Buffer(messages),
                    waker,
                    withdrawn,
                    ..
                }) => {
                    if !*withdrawn && (!droppable || messages.len() < MAX_UNREAD) {
                        messages.push(transmit.body);
                    }
                    waker.take().into_iter().for_each(Waker::wake);
                }
                Some(ServerSessionPost { destination: PostResponseDestination::Stream(stream), .. }) => {
                    let stream = *stream;
                    self.append(now, stream, &transmit.body, droppable);
                }
                // A message about a request whose client has disconnected is dropped; a request of ours can go to the standalone
                // stream instead.
                Some(_) | None if transmit.about.is_some() && !is_request && !mutant!(CrossStreams) => {}
                Some(_) | None => self.append(now, self.standalone, &transmit.body, droppable),
            }
            touched.extend(number);
        }
        self.engine.connection.handle_flushed();
        for post in touched {
            self.settle(post);
        }
        for key in self.engine.take_released_streams() {
            self.release(key);
        }
    }

    /// Appends an event with this message to an event stream of the session.
    pub(super) fn append(&mut self, now: Moment, stream: SseStreamKey, message: &[u8], droppable: bool) {
        if droppable && self.log.unread(stream) >= MAX_UNREAD {
            return;
        }
        let prefix = self.event_id_prefix;
        self.log.append(now, stream, |id| {
            let mut out = Vec::new();
            let id = format!("{prefix:x}-{id}");
            sse::SseEvent { id: Some(&id), data: Some(message), ..sse::SseEvent::default() }.write(&mut out);
            out.into()
        });
        self.wake_reader(stream);
    }

    /// Appends the priming event, which has no message: it gives the client an id to resume the stream with.
    pub(super) fn prime(&mut self, now: Moment, stream: SseStreamKey, retry: Duration) {
        if !self.primes() {
            return;
        }
        let prefix = self.event_id_prefix;
        self.log.append(now, stream, |id| {
            let mut out = Vec::new();
            let id = format!("{prefix:x}-{id}");
            sse::SseEvent { id: Some(&id), retry: Some(retry), data: Some(b""), name: None }.write(&mut out);
            out.into()
        });
    }

    /// Whether clients of the session's revision expect a priming event. Clients of older revisions would take a
    /// priming event for a malformed message.
    pub(super) fn primes(&self) -> bool {
        self.engine.connection.peer().is_some_and(|peer| peer.revision.has_priming_events())
    }
}
