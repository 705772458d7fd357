//! A Streamable HTTP session on the server: one connection of a revision before 2026-07-28, over many HTTP requests.
//!
//! ```text
//!   POST --message--> engine --messages--> the POST they belong to --> buffered, while one response may be all there is
//!                                     |                           \--> an event stream, from the second message on
//!                                     \--> the stream of GET, for messages that belong to no request
//! ```
//!
//! Each message of the server is sent in one HTTP response only. Events are stored in a log, which an HTTP response
//! reads through a cursor: a client that does not read delays no other client, and one that reconnects reads on after
//! its last event. Dropping an HTTP response of a session cancels no request.

mod delivery;
mod driver;
mod posts;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use steadfast_model::{Principal, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::InboundRequestKey;
use steadfast_proto::envelope::Message;
use steadfast_proto::http::resume::{SseEventLog, SseStreamKey, UnknownEventId};
use steadfast_proto::mutant;

pub(crate) use driver::ServerHttpSessionDriver;
pub(crate) use stream::{PostReplyFuture, ServerHttpSessionStream, SessionPostResponse};

use super::load::{ServerLoadLimiter, ServerLoadPermit};
use super::service::HttpServiceState;
use crate::runtime::{ConnectionEngine, DriverMailbox, Runtime};
use crate::server::ServerDispatcher;
use posts::{PostNumber, ServerSessionPost};

/// One Streamable HTTP session on the server.
pub(crate) struct ServerHttpSession {
    id: Box<str>,
    /// The identity of the principal that opened the session.
    owner: Option<String>,
    runtime: Arc<dyn Runtime>,
    timing: SessionTiming,
    load: Arc<ServerLoadLimiter>,
    state: Mutex<ServerHttpSessionState>,
}

/// What the session did with a message of the client that it accepted.
pub(crate) enum HttpSessionSubmitResult {
    /// The message holds no request, so it gets no JSON-RPC response.
    Accepted,
    /// The message holds no request and is malformed; this is the error response.
    Refused(Vec<u8>),
    /// The message holds requests; the future completes with their HTTP response.
    Waiting(PostReplyFuture),
}

/// Why a session did not accept a message of the client. Nothing was started for the message.
#[derive(Debug)]
pub(crate) enum HttpSessionSubmitError {
    SessionEnded,
    /// A request with the same id is running.
    IdInUse,
}

/// The timeouts and intervals of a session, from the options of the HTTP server.
struct SessionTiming {
    idle: Duration,
    retry: Duration,
    keep_alive: Duration,
    resumable_after: Duration,
}

struct ServerHttpSessionState {
    engine: ConnectionEngine<ServerDispatcher>,
    log: SseEventLog<Bytes>,
    /// Random prefix of the event ids of this session. A client that has opened a new session may still send an event
    /// id of its old session, which the prefix makes unknown in the new one.
    event_id_prefix: u32,
    /// The event stream of messages that belong to no request, which the client opens with GET.
    standalone: SseStreamKey,
    /// The POSTs with requests that have not ended, or with a response that the client has not read.
    posts: BTreeMap<PostNumber, ServerSessionPost>,
    next_post: PostNumber,
    /// The number of the POST in which each open request arrived.
    routes: BTreeMap<InboundRequestKey, PostNumber>,
    /// The load permits of requests that have ended although something of them goes on, such as a handler that was cancelled and
    /// blocks its thread.
    lingering: Vec<(Vec<InboundRequestKey>, ServerLoadPermit)>,
    /// The wakers of the HTTP responses that wait for the next event of their stream.
    readers: BTreeMap<SseStreamKey, Waker>,
    driver: Option<Waker>,
    /// The current number of open HTTP responses of this session.
    open_responses: usize,
    /// When the client last sent something, or an HTTP response to it was closed.
    last_used: Moment,
    /// The HTTP session has ended: no more messages are accepted or sent.
    ended: bool,
}

impl ServerHttpSession {
    /// Creates a session with a random id.
    pub(crate) fn new(
        shared: &HttpServiceState,
        runtime: Arc<dyn Runtime>,
        principal: Option<Principal>,
    ) -> Result<Arc<Self>, std::io::Error> {
        let (mut id, mut prefix) = ([0_u8; 16], [0_u8; 4]);
        runtime.fill_random(&mut id)?;
        runtime.fill_random(&mut prefix)?;
        let server = shared.server.clone();
        let limits = shared.limits.clone();
        let service = |mailbox: &Arc<DriverMailbox>| {
            mailbox.identify(principal.as_ref());
            ServerDispatcher::new(server, mailbox)
        };
        let mut engine = ConnectionEngine::new(service, Arc::clone(&shared.hello), limits, Arc::clone(&runtime));
        engine.track_released_streams();
        let mut log = SseEventLog::new(shared.options.event_log.clone());
        let standalone = log.open();
        let state = ServerHttpSessionState {
            engine,
            log,
            event_id_prefix: u32::from_be_bytes(prefix),
            standalone,
            posts: BTreeMap::new(),
            next_post: 0,
            routes: BTreeMap::new(),
            lingering: Vec::new(),
            readers: BTreeMap::new(),
            driver: None,
            open_responses: 0,
            last_used: runtime.now(),
            ended: false,
        };
        let options = &shared.options;
        let timing = SessionTiming {
            idle: options.session_idle_timeout,
            retry: options.retry_after,
            keep_alive: options.comment_interval,
            resumable_after: options.resumable_after,
        };
        let id = format!("{:032x}", u128::from_be_bytes(id)).into_boxed_str();
        let load = Arc::clone(&shared.load);
        let owner = principal.map(|principal| principal.identity());
        Ok(Arc::new(Self { id, owner, runtime, timing, load, state: Mutex::new(state) }))
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether `principal` opened the HTTP session.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner == principal.map(Principal::identity)
    }

    /// Whether the protocol revision of the session has JSON-RPC batches.
    pub(crate) fn takes_batches(&self) -> bool {
        self.lock().engine.connection.peer().is_some_and(|peer| peer.revision.has_batches())
    }

    /// Whether the handshake of this session has succeeded.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().engine.connection.peer().is_some()
    }

    /// Handles `initialize`, and returns the response, which the connection queues at once.
    pub(crate) fn initialize(&self, message: Message<'_>) -> Vec<u8> {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.engine.connection.handle_read(now, message);
        state.engine.process_events();
        let response = state.engine.connection.poll_transmit().map(|transmit| transmit.body);
        state.engine.connection.handle_flushed();
        response.unwrap_or_default()
    }

    /// Handles a message of the client, which holds requests with these ids. `may_cancel` is set if the message may end
    /// other requests without a response.
    ///
    /// # Errors
    ///
    /// Fails if no request of the message was begun.
    pub(crate) fn submit(
        self: &Arc<Self>,
        principal: Option<&Principal>,
        message: Message<'_>,
        ids: &[RequestId],
        may_cancel: bool,
        permit: ServerLoadPermit,
    ) -> Result<HttpSessionSubmitResult, HttpSessionSubmitError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.ended {
            return Err(HttpSessionSubmitError::SessionEnded);
        }
        let now = self.runtime.now();
        state.last_used = now;
        if let [id] = ids
            && state.engine.connection.key_of(id).is_some()
        {
            return Err(HttpSessionSubmitError::IdInUse);
        }
        state.engine.mailbox.identify(principal);
        let post = state.open_post(permit);
        let in_use: Vec<bool> = ids.iter().map(|id| state.engine.connection.key_of(id).is_some()).collect();
        state.engine.connection.handle_read(now, message);
        let new_ids = ids.iter().zip(in_use).filter(|(_, in_use)| !in_use);
        let keys: Vec<InboundRequestKey> = new_ids.filter_map(|(id, _)| state.engine.connection.key_of(id)).collect();
        state.routes.extend(keys.iter().map(|key| (*key, post)));
        if let Some(post) = state.posts.get_mut(&post) {
            post.keys = keys;
        }
        if may_cancel && !mutant!(KeepUnreadOfCancelled) {
            state.withdraw_cancelled();
        }
        // What the connection has queued by now is a response to this message: nothing was queued before.
        state.deliver(now, Some(post));
        state.engine.process_events();
        state.deliver(now, None);
        if may_cancel {
            let all: Vec<PostNumber> = state.posts.keys().copied().collect();
            for post in all {
                state.settle(post);
            }
        } else {
            state.settle(post);
        }
        state.wake_driver();
        if !ids.is_empty() {
            drop(guard);
            return Ok(HttpSessionSubmitResult::Waiting(PostReplyFuture::new(Arc::clone(self), post)));
        }
        let refusal = state.posts.remove(&post).and_then(ServerSessionPost::into_first_message);
        Ok(refusal.map_or(HttpSessionSubmitResult::Accepted, HttpSessionSubmitResult::Refused))
    }

    /// Answers a GET of the client: opens the stream on which the session sends messages that belong to no request.
    pub(crate) fn listen(self: &Arc<Self>) -> Result<ServerHttpSessionStream, UnknownEventId> {
        let mut state = self.lock();
        let now = self.runtime.now();
        let stream = state.standalone;
        let cursor = state.log.attach(stream).ok_or(UnknownEventId)?;
        if state.log.unread(stream) == 0 {
            state.prime(now, stream, self.timing.retry);
        }
        Ok(ServerHttpSessionStream::attached(Arc::clone(self), &mut state, cursor))
    }

    /// Resumes an event stream after the last event that the client has read.
    pub(crate) fn resume(self: &Arc<Self>, last_event_id: &str) -> Result<ServerHttpSessionStream, UnknownEventId> {
        let mut state = self.lock();
        let (prefix, position) = last_event_id.split_once('-').ok_or(UnknownEventId)?;
        if prefix != format!("{:x}", state.event_id_prefix) {
            return Err(UnknownEventId);
        }
        let cursor = state.log.resume(position)?;
        Ok(ServerHttpSessionStream::attached(Arc::clone(self), &mut state, cursor))
    }

    /// Restarts the idle timeout of the session, because the client has sent something.
    pub(crate) fn note_used(&self) {
        self.lock().last_used = self.runtime.now();
    }

    /// Starts the graceful shutdown of this session: running handlers may still respond until the drain deadline, then
    /// the session ends.
    pub(crate) fn shut_down(&self) {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.engine.connection.shut_down(now);
        state.engine.process_events();
        state.deliver(now, None);
        state.wake_driver();
    }

    /// Ends the session and stops its handlers, because the client has ended the session or is gone. Running requests
    /// get an error response where an HTTP response is open: a client that got 404 instead would assume that its
    /// requests were never begun, and send them again.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        let now = self.runtime.now();
        state.end(now);
    }

    fn lock(&self) -> MutexGuard<'_, ServerHttpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHttpSessionState {
    fn wake_reader(&mut self, stream: SseStreamKey) {
        if let Some(reader) = self.readers.remove(&stream) {
            reader.wake();
        }
    }

    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    fn end(&mut self, now: Moment) {
        if self.ended {
            return;
        }
        self.engine.connection.handle_peer_ended(now);
        self.engine.process_events();
        self.deliver(now, None);
        self.finish();
        self.wake_driver();
    }

    /// Wakes every HTTP response of the session, so that it notices the end of the session.
    fn finish(&mut self) {
        self.ended = true;
        std::mem::take(&mut self.readers).into_values().for_each(Waker::wake);
        self.posts.values_mut().for_each(ServerSessionPost::wake);
    }

    /// Notes that an HTTP response of the session was dropped or is complete.
    fn note_response_closed(&mut self, now: Moment) {
        self.open_responses = self.open_responses.saturating_sub(1);
        self.last_used = now;
        self.wake_driver();
    }
}
