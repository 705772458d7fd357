//! The engine: a connection, its running handlers and its calls, without a transport.
//!
//! The owner of an engine moves the messages. In each turn it has the engine run commands and the timer
//! ([`ConnectionEngine::run_commands_and_timer`]), gives received messages to the connection, has the engine process the events that follow
//! ([`ConnectionEngine::process_events`]), and takes the messages to send from the connection. The driver in this folder does that for a byte
//! stream, the drivers in `transport::http` do it for HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Context;

use steadfast_model::Method;
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    CallEnd, CallKey, ClientOrServerDescription, CloseCause, Connection, ConnectionEvent, InboundRequestKey, Limits,
    NotSentReason, PeerInfo, Request,
};
use steadfast_proto::encode::EncodedResponse;
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::mutant;
use tokio::sync::watch;

use super::calls::CallSlot;
use super::mailbox::{DriverCommand, DriverMailbox};
use super::notification_handlers::PeerNotification;
use crate::runtime::handler::execution::HandlerExecution;
use crate::runtime::log::{PeerWarningRecord, RateLimitedLog};
use crate::runtime::{Runtime, Timer};

/// The server or client that a connection belongs to. Called on the driver's thread: must not block and must not run user code.
pub(crate) trait InboundDispatcher: Send + 'static {
    /// Starts the handler of a request, or responds at once.
    fn start(
        &mut self,
        request: Request,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> InboundDispatchResult;

    /// The `initialize` handshake has completed (revisions up to 2025-11-25).
    fn on_initialized(&mut self, _peer: &Arc<PeerInfo>) {}

    /// The peer sent a notification that belongs to no subscription.
    fn on_notification(&mut self, _notification: PeerNotification<'_>) {}

    /// The result of a call has arrived after the caller dropped its future, and is needed all the same.
    fn on_late_result(
        &mut self,
        _result: String,
        _peer: &Arc<PeerInfo>,
        _mailbox: &Arc<DriverMailbox>,
        _runtime: &Arc<dyn Runtime>,
    ) {
    }

    /// The connection has ended.
    fn on_closed(&mut self) {}

    /// The peer sent a notification, whether it belongs to a subscription or not. Called before the notification is delivered.
    fn observe_notification(&mut self, _method: Method, _params: &OwnedParams) {}
}

/// What [`InboundDispatcher::start`] did with a request.
pub(crate) enum InboundDispatchResult {
    /// The request has its response.
    Answered(EncodedResponse),
    /// The handler of the request runs.
    Running(Arc<HandlerExecution>),
    /// The request is a stream of notifications, which has begun and has to be acknowledged.
    Listening {
        /// Exists as long as the stream.
        execution: Arc<HandlerExecution>,
        /// The JSON text of the parameters of the acknowledgement.
        acknowledged: Box<str>,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCloseReport {
    /// Why the connection closed.
    pub cause: CloseCause,
    /// How many handlers had not ended at the drain deadline, because they block a thread or a worker.
    pub abandoned: usize,
}

/// A connection with its handlers and calls.
pub(crate) struct ConnectionEngine<S> {
    pub(crate) connection: Connection,
    service: S,
    pub(crate) mailbox: Arc<DriverMailbox>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) timer: Box<dyn Timer>,
    executions: BTreeMap<InboundRequestKey, Arc<HandlerExecution>>,
    calls: BTreeMap<CallKey, Arc<CallSlot>>,
    commands: Vec<DriverCommand>,
    log: RateLimitedLog,
    ended: Option<ConnectionCloseReport>,
    /// Requests whose handlers allowed the client to disconnect, since they were last taken; `None` if they are not tracked.
    released_streams: Option<Vec<InboundRequestKey>>,
    /// Calls that have ended since the owner of the engine last took them; set if the owner tracks them.
    ended_calls: Option<Vec<CallKey>>,
    /// Becomes true when the connection accepts no more calls; set once there is a receiver.
    refuses_calls: Option<watch::Sender<bool>>,
}

impl<S: InboundDispatcher> ConnectionEngine<S> {
    /// An engine. `service` is called with its mailbox.
    pub(crate) fn new(
        service: impl FnOnce(&Arc<DriverMailbox>) -> S,
        hello: impl Into<Arc<ClientOrServerDescription>>,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let mailbox = DriverMailbox::new(&limits);
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

    /// Becomes true when the connection accepts no more calls. That is before its end, if the last output is slow to be written.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.refuses_calls.get_or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    /// Records from now on which requests let their client disconnect.
    #[cfg(feature = "http")]
    pub(crate) fn track_released_streams(&mut self) {
        self.released_streams = Some(Vec::new());
    }

    /// Takes the requests that have let their client disconnect since the last call of this.
    #[cfg(feature = "http")]
    pub(crate) fn take_released_streams(&mut self) -> Vec<InboundRequestKey> {
        self.released_streams.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on, keeps a list of the calls that end, for `take_ended_calls`.
    #[cfg(feature = "http-client")]
    pub(crate) fn track_ended_calls(&mut self) {
        self.ended_calls = Some(Vec::new());
    }

    /// Returns the calls that have ended since this function was last called.
    #[cfg(feature = "http-client")]
    pub(crate) fn take_ended_calls(&mut self) -> Vec<CallKey> {
        self.ended_calls.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How the connection ended, once it has.
    pub(crate) fn ended(&self) -> Option<ConnectionCloseReport> {
        self.ended
    }

    pub(crate) fn running_handlers(&self) -> usize {
        self.executions.len()
    }

    /// Runs the commands in the mailbox, and handles the timeout if it is due. Returns whether there was anything to do.
    pub(crate) fn run_commands_and_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progressed = self.run_commands();
        if self.timer.poll(cx).is_ready() {
            self.connection.handle_timeout(self.runtime.now());
            progressed = true;
        }
        progressed
    }

    /// Runs the commands in the mailbox. Returns whether there were any.
    pub(crate) fn run_commands(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        self.mailbox.take_commands(&mut commands);
        let any = !commands.is_empty();
        let now = self.runtime.now();
        for command in commands.drain(..) {
            self.run_command(now, command);
        }
        self.commands = commands;
        any
    }

    /// Prepares the owner's task to sleep: updates the output budget, and has the timer and the next command wake the task.
    /// `unwritten` is how many bytes the owner holds in addition to the connection. Returns true if the task must not sleep,
    /// because there is something to do.
    pub(crate) fn prepare_sleep(&mut self, cx: &mut Context<'_>, unwritten: usize, progressed: bool) -> bool {
        let held = self.connection.waiting_bytes() + unwritten;
        let more = self.mailbox.budget().set_held(held);
        self.timer.reset(self.connection.poll_timeout());
        if more || progressed || self.mailbox.register_driver(cx) {
            return true;
        }
        // A timer that was just set has to be polled once, or it would not wake the task.
        let due = self.timer.poll(cx).is_ready();
        if due {
            self.connection.handle_timeout(self.runtime.now());
        }
        due
    }

    /// Processes the events of the connection.
    pub(crate) fn process_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                ConnectionEvent::Start(request) => self.start(request),
                ConnectionEvent::Stop { key, reason } => {
                    if let Some(execution) = self.executions.get(&key) {
                        execution.stop(reason);
                    }
                }
                ConnectionEvent::CallEnded { call, outcome } => {
                    if let Some(ended) = &mut self.ended_calls {
                        ended.push(call);
                    }
                    let call = self.calls.keys().next().copied().filter(|_| mutant!(CrossCalls)).unwrap_or(call);
                    if let Some(slot) = self.calls.remove(&call)
                        && let Some(result) = slot.end(outcome)
                    {
                        self.deliver_late_result(result);
                    }
                }
                ConnectionEvent::LateResult(result) => self.deliver_late_result(result),
                ConnectionEvent::CallProgress { call, progress } => {
                    let call = self.calls.keys().next().copied().filter(|_| mutant!(CrossProgress)).unwrap_or(call);
                    if let Some(slot) = self.calls.get(&call) {
                        slot.push_progress(progress);
                    }
                }
                ConnectionEvent::Notification { call, method, params } => {
                    self.service.observe_notification(method, &params);
                    match call.and_then(|call| self.calls.get(&call)) {
                        Some(slot) => slot.push_notification(method, params),
                        None => self.service.on_notification(PeerNotification {
                            method,
                            params,
                            peer: self.connection.last_peer(),
                            mailbox: &self.mailbox,
                            runtime: &self.runtime,
                        }),
                    }
                }
                ConnectionEvent::Opened(peer) => self.service.on_initialized(&peer),
                ConnectionEvent::Warning(warning) => {
                    self.log.write(self.runtime.now(), PeerWarningRecord::Protocol(warning));
                }
                ConnectionEvent::Closed(cause) => {
                    let abandoned = self.connection.statistics().abandoned;
                    self.ended = Some(ConnectionCloseReport { cause, abandoned });
                    self.service.on_closed();
                }
            }
        }
        // After the events, so that calls in flight get their end first.
        if let Some(refuses_calls) = &self.refuses_calls
            && self.connection.refuses_calls()
        {
            refuses_calls.send_if_modified(|refuses| !std::mem::replace(refuses, true));
        }
    }

    fn run_command(&mut self, now: Moment, command: DriverCommand) {
        match command {
            DriverCommand::Respond { key, response } => {
                self.send_progress(now, key);
                self.connection.respond(now, key, response);
            }
            DriverCommand::RespondAndEnd { key, response } => {
                self.send_progress(now, key);
                self.connection.respond(now, key, response);
                self.end_execution(now, key);
            }
            DriverCommand::EndExecution { key } => self.end_execution(now, key),
            DriverCommand::SendProgress { key } => self.send_progress(now, key),
            DriverCommand::Log { key, level, logger, data } => {
                if let Some(execution) = self.executions.get(&key) {
                    execution.release_log();
                }
                self.connection.log(key, level, logger, data);
            }
            DriverCommand::Call { key, call, slot } => {
                let accepted = self.connection.call(now, key, call);
                self.register_call(key, slot, accepted);
            }
            DriverCommand::Initialize { key, call, offered, slot } => {
                let accepted = self.connection.initialize(now, key, call, offered);
                self.register_call(key, slot, accepted);
            }
            DriverCommand::OpenStateless(peer) => self.connection.open_stateless(*peer),
            // A caller that still waits gets an end that says whether the request was sent.
            DriverCommand::CancelCall(call) => self.connection.cancel_call(now, call, None),
            DriverCommand::Notify(notifications) => notifications.send_on(&mut self.connection),
            DriverCommand::NotifyVendor { request, method, params } => {
                match request {
                    Some(key) => self.executions.get(&key).into_iter().for_each(|execution| execution.release_log()),
                    None => self.mailbox.release_vendor_bytes(params.len()),
                }
                self.connection.notify_vendor(request, method, &params);
            }
            DriverCommand::ReleaseStream { key } => {
                if let Some(released) = &mut self.released_streams {
                    released.push(key);
                }
            }
            DriverCommand::ShutDown { at_once: false } => self.connection.shut_down(now),
            DriverCommand::ShutDown { at_once: true } => self.connection.shut_down_now(now),
        }
    }

    fn register_call(&mut self, key: CallKey, slot: Arc<CallSlot>, accepted: Result<(), NotSentReason>) {
        match accepted {
            Ok(()) => drop(self.calls.insert(key, slot)),
            Err(refused) => drop(slot.end(CallEnd::NotSent(refused))),
        }
    }

    fn deliver_late_result(&mut self, result: Box<str>) {
        if let Some(peer) = self.connection.peer() {
            self.service.on_late_result(result.into_string(), peer, &self.mailbox, &self.runtime);
        }
    }

    fn end_execution(&mut self, now: Moment, key: InboundRequestKey) {
        self.connection.handle_execution_ended(now, key);
        if let Some(execution) = self.executions.remove(&key) {
            execution.close();
        }
    }

    fn send_progress(&mut self, now: Moment, key: InboundRequestKey) {
        if let Some(progress) = self.executions.get(&key).and_then(|execution| execution.take_progress()) {
            self.connection.progress(now, key, progress);
        }
    }

    fn start(&mut self, request: Request) {
        let key = request.key;
        match self.service.start(request, &self.mailbox, &self.runtime) {
            InboundDispatchResult::Running(execution) => drop(self.executions.insert(key, execution)),
            InboundDispatchResult::Listening { execution, acknowledged } => {
                self.executions.insert(key, execution);
                // At once, so that it is sent before all notifications of the stream.
                self.connection.notify_about(key, Method::SubscriptionAcknowledged, &acknowledged);
            }
            InboundDispatchResult::Answered(answer) => {
                let now = self.runtime.now();
                self.connection.respond(now, key, answer);
                self.connection.handle_execution_ended(now, key);
            }
        }
    }
}

impl<S> ConnectionEngine<S> {
    /// Closes the mailbox, abandons all handlers and ends all calls: the connection is gone.
    pub(crate) fn abandon_all(&mut self) {
        for execution in std::mem::take(&mut self.executions).into_values() {
            execution.abandon();
        }
        for slot in std::mem::take(&mut self.calls).into_values() {
            slot.end(CallEnd::Closed { sent: true });
        }
        for command in self.mailbox.close() {
            if let DriverCommand::Call { slot, .. } | DriverCommand::Initialize { slot, .. } = command {
                slot.end(CallEnd::NotSent(NotSentReason::Closed));
            }
        }
    }
}

impl<S> Drop for ConnectionEngine<S> {
    fn drop(&mut self) {
        self.abandon_all();
    }
}
