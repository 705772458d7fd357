//! A session of the old transport: a connection whose messages come in POSTs and leave on one stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use steadfast_model::{Principal, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::Key;

use crate::runtime::{Engine, Mailbox, Runtime};
use crate::server::ServerService;
use crate::transport::http::server::load::{Load, Permit};
use crate::transport::http::server::service::Shared;

/// One session.
pub(crate) struct SseSession {
    id: Box<str>,
    /// Whose it is.
    owner: Option<String>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) load: Arc<Load>,
    idle: Duration,
    pub(crate) keep_alive: Duration,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) engine: Engine<ServerService>,
    /// Who writes the stream.
    pub(crate) reader: Option<Waker>,
    pub(crate) driver: Option<Waker>,
    opened: Moment,
    /// When the client last sent something, or took something from the stream.
    pub(crate) used: Moment,
    /// Nobody reads the stream any more.
    pub(crate) over: bool,
    /// The shares of messages whose requests have not ended.
    permits: Vec<(Vec<Key>, Permit)>,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmitError {
    /// The stream has closed.
    Gone,
    /// Too much waits on the stream.
    Unread,
    /// A request of this id is running.
    InFlight,
}

impl SseSession {
    /// A session under an id that nobody can guess.
    pub(crate) fn new(
        shared: &Shared,
        runtime: Arc<dyn Runtime>,
        principal: Option<Principal>,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        let server = shared.server.clone();
        let service = |mailbox: &Arc<Mailbox>| {
            mailbox.identify(principal.as_ref());
            ServerService::new(server, mailbox)
        };
        let engine = Engine::new(service, Arc::clone(&shared.hello), shared.limits.clone(), Arc::clone(&runtime));
        let now = runtime.now();
        let state =
            State { engine, reader: None, driver: None, opened: now, used: now, over: false, permits: Vec::new() };
        let (idle, keep_alive) = (shared.options.session_idle, shared.options.keep_alive);
        let id = format!("{:032x}", u128::from_be_bytes(random)).into_boxed_str();
        let owner = principal.map(|principal| principal.identity());
        let load = Arc::clone(&shared.load);
        Ok(Arc::new(Self { id, owner, runtime, load, idle, keep_alive, state: Mutex::new(state) }))
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether it was opened by this principal.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner == principal.map(Principal::identity)
    }

    /// Takes a message of its owner's that has these requests in it. Its share is kept until they have ended.
    pub(crate) fn submit(
        &self,
        principal: Option<&Principal>,
        message: &[u8],
        ids: &[RequestId],
        permit: Permit,
    ) -> Result<(), SubmitError> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let connection = &mut state.engine.connection;
        if state.over || connection.closed().is_some() {
            return Err(SubmitError::Gone);
        }
        // Answers and cancellations are taken in any case: they make room.
        if !ids.is_empty() && !connection.wants_input() {
            return Err(SubmitError::Unread);
        }
        if let [id] = ids
            && connection.key_of(id).is_some()
        {
            return Err(SubmitError::InFlight);
        }
        let now = self.runtime.now();
        state.used = now;
        state.engine.mailbox.identify(principal);
        connection.handle_message(now, message);
        let keys: Vec<Key> = ids.iter().filter_map(|id| connection.key_of(id)).collect();
        state.permits.push((keys, permit));
        state.engine.process_events();
        state.give_back();
        state.wake_reader();
        state.wake_driver();
        Ok(())
    }

    /// The drain window begins; then the stream ends.
    pub(crate) fn shut_down(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.engine.connection.shut_down(self.runtime.now());
        state.engine.process_events();
        state.wake_reader();
        state.wake_driver();
    }

    /// The stream has closed: handlers are told so, and stopped.
    pub(crate) fn end(&self) {
        self.lock().end(self.runtime.now());
    }

    /// How long it may go on in silence. A client that reads has a comment to take now and then; one that never begins
    /// its handshake has no reason to hold a place.
    pub(crate) fn patience(&self, state: &State) -> Moment {
        match state.engine.connection.peer() {
            Some(_) => state.used + self.idle.max(self.keep_alive * 2),
            None => state.opened + self.idle,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(crate) fn end(&mut self, now: Moment) {
        if self.over {
            return;
        }
        self.over = true;
        self.engine.connection.handle_write_failed(now);
        self.engine.process_events();
        self.wake_reader();
        self.wake_driver();
    }

    /// Gives the shares back of what has ended.
    pub(crate) fn give_back(&mut self) {
        let connection = &self.engine.connection;
        self.permits.retain(|(keys, _)| keys.iter().any(|key| connection.is_open(*key)));
    }

    pub(crate) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wake_driver(&mut self) {
        self.driver.take().into_iter().for_each(Waker::wake);
    }
}
