//! One end of a conversation: a real [`Connection`], driven as its documentation says, with every step observed and
//! checked.
//!
//! The end does what a driver does and nothing more: it hands things to the connection, collects what the connection says,
//! and numbers executions and calls. What happens when is decided by the world that owns it.

pub(crate) mod opened;

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::json;
use steadfast_model::{ErrorObject, LoggingLevel, Method, RequestId};
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    Call, CallKey, CancelReason, Connection, ConnectionEvent, InboundRequestKey, ProgressReport, Request,
};
use steadfast_proto::encode::EncodedResponse;

use crate::checkers::{Checkers, LOGS_EACH, Report};
use crate::law::Violation;
use crate::observation::ledger::{Ledger, Settings};
use crate::observation::message::Message;
use crate::observation::trace::Trace;
use crate::observation::{CallNumber, CallRecord, Execution, Observation};
use crate::panics;

/// One end.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    name: &'static str,
    connection: Connection,
    pub(crate) now: Moment,
    /// The key and the id of each execution.
    executions: Vec<(InboundRequestKey, RequestId)>,
    calls: u64,
    logs: u64,
    pub(crate) ledger: Ledger,
    checkers: Checkers,
    report: Report,
    effects: Vec<Effect>,
}

/// What the world has to act on.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "few exist at a time")]
pub(crate) enum Effect {
    /// Run a handler.
    Start { execution: Execution, request: Request },
    /// Stop one.
    Stop { execution: Execution },
    /// It is over.
    Closed,
}

/// What a handler answers. Its number is always in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A result, and so many bytes more.
    Result { padding: usize },
    /// An error of its own.
    Error,
}

/// A frame for the writer.
pub(crate) struct Frame {
    pub(crate) body: Vec<u8>,
    pub(crate) call: Option<CallNumber>,
}

impl Endpoint {
    pub(crate) fn new(name: &'static str, connection: Connection, settings: Arc<Settings>) -> Self {
        Self {
            name,
            connection,
            now: Moment::ORIGIN,
            executions: Vec::new(),
            calls: 0,
            logs: 0,
            ledger: Ledger::new(settings),
            checkers: Checkers::default(),
            report: Report::default(),
            effects: Vec::new(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.ledger.closed
    }

    pub(crate) fn wants_input(&self) -> bool {
        self.connection.wants_input()
    }

    /// When the next timer of the connection fires.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.connection.poll_timeout()
    }

    pub(crate) fn executions(&self) -> usize {
        self.executions.len()
    }

    /// Whether the writer has a frame to write.
    pub(crate) fn has_output(&self) -> bool {
        self.connection.waiting_bytes() > 0 && !self.connection.is_quiet() && !self.ledger.output_failed
    }

    pub(crate) fn statistics(&self) -> &steadfast_proto::connection::ConnectionStatistics {
        self.connection.statistics()
    }

    pub(crate) fn violations(&mut self) -> Vec<Violation> {
        self.report.take()
    }

    pub(crate) fn is_lawful(&self) -> bool {
        self.report.is_empty()
    }

    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}

/// What can be done to it.
impl Endpoint {
    pub(crate) fn receive(&mut self, trace: &mut Trace, message: Arc<Message>) {
        let now = self.now;
        let bytes = Arc::clone(&message.bytes);
        self.step(trace, Observation::Received(message), |connection| connection.handle_message(now, &bytes));
    }

    pub(crate) fn receive_too_long(&mut self, trace: &mut Trace, salvaged: steadfast_proto::salvage::SalvagedFields) {
        let now = self.now;
        let answer = salvaged.shape == steadfast_proto::salvage::SalvagedMessageShape::Response;
        let id = salvaged.id.as_ref().map(|id| id.to_string().into());
        let seen = Observation::Received(Message::too_long(answer, id));
        self.step(trace, seen, |connection| connection.handle_too_long(now, salvaged));
    }

    pub(crate) fn take_frame(&mut self, trace: &mut Trace) -> Option<Frame> {
        if self.ledger.panicked {
            return None;
        }
        let transmit = self.connection.poll_transmit()?;
        let call = transmit.call().map(|call| self.call_number(call));
        self.note(trace, Observation::Sent { message: Message::read(&transmit.body), call });
        self.settle(trace);
        Some(Frame { body: transmit.body, call })
    }

    pub(crate) fn first_byte(&mut self, trace: &mut Trace, call: CallNumber) {
        self.step(trace, Observation::FirstByte(call), |connection| connection.handle_call_sent(CallKey::new(call)));
    }

    pub(crate) fn flushed(&mut self, trace: &mut Trace) {
        self.step(trace, Observation::Flushed, Connection::handle_flushed);
    }

    pub(crate) fn end_input(&mut self, trace: &mut Trace) {
        let now = self.now;
        self.step(trace, Observation::InputEnded, |connection| connection.handle_end_of_input(now));
    }

    pub(crate) fn peer_gone(&mut self, trace: &mut Trace) {
        let now = self.now;
        self.step(trace, Observation::PeerGone, |connection| connection.handle_peer_gone(now));
    }

    pub(crate) fn fail_write(&mut self, trace: &mut Trace) {
        let now = self.now;
        self.step(trace, Observation::WriteFailed, |connection| connection.handle_write_failed(now));
    }

    pub(crate) fn shut_down(&mut self, trace: &mut Trace, at_once: bool) {
        let now = self.now;
        self.step(trace, Observation::ShutDown { at_once }, |connection| {
            if at_once { connection.shut_down_now(now) } else { connection.shut_down(now) }
        });
    }

    pub(crate) fn time_out(&mut self, trace: &mut Trace) {
        let now = self.now;
        self.step(trace, Observation::TimedOut, |connection| connection.handle_timeout(now));
    }

    /// A handler answers.
    pub(crate) fn respond(&mut self, trace: &mut Trace, execution: Execution, reply: Reply) {
        let Some((key, id)) = self.execution(execution) else { return };
        let answer = match reply {
            Reply::Result { padding: 0 } => EncodedResponse::serialized(&id, &json!({ "marker": execution })),
            Reply::Result { padding } => {
                EncodedResponse::serialized(&id, &json!({ "marker": execution, "padding": "x".repeat(padding) }))
            }
            Reply::Error => {
                let error = ErrorObject::new(-1, "the handler says no");
                EncodedResponse::error(&id, &error.with_data(json!({ "marker": execution })))
            }
        };
        let now = self.now;
        self.step(trace, Observation::Responded(execution), |connection| connection.respond(now, key, answer));
    }

    pub(crate) fn progress(&mut self, trace: &mut Trace, execution: Execution, value: f64) {
        let Some((key, _)) = self.execution(execution) else { return };
        let now = self.now;
        let progress = ProgressReport::new(value);
        self.step(trace, Observation::Progressed(execution), |connection| connection.progress(now, key, progress));
    }

    pub(crate) fn log(&mut self, trace: &mut Trace, execution: Execution) {
        let Some((key, _)) = self.execution(execution) else { return };
        let marker = execution * LOGS_EACH + self.logs % LOGS_EACH;
        self.logs += 1;
        self.step(trace, Observation::Logged { execution, marker }, |connection| {
            connection.log(key, LoggingLevel::Error, None, json!({ "marker": marker }));
        });
    }

    pub(crate) fn end_execution(&mut self, trace: &mut Trace, execution: Execution) {
        let Some((key, _)) = self.execution(execution) else { return };
        let now = self.now;
        self.step(trace, Observation::ExecutionEnded(execution), |connection| {
            connection.handle_execution_ended(now, key);
        });
    }

    /// Calls the peer. Returns the number of the call, and whether it was taken.
    pub(crate) fn call(&mut self, trace: &mut Trace, call: Call, parent: Option<Execution>) -> (CallNumber, bool) {
        let now = self.now;
        self.make_call(trace, call, parent, |connection, key, call| connection.call(now, key, call).is_ok())
    }

    /// Begins the handshake of the older revisions.
    pub(crate) fn initialize(
        &mut self,
        trace: &mut Trace,
        call: Call,
        offered: steadfast_model::Revision,
    ) -> (CallNumber, bool) {
        let now = self.now;
        self.make_call(trace, call, None, |connection, key, call| {
            connection.initialize(now, key, call, offered).is_ok()
        })
    }

    fn make_call(
        &mut self,
        trace: &mut Trace,
        mut call: Call,
        parent: Option<Execution>,
        make: impl FnOnce(&mut Connection, CallKey, Call) -> bool,
    ) -> (CallNumber, bool) {
        let number = self.calls;
        self.calls += 1;
        call.parent = parent.and_then(|parent| self.execution(parent)).map(|(key, _)| key);
        let mut called = CallRecord {
            call: number,
            method: call.method.name(),
            parent,
            timeout: call.timeout,
            total_timeout: call.total_timeout,
            accepted: false,
        };
        called.accepted =
            self.guarded(trace, |connection| make(connection, CallKey::new(number), call)).unwrap_or(false);
        let accepted = called.accepted;
        self.note(trace, Observation::Called(called));
        self.settle(trace);
        (number, accepted)
    }

    pub(crate) fn give_up(&mut self, trace: &mut Trace, call: CallNumber) {
        let now = self.now;
        self.step(trace, Observation::GaveUp(call), |connection| {
            connection.cancel_call(now, CallKey::new(call), Some("enough"));
        });
    }

    pub(crate) fn notify(&mut self, trace: &mut Trace, method: Method) {
        self.step(trace, Observation::Asked("notify"), |connection| {
            connection.notify_once(method);
        });
    }

    pub(crate) fn open_stateless(&mut self, trace: &mut Trace, peer: steadfast_proto::connection::PeerInfo) {
        self.step(trace, Observation::Asked("speak 2026-07-28"), |connection| connection.open_stateless(peer));
    }

    /// Nothing is on its way any more.
    pub(crate) fn quiet(&mut self, trace: &mut Trace) {
        self.note(trace, Observation::Quiet);
    }
}

impl Endpoint {
    fn execution(&self, execution: Execution) -> Option<(InboundRequestKey, RequestId)> {
        self.executions.get(usize::try_from(execution).ok()?).cloned()
    }

    fn call_number(&self, key: CallKey) -> CallNumber {
        (0..self.calls).rev().find(|number| CallKey::new(*number) == key).unwrap_or(CallNumber::MAX)
    }

    fn step(&mut self, trace: &mut Trace, cause: Observation, operation: impl FnOnce(&mut Connection)) {
        if self.ledger.panicked {
            return;
        }
        self.note(trace, cause);
        self.guarded(trace, operation);
        self.settle(trace);
    }

    fn guarded<T>(&mut self, trace: &mut Trace, operation: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let connection = &mut self.connection;
        match panics::quietly(|| catch_unwind(AssertUnwindSafe(|| operation(connection)))) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.note(trace, Observation::Panicked(panics::text(&*panic)));
                None
            }
        }
    }

    /// Polls what the connection says until it has nothing more, as a driver does after every step.
    fn settle(&mut self, trace: &mut Trace) {
        if self.ledger.panicked {
            return;
        }
        while let Some(event) = self.connection.poll_event() {
            self.hear(trace, event);
        }
        let settled = Observation::Settled {
            waiting: self.connection.waiting_bytes(),
            deadline: self.connection.poll_timeout(),
            wants_input: self.connection.wants_input(),
        };
        self.note(trace, settled);
    }

    fn hear(&mut self, trace: &mut Trace, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Start(request) => {
                let execution = self.executions.len() as u64;
                self.executions.push((request.key, request.id.clone()));
                let id = request.id.to_string().into();
                self.note(trace, Observation::Started { execution, id, method: request.method.name() });
                self.effects.push(Effect::Start { execution, request });
            }
            ConnectionEvent::Stop { key, reason } => self.hear_stop(trace, key, reason),
            ConnectionEvent::CallEnded { call, outcome } => {
                let call = self.call_number(call);
                self.note(trace, Observation::CallEnded { call, how: outcome.into() });
            }
            ConnectionEvent::CallProgress { call, .. } => {
                let call = self.call_number(call);
                self.note(trace, Observation::CallProgressed(call));
            }
            ConnectionEvent::Opened(peer) => self.note(trace, Observation::Opened(peer.revision)),
            ConnectionEvent::Warning(warning) => self.note(trace, Observation::LogLine(format!("{warning:?}"))),
            ConnectionEvent::Closed(cause) => {
                self.note(trace, Observation::Closed(cause));
                self.effects.push(Effect::Closed);
            }
            ConnectionEvent::LateResult(_) | ConnectionEvent::Notification { .. } => {}
        }
    }

    fn hear_stop(&mut self, trace: &mut Trace, key: InboundRequestKey, reason: CancelReason) {
        let Some(place) = self.executions.iter().position(|(known, _)| *known == key) else { return };
        let execution = place as u64;
        self.note(trace, Observation::Stopped { execution, reason });
        self.effects.push(Effect::Stop { execution });
    }

    fn note(&mut self, trace: &mut Trace, seen: Observation) {
        self.ledger.now = self.now;
        trace.note(self.name, self.now, &seen);
        self.checkers.see(&self.ledger, &seen, &mut self.report);
        self.ledger.note(&seen);
    }
}

/// For exhaustive search: ends with one hash behave alike and are judged alike.
impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.connection.fingerprint(self.now).hash(hasher);
        (self.executions.len(), self.calls, self.logs).hash(hasher);
        self.ledger.hash(hasher);
        self.checkers.hash(hasher);
    }
}
