//! One connection to one peer, as a state machine that upholds the laws L1 to L10 of the README.
//!
//! [`Connection`] has no clock, no lock, no thread and no I/O. The driver of a connection reports what happened and asks what
//! to do. Every open request, in either direction, is an entry of a table with one owner (`&mut self`). Whatever ends a request
//! removes the entry of the request, so a second attempt to end the request finds nothing. There is no order of events in which
//! a request ends twice, because one function removes requests of the peer (`take_out`) and one removes calls of this side
//! (`end_call`).
//!
//! # How to drive it
//!
//! The methods of [`Connection`] are of four kinds. Getters do not change the state of the connection. The `handle_*`
//! methods report to the connection that something happened. Command methods, such as `call`, make the connection do
//! something. The `poll_*` methods return what the driver has to do; after each `handle_*` or command, poll in this
//! order until each returns `None`: [`Connection::poll_event`], [`Connection::poll_transmit`],
//! [`Connection::poll_timeout`].
//!
//! # What it never does
//!
//! A connection never panics on any input of a peer, never allocates more than its [`Limits`] allow, never decodes parameters
//! of methods that it does not answer itself, and never runs a handler: that is for the server and the client above it.

mod call;
mod drain;
mod event;
mod fingerprint;
mod handshake;
mod key;
mod limits;
mod notification;
mod outbox;
mod receive;
mod request;
mod stage;
mod statistics;
#[cfg(test)]
mod tests;
mod timer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use steadfast_model::{LoggingLevel, Method, RequestId};

pub use call::{Call, NotSentReason};
pub use event::{CallEnd, CancelReason, CloseCause, ConnectionEvent, PeerInfo, ProtocolWarning, Request};
pub use handshake::{ClientDescription, ClientOrServerDescription, ServerDescription};
pub use key::{CallKey, InboundRequestKey};
pub use limits::Limits;
pub use outbox::{Transmit, TransmitKind};
pub use request::ProgressReport;
pub use statistics::ConnectionStatistics;

use crate::Moment;
use crate::coverage::{self, Input};
use call::{CallsAwaitingLateResult, OutboundCalls};
use handshake::{Discovery, StatelessClientDescription};
use outbox::{Outbox, OutboxFrameKey};
use request::{InboundRequest, OpenBatchTable};
use stage::{ConnectionStage, DrainState};
use timer::{TimerPurpose, Timers};

/// One connection to one peer. See the [module's documentation](self) for how to drive a connection.
#[derive(Debug, Clone)]
pub struct Connection {
    hello: Arc<ClientOrServerDescription>,
    limits: Limits,
    stage: ConnectionStage,
    /// The peer, as the handshake or discovery described it; it is `None` on a server whose client uses only stateless
    /// revisions.
    peer: Option<Arc<PeerInfo>>,
    /// The peer is ready for requests of this side (`notifications/initialized`).
    initialized: bool,
    /// The client that the last stateless request described, cached because the next request usually repeats the description.
    stateless_client: Option<StatelessClientDescription>,
    discovery: Discovery,
    /// The minimum log level that the client has set with `logging/setLevel`.
    log_level: LoggingLevel,
    /// Open requests of the peer, by id.
    inbound: BTreeMap<RequestId, Box<InboundRequest>>,
    /// Executions of handlers that have not ended; their request may have ended already.
    executions: BTreeMap<InboundRequestKey, Execution>,
    /// The number of bytes of the parameters of all requests whose handlers have not ended.
    held_bytes: usize,
    batches: OpenBatchTable,
    /// Calls of this side that wait for a response.
    outbound: OutboundCalls,
    /// Cancelled calls of this side whose results are still needed.
    late: CallsAwaitingLateResult,
    outbox: Outbox,
    /// The queued notifications of this side that belong to no request, recorded so that none is queued twice.
    queued_notifications: BTreeMap<(Method, Option<Box<str>>), OutboxFrameKey>,
    events: VecDeque<ConnectionEvent>,
    timers: Timers,
    input_ended: bool,
    output_failed: bool,
    /// The connection serves a single request of the peer and ends with that request.
    single_request: bool,
    next_key: u64,
    statistics: ConnectionStatistics,
}

/// The run of a handler.
#[derive(Debug, Clone)]
struct Execution {
    id: RequestId,
    /// The bytes of its parameters.
    bytes: usize,
    /// The driver was asked to stop this execution of a handler.
    stop_requested: bool,
}

/// Getters.
impl Connection {
    /// A new connection.
    pub fn new(hello: impl Into<Arc<ClientOrServerDescription>>, limits: Limits) -> Self {
        Self {
            hello: hello.into(),
            limits,
            stage: ConnectionStage::Opening,
            peer: None,
            initialized: false,
            stateless_client: None,
            discovery: Discovery::default(),
            log_level: LoggingLevel::Info,
            inbound: BTreeMap::new(),
            executions: BTreeMap::new(),
            held_bytes: 0,
            batches: OpenBatchTable::default(),
            outbound: OutboundCalls::default(),
            late: CallsAwaitingLateResult::default(),
            outbox: Outbox::default(),
            queued_notifications: BTreeMap::new(),
            events: VecDeque::new(),
            timers: Timers::default(),
            input_ended: false,
            output_failed: false,
            single_request: false,
            next_key: 0,
            statistics: ConnectionStatistics::default(),
        }
    }

    /// The limits of this connection.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The peer, as the handshake or discovery described it.
    pub fn peer(&self) -> Option<&Arc<PeerInfo>> {
        self.peer.as_ref()
    }

    /// The peer that the handshake described or, on a server without a handshake, the client that the last request described.
    pub fn last_peer(&self) -> Option<&Arc<PeerInfo>> {
        self.peer.as_ref().or(self.stateless_client.as_ref().map(|client| &client.peer))
    }

    /// The current number of open requests of the peer.
    pub fn open_requests(&self) -> usize {
        self.inbound.len()
    }

    /// The current number of handler executions that have not ended.
    pub fn live_executions(&self) -> usize {
        self.executions.len()
    }

    /// The current number of calls of this side that wait for a response.
    pub fn open_calls(&self) -> usize {
        self.outbound.len()
    }

    /// The current number of bytes that are queued for the writer.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.bytes()
    }

    /// Whether the driver should read more input: not after the end of the input, and not while too much output is queued.
    /// Queued calls of this side and other messages that it sends by itself do not count as output here: otherwise two sides
    /// that call each other would deadlock.
    pub fn wants_input(&self) -> bool {
        // Without the responses of open batches: they cannot be sent yet, and the batch may end with a message that is still to
        // be read.
        let unread = self.outbox.caused_bytes();
        !self.input_ended && !self.stage.is_closed() && unread < self.limits.outbox_bytes
    }

    /// Whether the peer has answered `server/discover` with a result, and `initialize` was not sent since.
    pub fn has_discovered(&self) -> bool {
        self.discovery == Discovery::Answered
    }

    /// Whether the connection refuses calls of this side, because input or output has ended or the connection is closed. Output
    /// that is already queued may still be written.
    pub fn refuses_calls(&self) -> bool {
        let ended = self.input_ended && !crate::mutant!(TakeCallsAtTheEnd);
        ended || self.output_failed || self.stage.is_closed()
    }

    /// Its counters.
    pub fn statistics(&self) -> &ConnectionStatistics {
        &self.statistics
    }
}

/// Inputs.
impl Connection {
    /// Handles that the deadline that [`Connection::poll_timeout`] returned has passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.count_input(Input::Timeout);
        while let Some(purpose) = self.timers.pop_due(now) {
            match purpose {
                TimerPurpose::Handler(key) => self.end_timed_out(key),
                TimerPurpose::Progress(key) => self.release_progress(now, key),
                TimerPurpose::Call(call) | TimerPurpose::CallTotal(call) => self.end_timed_out_call(now, call),
                TimerPurpose::CallsAwaitingLateResult(call) => self.forget_late(call),
            }
        }
        if let Some(drain) = self.stage.drain().filter(|drain| drain.window.is_some_and(|window| window <= now)) {
            self.stop_everything(drain);
        }
        // If this call is late, the silence that has just begun may be over already.
        if let Some(drain) = self.stage.drain() {
            if drain.quiet && drain.release_output_at <= now {
                self.stage = ConnectionStage::Draining(DrainState { quiet: false, ..drain });
            }
            if drain.deadline <= now && !crate::mutant!(DrainForever) {
                self.close(drain.cause);
            }
        }
        self.close_if_done();
    }

    /// Handles that the writer has written everything that [`Connection::poll_transmit`] returned.
    pub fn handle_flushed(&mut self) {
        self.count_input(Input::Flushed);
        self.outbox.mark_flushed();
        self.close_if_done();
    }

    /// Handles that the first byte of a call was written.
    pub fn handle_call_sent(&mut self, call: CallKey) {
        self.count_input(Input::CallSent);
        self.mark_sent(call);
    }

    /// Handles the end of a handler's execution: its future is dropped, its thread is free, and its shielded sections and
    /// cleanups are done.
    pub fn handle_execution_ended(&mut self, now: Moment, key: InboundRequestKey) {
        self.count_input(Input::ExecutionEnded);
        self.end_execution(now, key);
        self.close_if_done();
    }
}

/// Commands for the connection as a whole.
impl Connection {
    /// Declares that this connection serves a single request of the peer, as over stateless HTTP: a subscription ends with the
    /// connection, and no notification has to announce the end of the subscription.
    pub fn serve_single_request(&mut self) {
        self.single_request = true;
    }
}

/// Outputs.
impl Connection {
    /// The next event for the driver. The driver polls until there is no event left.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let event = self.events.pop_front()?;
        coverage::effect(&event);
        Some(event)
    }

    /// The next message to write. When the last message is written, the driver calls [`Connection::handle_flushed`].
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if self.is_quiet() {
            return None;
        }
        let transmit = self.outbox.pop()?;
        self.statistics.messages_out += 1;
        Some(transmit)
    }

    /// The time at which the driver has to call [`Connection::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Moment> {
        match (self.timers.next(), self.stage.next_deadline()) {
            (Some(timer), Some(stage)) => Some(timer.min(stage)),
            (timer, stage) => timer.or(stage),
        }
    }
}

impl Connection {
    /// Counts an input of the connection, for the coverage report of the simulator.
    fn count_input(&self, input: Input) {
        let stage = match self.stage {
            ConnectionStage::Opening => coverage::Stage::Opening,
            ConnectionStage::Ready => coverage::Stage::Ready,
            ConnectionStage::Draining(DrainState { window: Some(_), .. }) => coverage::Stage::Window,
            ConnectionStage::Draining(_) => coverage::Stage::Stopped,
            ConnectionStage::Closed(_) => coverage::Stage::Closed,
        };
        coverage::input(stage, input);
    }

    fn warn(&mut self, warning: ProtocolWarning) {
        // A handler may still answer after the end, when no events are polled.
        if !self.stage.is_closed() {
            self.events.push_back(ConnectionEvent::Warning(warning));
        }
    }
}
