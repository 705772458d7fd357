//! The engine: a connection, the handlers that run for it and the calls that wait for it, without the way its messages
//! travel.
//!
//! Whoever owns one carries messages: it takes letters and serves the timer in [`Engine::turn`], gives what came to
//! the connection and lets the engine act on it, and takes what is to be sent from the connection. A byte stream is carried by
//! the driver beside this file, HTTP by its transport.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Context;

use steadfast_model::Method;
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    CallEnd, CallKey, CallRefused, CloseCause, Connection, Event, Hello, Key, Limits, Peer, Request,
};
use steadfast_proto::encode::Answer;
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;
use tokio::sync::watch;

use super::calls::CallSlot;
use super::mailbox::{DriverCommand, Mailbox};
use crate::runtime::handler::execution::Execution;
use crate::runtime::log::{PeerLogRecord, RateLimitedLog};
use crate::runtime::{Runtime, Timer};

/// What a driver asks of what it serves. Called on the driver's thread: must not block and must not run user code.
pub(crate) trait Service: Send + 'static {
    /// Starts a request, or answers it at once.
    fn start(&mut self, request: Request, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) -> DispatchResult;

    /// The handshake of an older revision is done.
    fn opened(&mut self, _peer: &Arc<Peer>) {}

    /// The peer tells something that belongs to no subscription.
    fn notified(&mut self, _method: Method, _params: OwnedParams) {}

    /// This is the result of a call that nobody waits for any more, and that matters all the same.
    fn answered_late(
        &mut self,
        _result: String,
        _peer: &Arc<Peer>,
        _mailbox: &Arc<Mailbox>,
        _runtime: &Arc<dyn Runtime>,
    ) {
    }

    /// The peer tells something, be it to a subscription or not. Comes first.
    fn overheard(&mut self, _method: Method, _params: &OwnedParams) {}
}

/// What became of a request.
pub(crate) enum DispatchResult {
    /// It has its answer.
    Answered(Answer),
    /// It runs.
    Running(Arc<Execution>),
    /// It is a stream of notifications that has begun, and this is what its acknowledgement says.
    Listening {
        /// What lasts as long as the stream.
        execution: Arc<Execution>,
        /// The text of the parameters.
        acknowledged: Box<str>,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionEnd {
    /// Why.
    pub cause: CloseCause,
    /// Executions that had not ended when the time was up: blocked threads and workers.
    pub abandoned: usize,
}

/// One connection at work.
pub(crate) struct Engine<S> {
    pub(crate) connection: Connection,
    service: S,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) timer: Box<dyn Timer>,
    executions: BTreeMap<Key, Arc<Execution>>,
    calls: BTreeMap<CallKey, Arc<CallSlot>>,
    commands: Vec<DriverCommand>,
    log: RateLimitedLog,
    ended: Option<ConnectionEnd>,
    /// Requests whose handlers have let their client's connection go, where whoever carries the messages can do that.
    released_streams: Option<Vec<Key>>,
    /// Calls that have ended, where whoever carries the messages carries each call by itself.
    ended_calls: Option<Vec<CallKey>>,
    /// Tells that no more calls are taken, where somebody waits for that.
    refuses_calls: Option<watch::Sender<bool>>,
}

impl<S: Service> Engine<S> {
    /// An engine; `service` is given the way to it.
    pub(crate) fn new(
        service: impl FnOnce(&Arc<Mailbox>) -> S,
        hello: impl Into<Arc<Hello>>,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let mailbox = Mailbox::new(&limits);
        let service = service(&mailbox);
        Self {
            connection: Connection::new(hello, limits),
            service,
            mailbox,
            timer: runtime.timer(),
            runtime,
            executions: BTreeMap::new(),
            calls: BTreeMap::new(),
            commands: Vec::new(),
            log: RateLimitedLog::default(),
            ended: None,
            released_streams: None,
            ended_calls: None,
            refuses_calls: None,
        }
    }

    /// Tells when the connection takes no more calls: that is before it has ended, if its last words are slow to leave.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.refuses_calls.get_or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    /// Takes note of requests whose handlers let their client's connection go.
    #[cfg(feature = "http")]
    pub(crate) fn release_streams(&mut self) {
        self.released_streams = Some(Vec::new());
    }

    /// The requests whose handlers have let go since it was asked last.
    #[cfg(feature = "http")]
    pub(crate) fn released_streams(&mut self) -> Vec<Key> {
        self.released_streams.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes note of calls that end.
    #[cfg(feature = "http-client")]
    pub(crate) fn keep_ended_calls(&mut self) {
        self.ended_calls = Some(Vec::new());
    }

    /// The calls that have ended since it was asked last.
    #[cfg(feature = "http-client")]
    pub(crate) fn ended_calls(&mut self) -> Vec<CallKey> {
        self.ended_calls.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How the connection ended, once it has.
    pub(crate) fn ended(&self) -> Option<ConnectionEnd> {
        self.ended
    }

    /// How many handlers are under way.
    pub(crate) fn running(&self) -> usize {
        self.executions.len()
    }

    /// Takes letters and serves the timer. Returns whether there was anything to do.
    pub(crate) fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progressed = self.collect();
        if self.timer.poll(cx).is_ready() {
            self.connection.handle_timeout(self.runtime.now());
            progressed = true;
        }
        progressed
    }

    /// Takes the letters. Returns whether there were any.
    pub(crate) fn collect(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        self.mailbox.collect(&mut commands);
        let any = !commands.is_empty();
        let now = self.runtime.now();
        for command in commands.drain(..) {
            self.open_letter(now, command);
        }
        self.commands = commands;
        any
    }

    /// Before its owner sleeps: those who wait for room learn that there is some, and the timer and the next letter wake
    /// the owner. `unwritten` is what the owner holds beside the connection. Returns whether there is something to do
    /// right now instead.
    pub(crate) fn rest(&mut self, cx: &mut Context<'_>, unwritten: usize, progressed: bool) -> bool {
        let held = self.connection.waiting_bytes() + unwritten;
        let more = self.mailbox.update_room(held);
        self.timer.reset(self.connection.poll_timeout());
        if more || progressed || self.mailbox.listen(cx) {
            return true;
        }
        // A timer that was set just now has to be polled to wake us.
        let due = self.timer.poll(cx).is_ready();
        if due {
            self.connection.handle_timeout(self.runtime.now());
        }
        due
    }

    /// Does what the core says.
    pub(crate) fn act(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Start(request) => self.start(request),
                Event::Stop { key, reason } => {
                    if let Some(execution) = self.executions.get(&key) {
                        execution.stop(reason);
                    }
                }
                Event::CallEnded { call, outcome } => {
                    if let Some(ended) = &mut self.ended_calls {
                        ended.push(call);
                    }
                    let call = self.calls.keys().next().copied().filter(|_| mutant!(CrossCalls)).unwrap_or(call);
                    if let Some(slot) = self.calls.remove(&call)
                        && let Some(result) = slot.end(outcome)
                    {
                        self.hand_over_late(result);
                    }
                }
                Event::LateResult(result) => self.hand_over_late(result),
                Event::CallProgress { call, progress } => {
                    let call = self.calls.keys().next().copied().filter(|_| mutant!(CrossProgress)).unwrap_or(call);
                    if let Some(slot) = self.calls.get(&call) {
                        slot.progress(progress);
                    }
                }
                Event::Notification { call, method, params } => {
                    self.service.overheard(method, &params);
                    match call.and_then(|call| self.calls.get(&call)) {
                        Some(slot) => slot.notice(method, params),
                        None => self.service.notified(method, params),
                    }
                }
                Event::Opened(peer) => self.service.opened(&peer),
                Event::Warning(warning) => self.log.note(self.runtime.now(), PeerLogRecord::Odd(warning)),
                Event::Closed(cause) => {
                    let abandoned = self.connection.statistics().abandoned;
                    self.ended = Some(ConnectionEnd { cause, abandoned });
                }
            }
        }
        // Behind the events, so that calls that wait learn of their end first.
        if let Some(refuses_calls) = &self.refuses_calls
            && self.connection.refuses_calls()
        {
            refuses_calls.send_if_modified(|told| !std::mem::replace(told, true));
        }
    }

    fn open_letter(&mut self, now: Moment, command: DriverCommand) {
        match command {
            DriverCommand::Answer { key, answer } => {
                self.fetch_progress(now, key);
                self.connection.respond(now, key, answer);
            }
            DriverCommand::Finished { key, answer } => {
                self.fetch_progress(now, key);
                self.connection.respond(now, key, answer);
                self.end_execution(now, key);
            }
            DriverCommand::Ended { key } => self.end_execution(now, key),
            DriverCommand::Progress { key } => self.fetch_progress(now, key),
            DriverCommand::Log { key, level, logger, data } => {
                if let Some(execution) = self.executions.get(&key) {
                    execution.log_fetched();
                }
                self.connection.log(key, level, logger, data);
            }
            DriverCommand::Call { key, call, slot } => {
                let made = self.connection.call(now, key, call);
                self.enter_call(key, slot, made);
            }
            DriverCommand::Initialize { key, call, offered, slot } => {
                let made = self.connection.initialize(now, key, call, offered);
                self.enter_call(key, slot, made);
            }
            DriverCommand::SpeakModern(peer) => self.connection.open_stateless(*peer),
            // Whoever still waits for it learns whether it was sent.
            DriverCommand::CancelCall(call) => self.connection.cancel_call(now, call, None),
            DriverCommand::Notices(notifications) => notifications.hand_over(&mut self.connection),
            DriverCommand::ReleaseStream { key } => {
                if let Some(released) = &mut self.released_streams {
                    released.push(key);
                }
            }
            DriverCommand::ShutDown { at_once: false } => self.connection.shut_down(now),
            DriverCommand::ShutDown { at_once: true } => self.connection.shut_down_now(now),
        }
    }

    fn enter_call(&mut self, key: CallKey, slot: Arc<CallSlot>, made: Result<(), CallRefused>) {
        match made {
            Ok(()) => drop(self.calls.insert(key, slot)),
            Err(refused) => drop(slot.end(CallEnd::NotMade(refused))),
        }
    }

    fn hand_over_late(&mut self, result: Box<str>) {
        if let Some(peer) = self.connection.peer() {
            self.service.answered_late(result.into_string(), peer, &self.mailbox, &self.runtime);
        }
    }

    fn end_execution(&mut self, now: Moment, key: Key) {
        self.connection.handle_execution_ended(now, key);
        if let Some(execution) = self.executions.remove(&key) {
            execution.release();
        }
    }

    fn fetch_progress(&mut self, now: Moment, key: Key) {
        if let Some(progress) = self.executions.get(&key).and_then(|execution| execution.fetch_progress()) {
            self.connection.progress(now, key, progress);
        }
    }

    fn start(&mut self, request: Request) {
        let key = request.key;
        match self.service.start(request, &self.mailbox, &self.runtime) {
            DispatchResult::Running(execution) => drop(self.executions.insert(key, execution)),
            DispatchResult::Listening { execution, acknowledged } => {
                self.executions.insert(key, execution);
                // Here and now, so that it goes before all that the stream is told.
                self.connection.notify_about(key, Method::SubscriptionAcknowledged, &acknowledged);
            }
            DispatchResult::Answered(answer) => {
                let now = self.runtime.now();
                self.connection.respond(now, key, answer);
                self.connection.handle_execution_ended(now, key);
            }
        }
    }
}

impl<S> Engine<S> {
    /// Everyone who still waits learns that the connection is gone.
    pub(crate) fn wind_up(&mut self) {
        for execution in std::mem::take(&mut self.executions).into_values() {
            execution.abandon();
        }
        for slot in std::mem::take(&mut self.calls).into_values() {
            slot.end(CallEnd::Closed { sent: true });
        }
        for command in self.mailbox.close() {
            if let DriverCommand::Call { slot, .. } | DriverCommand::Initialize { slot, .. } = command {
                slot.end(CallEnd::NotMade(CallRefused::Closed));
            }
        }
    }
}

impl<S> Drop for Engine<S> {
    fn drop(&mut self) {
        self.wind_up();
    }
}
