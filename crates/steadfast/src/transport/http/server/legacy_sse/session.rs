//! An HTTP+SSE session on the server: a connection that receives messages in POSTs and sends messages on one event
//! stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use steadfast_model::{Principal, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::InboundRequestKey;
use steadfast_proto::envelope::Message;

use crate::runtime::{ConnectionEngine, DriverMailbox, Runtime};
use crate::server::ServerDispatcher;
use crate::transport::http::server::load::{ServerLoadLimiter, ServerLoadPermit};
use crate::transport::http::server::service::HttpServiceState;

/// One HTTP+SSE session on the server.
pub(crate) struct ServerLegacySseSession {
    id: Box<str>,
    /// The identity of the principal that opened the session.
    owner: Option<String>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) load: Arc<ServerLoadLimiter>,
    idle: Duration,
    pub(crate) keep_alive: Duration,
    state: Mutex<ServerLegacySseSessionState>,
}

pub(crate) struct ServerLegacySseSessionState {
    pub(crate) engine: ConnectionEngine<ServerDispatcher>,
    /// Wakes the stream.
    pub(crate) reader: Option<Waker>,
    pub(crate) driver: Option<Waker>,
    opened: Moment,
    /// When the client last sent something, or read something from the stream.
    pub(crate) last_used: Moment,
    /// The event stream of the HTTP+SSE session has closed, or the session was ended.
    pub(crate) ended: bool,
    /// The load permits of received messages, each with the keys of the requests in the message.
    permits: Vec<(Vec<InboundRequestKey>, ServerLoadPermit)>,
}

/// Why the session did not accept a message of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LegacySseSubmitError {
    SessionEnded,
    /// Too many bytes wait until the client reads them from the event stream.
    OutputFull,
    /// A request with the same id is running.
    IdInUse,
}

impl ServerLegacySseSession {
    /// Creates a session with a random id.
    pub(crate) fn new(
        shared: &HttpServiceState,
        runtime: Arc<dyn Runtime>,
        principal: Option<Principal>,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        let server = shared.server.clone();
        let service = |mailbox: &Arc<DriverMailbox>| {
            mailbox.identify(principal.as_ref());
            ServerDispatcher::new(server, mailbox)
        };
        let engine =
            ConnectionEngine::new(service, Arc::clone(&shared.hello), shared.limits.clone(), Arc::clone(&runtime));
        let now = runtime.now();
        let state = ServerLegacySseSessionState {
            engine,
            reader: None,
            driver: None,
            opened: now,
            last_used: now,
            ended: false,
            permits: Vec::new(),
        };
        let (idle, keep_alive) = (shared.options.session_idle_timeout, shared.options.comment_interval);
        let id = format!("{:032x}", u128::from_be_bytes(random)).into_boxed_str();
        let owner = principal.map(|principal| principal.identity());
        let load = Arc::clone(&shared.load);
        Ok(Arc::new(Self { id, owner, runtime, load, idle, keep_alive, state: Mutex::new(state) }))
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether `principal` opened the HTTP+SSE session.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner == principal.map(Principal::identity)
    }

    /// Handles a message of the client, which holds requests with these ids. The `permit` counts the
    /// message towards the limits of the HTTP service until nothing of the requests in the message goes on.
    pub(crate) fn submit(
        &self,
        principal: Option<&Principal>,
        message: Message<'_>,
        ids: &[RequestId],
        permit: ServerLoadPermit,
    ) -> Result<(), LegacySseSubmitError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let connection = &mut state.engine.connection;
        if state.ended || connection.closed().is_some() {
            return Err(LegacySseSubmitError::SessionEnded);
        }
        // A response or a cancellation is accepted in any case: it lets a request end, and is never answered. A member of a batch
        // may be answered with an error.
        let is_never_answered = matches!(message, Message::Response { .. } | Message::Notification { .. });
        if !is_never_answered && !connection.wants_input() {
            return Err(LegacySseSubmitError::OutputFull);
        }
        if let [id] = ids
            && connection.key_of(id).is_some()
        {
            return Err(LegacySseSubmitError::IdInUse);
        }
        let now = self.runtime.now();
        state.last_used = now;
        state.engine.mailbox.identify(principal);
        connection.handle_read(now, message);
        let keys: Vec<InboundRequestKey> = ids.iter().filter_map(|id| connection.key_of(id)).collect();
        state.permits.push((keys, permit));
        state.engine.process_events();
        state.release_permits();
        state.wake_reader();
        state.wake_driver();
        Ok(())
    }

    /// Starts the graceful shutdown of this HTTP+SSE session: handlers may still respond until the drain deadline, then
    /// the event stream ends.
    pub(crate) fn shut_down(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.engine.connection.shut_down(self.runtime.now());
        state.engine.process_events();
        state.wake_reader();
        state.wake_driver();
    }

    /// Ends the HTTP+SSE session and stops its handlers, because its event stream has closed or the HTTP service is
    /// gone.
    pub(crate) fn end(&self) {
        self.lock().end(self.runtime.now());
    }

    /// When the session ends if its client is idle. A client that reads its event stream is not idle, because it gets a
    /// comment at every keep-alive interval; a client that does not begin its handshake must not hold a session.
    pub(crate) fn idle_deadline(&self, state: &ServerLegacySseSessionState) -> Moment {
        match state.engine.connection.peer() {
            Some(_) => state.last_used + self.idle.max(self.keep_alive.saturating_mul(2)),
            None => state.opened + self.idle,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ServerLegacySseSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerLegacySseSessionState {
    pub(crate) fn end(&mut self, now: Moment) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.engine.connection.handle_write_failed(now);
        self.engine.process_events();
        self.wake_reader();
        self.wake_driver();
    }

    /// Drops the load permits of messages of whose requests nothing goes on.
    pub(crate) fn release_permits(&mut self) {
        let connection = &self.engine.connection;
        self.permits.retain(|(keys, _)| keys.iter().any(|key| connection.is_live(*key)));
    }

    pub(crate) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wake_driver(&mut self) {
        self.driver.take().into_iter().for_each(Waker::wake);
    }
}
