//! The engine: a connection, its running handlers and its calls, without a transport.
//!
//! The owner of an engine moves messages between the engine's connection and the transport. In each turn the owner lets
//! the engine run commands and the timer ([`ConnectionEngine::run_commands_and_timer`]), gives received messages to the
//! connection, lets the engine process the events that follow ([`ConnectionEngine::process_events`]), and takes the
//! messages to send from the connection. `ConnectionDriver` owns the engine of a connection over a byte stream; the
//! drivers in `transport::http` own the engines of HTTP connections.

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

/// Dispatches the peer's requests and notifications for the server or client that a connection belongs to. The
/// dispatcher is called on the driver's thread: it must not block and must not run user code.
pub(crate) trait InboundDispatcher: Send + 'static {
    /// Starts the handler of a request, or responds at once.
    fn start(
        &mut self,
        request: Request,
        mailbox: &Arc<DriverMailbox>,
        runtime: &Arc<dyn Runtime>,
    ) -> InboundDispatchResult;

    /// Called when the `initialize` handshake has completed (revisions up to 2025-11-25).
    fn on_initialized(&mut self, _peer: &Arc<PeerInfo>) {}

    /// Called when the peer has sent a notification that belongs to no subscription.
    fn on_notification(&mut self, _notification: PeerNotification<'_>) {}

    /// Called when the result of a call has arrived after the caller dropped the call, and the result is needed
    /// nevertheless.
    fn on_late_result(
        &mut self,
        _result: String,
        _peer: &Arc<PeerInfo>,
        _mailbox: &Arc<DriverMailbox>,
        _runtime: &Arc<dyn Runtime>,
    ) {
    }

    /// Called when the connection has ended.
    fn on_closed(&mut self) {}

    /// Called for each notification of the peer, whether it belongs to a subscription or not, before the notification
    /// is delivered.
    fn observe_notification(&mut self, _method: Method, _params: &OwnedParams) {}
}

/// What [`InboundDispatcher::start`] did with a request.
pub(crate) enum InboundDispatchResult {
    /// The dispatcher has responded to the request at once, so no handler runs.
    Answered(EncodedResponse),
    /// The handler of the request runs.
    Running(Arc<HandlerExecution>),
    /// The request has opened a stream of notifications to the client, which the driver has to acknowledge.
    Listening {
        /// Exists as long as the stream of notifications.
        execution: Arc<HandlerExecution>,
        /// The parameters of the notification that acknowledges the stream, as JSON text.
        acknowledged: Box<str>,
    },
}

/// How a connection ended: why it closed, and how many handlers were abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCloseReport {
    /// Why the connection closed.
    pub cause: CloseCause,
    /// The number of handlers that had not ended at the drain deadline, because they blocked a thread.
    pub abandoned: usize,
}

/// The engine of a connection: the protocol state, the running handlers and the calls in flight, without a transport.
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
    /// The requests whose handlers have let the client disconnect since the last call of `take_released_streams`;
    /// `None` if such requests are not tracked.
    released_streams: Option<Vec<InboundRequestKey>>,
    /// The calls that have ended since the last call of `take_ended_calls`; `None` if ended calls are not tracked.
    ended_calls: Option<Vec<CallKey>>,
    /// Sends true when the connection accepts no more calls; `None` until there is a receiver.
    refuses_calls: Option<watch::Sender<bool>>,
}

impl<S: InboundDispatcher> ConnectionEngine<S> {
    /// Creates an engine. `service` is called with the mailbox of the new engine.
    pub(crate) fn new(
        service: impl FnOnce(&Arc<DriverMailbox>) -> S,
        hello: impl Into<Arc<ClientOrServerDescription>>,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let io_loop = runtime.as_tokio().and_then(|tokio| tokio.io_loop().cloned());
        let mailbox = DriverMailbox::new(&limits, io_loop);
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

    /// Returns a receiver whose value becomes true when the connection accepts no more calls. A connection whose last
    /// output is written slowly stops accepting calls before it ends.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.refuses_calls.get_or_insert_with(|| watch::Sender::new(false)).subscribe()
    }

    /// From now on, records the requests whose handlers let the client disconnect, for `take_released_streams`.
    #[cfg(feature = "http")]
    pub(crate) fn track_released_streams(&mut self) {
        self.released_streams = Some(Vec::new());
    }

    /// Returns the requests whose handlers have let the client disconnect since this function was last called.
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

    /// Returns how the connection ended, or `None` if it has not ended.
    pub(crate) fn ended(&self) -> Option<ConnectionCloseReport> {
        self.ended
    }

    /// Runs the commands in the driver's mailbox, and handles a timeout of the connection that is due. Returns
    /// whether the mailbox had commands or a timeout of the connection was due.
    pub(crate) fn run_commands_and_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progressed = self.run_commands();
        if self.timer.poll(cx).is_ready() {
            self.connection.handle_timeout(self.runtime.now());
            progressed = true;
        }
        progressed
    }

    /// Runs the commands in the driver's mailbox. Returns whether the mailbox had commands.
    pub(crate) fn run_commands(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        self.mailbox.take_commands(&mut commands);
        let any = !commands.is_empty();
        if any {
            let now = self.runtime.now();
            for command in commands.drain(..) {
                self.run_command(now, command);
            }
        }
        self.commands = commands;
        any
    }

    /// Prepares the task that owns the engine to sleep: updates the output budget, and registers the task to be woken
    /// by the timer and by the next command. `unwritten` is the number of unwritten bytes that the owner of the engine
    /// holds, in addition to those in the connection. Returns true if the task must not sleep, because the engine has
    /// something to do.
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

    /// Processes the events of the connection. Returns whether there were any.
    pub(crate) fn process_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.connection.poll_event() {
            any = true;
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
        any
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
    /// Closes the driver's mailbox, abandons all handlers and ends all calls, because the connection is gone.
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
