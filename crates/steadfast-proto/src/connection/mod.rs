//! One conversation with one peer, as a state machine: this is where the laws are kept.
//!
//! [`Connection`] has no clock, no lock, no thread and no I/O. Whoever drives it tells it what happened and asks it what to
//! do. Every request, in both directions, is an entry of one table with one owner (`&mut self`): whatever ends a request
//! takes the entry out, so whatever comes second finds nothing to do. There is no order of events in which a request ends
//! twice, because there is no second path that could end it.
//!
//! # How to drive it
//!
//! Methods are of four kinds. Getters have no effect. `handle_*` tell it that something happened. Commands ask it for
//! something. `poll_*` say what to do now; after any call of the second or third kind, poll in this order until each has
//! nothing more: [`Connection::poll_event`], [`Connection::poll_transmit`], [`Connection::poll_timeout`].
//!
//! # What it never does
//!
//! It never panics on anything that a peer sends, never allocates past its [`Limits`], never decodes parameters that are
//! not its own, and never decides what a method means: that is for the server and the client above it.

mod batch;
mod cancel;
mod event;
mod fingerprint;
mod handshake;
mod inbound;
mod key;
mod late;
mod limits;
mod outbound;
mod outbox;
mod progress;
mod state;
mod statistics;
mod subscription;
#[cfg(test)]
mod tests;
mod timer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{LoggingLevel, Method, RequestId};

pub use event::{CallEnd, CancelReason, CloseCause, Event, Peer, ProtocolWarning, Request};
pub use handshake::{ClientHello, Hello, ServerHello};
pub use key::{CallKey, Key};
pub use limits::Limits;
pub use outbound::{Call, CallRefused};
pub use outbox::{Transmit, TransmitKind};
pub use progress::Progress;
pub use statistics::Statistics;

use crate::Moment;
use crate::coverage::{self, Effect, Input};
use crate::encode;
use crate::envelope::{self, Envelope, Message, Refusal, RefusalKind};
use crate::salvage::{Salvaged, Shape};
use batch::{BatchKey, Batches};
use handshake::ModernPeer;
use inbound::Inbound;
use late::Late;
use outbound::Outbound;
use outbox::{Outbox, Ticket};
use state::{Drain, Stage};
use timer::{Purpose, Timers};

/// One conversation with one peer. See the [module's documentation](self) for how to drive it.
#[derive(Debug, Clone)]
pub struct Connection {
    hello: Arc<Hello>,
    limits: Limits,
    stage: Stage,
    /// Who the handshake said is there; `None` for a peer that only speaks 2026-07-28.
    peer: Option<Arc<Peer>>,
    /// The peer has said that it is ready for our requests (`notifications/initialized`).
    initialized: bool,
    /// The peer that the last 2026-07-28 request described, kept because the next one will say the same.
    modern: Option<ModernPeer>,
    /// The peer has answered `server/discover`, so it speaks 2026-07-28 unless a handshake says otherwise.
    discovered: bool,
    /// The level of `logging/setLevel`.
    log_level: LoggingLevel,
    /// Open requests of the peer's, by id.
    inbound: BTreeMap<RequestId, Box<Inbound>>,
    /// Executions that have not ended; their request may be open no more.
    executions: BTreeMap<Key, Execution>,
    /// Bytes of parameters that executions hold.
    held_bytes: usize,
    batches: Batches,
    /// Calls of ours that wait.
    outbound: Outbound,
    /// Calls of ours that were given up, and whose results matter.
    late: Late,
    outbox: Outbox,
    /// Notifications that belong to no request and wait, so that one is not queued twice.
    notices: BTreeMap<(Method, Option<Box<str>>), Ticket>,
    events: VecDeque<Event>,
    timers: Timers,
    input_ended: bool,
    output_failed: bool,
    /// It carries one request of the peer's, and ends with it.
    one_exchange: bool,
    next_key: u64,
    statistics: Statistics,
}

/// What is known of an execution.
#[derive(Debug, Clone)]
struct Execution {
    id: RequestId,
    /// The bytes of parameters that it holds.
    bytes: usize,
    /// It was told to stop.
    told: bool,
}

/// Getters.
impl Connection {
    /// A connection that begins now.
    pub fn new(hello: impl Into<Arc<Hello>>, limits: Limits) -> Self {
        Self {
            hello: hello.into(),
            limits,
            stage: Stage::Opening,
            peer: None,
            initialized: false,
            modern: None,
            discovered: false,
            log_level: LoggingLevel::Info,
            inbound: BTreeMap::new(),
            executions: BTreeMap::new(),
            held_bytes: 0,
            batches: Batches::default(),
            outbound: Outbound::default(),
            late: Late::default(),
            outbox: Outbox::default(),
            notices: BTreeMap::new(),
            events: VecDeque::new(),
            timers: Timers::default(),
            input_ended: false,
            output_failed: false,
            one_exchange: false,
            next_key: 0,
            statistics: Statistics::default(),
        }
    }

    /// The limits it keeps.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Who the handshake said is there.
    pub fn peer(&self) -> Option<&Arc<Peer>> {
        self.peer.as_ref()
    }

    /// Requests of the peer's that are open.
    pub fn open_requests(&self) -> usize {
        self.inbound.len()
    }

    /// Executions that have not ended.
    pub fn live_executions(&self) -> usize {
        self.executions.len()
    }

    /// Calls of ours that wait.
    pub fn open_calls(&self) -> usize {
        self.outbound.len()
    }

    /// Bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.bytes()
    }

    /// Whether more input should be read: not after its end, and not while the peer leaves too much unread. Our calls and
    /// their cancellations do not count: reading answers makes room, and two sides that call each other would wait for each
    /// other for ever.
    pub fn wants_input(&self) -> bool {
        // Not the answers of open batches: the peer could read none of them, and what ends the batch may be input.
        let unread = self.outbox.caused_bytes();
        !self.input_ended && !self.stage.is_closed() && unread < self.limits.outbox_bytes
    }

    /// Whether it is on its way to its end.
    pub fn is_draining(&self) -> bool {
        self.stage.drain().is_some()
    }

    /// Whether the peer has answered `server/discover`.
    pub fn has_discovered(&self) -> bool {
        self.discovered
    }

    /// Whether it takes no more calls, because one of its directions is over or it has ended. Its last words may still be on
    /// their way out.
    pub fn refuses_calls(&self) -> bool {
        let ended = self.input_ended && !crate::mutant!(TakeCallsAtTheEnd);
        ended || self.output_failed || self.stage.is_closed()
    }

    /// Whether what waits to be written waits for cleanups: the peer has left, and what ran for it was stopped.
    pub fn is_quiet(&self) -> bool {
        self.stage.drain().is_some_and(|drain| drain.quiet)
    }

    /// Why it has ended, if it has.
    pub fn closed(&self) -> Option<CloseCause> {
        match self.stage {
            Stage::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// What it has counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

/// Something happened.
impl Connection {
    /// A message arrived: the bytes of one frame.
    pub fn handle_message(&mut self, now: Moment, bytes: &[u8]) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.handle_parsed(now, envelope::read(bytes, self.limits.depth));
    }

    /// The same for a message that the transport has parsed, within the limits of this connection.
    pub fn handle_envelope(&mut self, now: Moment, envelope: &Envelope) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.handle_parsed(now, envelope.message());
    }

    fn handle_parsed(&mut self, now: Moment, parsed: Result<Message<'_>, Refusal>) {
        match parsed {
            Ok(message) => return self.handle_read(now, message),
            Err(_) if crate::mutant!(CloseOnBadBytes) => self.close(CloseCause::PeerClosed),
            Err(refusal) => self.refuse(refusal, None),
        }
        self.statistics.messages_in += 1;
        self.settle();
    }

    /// The last bytes of a stream, which may be a message without its newline or the beginning of one. The end of the input
    /// follows.
    ///
    /// The beginning of an answer to what opens a connection says only that the peer died while it wrote it, and nothing about
    /// what it speaks: that call ends with the connection, and not with an answer that cannot be read.
    pub fn handle_last_message(&mut self, now: Moment, bytes: &[u8]) {
        let refusal = match envelope::read(bytes, self.limits.depth) {
            Err(refusal) if matches!(refusal.kind, RefusalKind::NotJson(_) | RefusalKind::NotUtf8(_)) => refusal,
            _ => return self.handle_message(now, bytes),
        };
        let key = refusal.salvaged.id.as_ref().and_then(|id| self.known_call(id));
        if !key.is_some_and(|key| self.opens(key)) || crate::mutant!(ReadTornOpening) {
            return self.handle_message(now, bytes);
        }
        let why = refusal.error().message.into_owned();
        self.odd(ProtocolWarning::Refused { id: refusal.salvaged.id, why });
    }

    /// The same for a message that whoever carries it has read already, within the limits of this connection.
    pub fn handle_read(&mut self, now: Moment, message: Message<'_>) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.statistics.messages_in += 1;
        match message {
            Message::Batch(batch) => {
                self.cover(Input::Batch);
                self.take_batch(now, batch);
            }
            message => self.take(now, message, None),
        }
        self.settle();
    }

    /// A message arrived that was longer than the limit, and was not kept.
    pub fn handle_too_long(&mut self, _now: Moment, salvaged: Salvaged) {
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.statistics.messages_in += 1;
        self.refuse(Refusal { kind: RefusalKind::TooLong(self.limits.message_bytes), salvaged }, None);
        self.settle();
    }

    /// The time that [`Connection::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.cover(Input::Timeout);
        while let Some(purpose) = self.timers.pop_due(now) {
            match purpose {
                Purpose::Handler(key) => self.end_overdue(key),
                Purpose::Progress(key) => self.release_progress(now, key),
                Purpose::Call(call) | Purpose::CallTotal(call) => self.end_overdue_call(now, call),
                Purpose::Late(call) => self.forget_late(call),
            }
        }
        if let Some(drain) = self.stage.drain().filter(|drain| drain.window.is_some_and(|window| window <= now)) {
            self.stop_everything(drain);
        }
        // If the clock is late, the quiet that has just begun is over too.
        if let Some(drain) = self.stage.drain() {
            if drain.quiet && drain.last_words <= now {
                self.stage = Stage::Draining(Drain { quiet: false, ..drain });
            }
            if drain.deadline <= now && !crate::mutant!(DrainForever) {
                self.close(drain.cause);
            }
        }
        self.settle();
    }

    /// The peer ended its stream: everything that it sent has been handled.
    pub fn handle_end_of_input(&mut self, now: Moment) {
        self.cover(Input::StreamEnded);
        if self.input_ended || self.stage.is_closed() {
            return;
        }
        self.input_ended = true;
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::PeerClosed);
        self.settle();
    }

    /// The peer has closed its end, and input that it sent before is not being read because too much output waits. The
    /// clock of the drain starts here.
    pub fn handle_peer_gone(&mut self, now: Moment) {
        self.cover(Input::PeerGone);
        self.begin_drain(now, CloseCause::PeerClosed);
        self.settle();
    }

    /// A write failed: nobody reads what we write any more.
    pub fn handle_write_failed(&mut self, now: Moment) {
        self.cover(Input::WriteFailed);
        if self.stage.is_closed() {
            return;
        }
        self.output_failed = true;
        self.outbox.shut();
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::OutputFailed);
        self.stop_at_once(now);
        self.settle();
    }

    /// The peer has ended the connection as a whole, in words, as DELETE ends a session. It wants nothing more to be done, so
    /// the window is skipped; but it may still read, so what is open is answered for: its sender learns that it was begun.
    pub fn handle_peer_ended(&mut self, now: Moment) {
        self.cover(Input::PeerEnded);
        if self.stage.is_closed() {
            return;
        }
        self.input_ended = true;
        self.fail_all_calls();
        self.begin_drain(now, CloseCause::PeerClosed);
        self.stop_at_once(now);
        if let Some(drain) = self.stage.drain() {
            // It has not left: it waits for these answers.
            self.stage = Stage::Draining(Drain { quiet: false, ..drain });
        }
        self.settle();
    }

    /// The writer has written everything that [`Connection::poll_transmit`] gave it.
    pub fn handle_flushed(&mut self) {
        self.cover(Input::Flushed);
        self.outbox.mark_flushed();
        self.settle();
    }

    /// The first byte of a call was written.
    pub fn handle_call_sent(&mut self, call: CallKey) {
        self.cover(Input::CallSent);
        self.mark_sent(call);
    }

    /// An execution has really ended: its future is dropped, its thread is free, its shields and cleanups are done.
    pub fn handle_execution_ended(&mut self, now: Moment, key: Key) {
        self.cover(Input::ExecutionEnded);
        self.reap(now, key);
        self.settle();
    }
}

/// Commands that concern the connection as a whole. Those for requests and calls are with their tables.
impl Connection {
    /// Shuts down: running handlers get the drain window, new requests are refused. If the peer has left already, nobody
    /// waits for what runs, and whoever asks is about to ask less kindly: it is stopped at once.
    pub fn shut_down(&mut self, now: Moment) {
        self.cover(Input::ShutDown);
        if let Some(drain) = self.stage.drain().filter(|drain| drain.cause == CloseCause::PeerClosed) {
            self.stop_everything(drain.stopped_at(now));
        }
        self.begin_drain(now, CloseCause::Shutdown);
        self.settle();
    }

    /// Shuts down at once: nothing is waited for but the cleanups.
    pub fn shut_down_now(&mut self, now: Moment) {
        self.cover(Input::ShutDownNow);
        self.begin_drain(now, CloseCause::Shutdown);
        if let Some(drain) = self.stage.drain() {
            self.stop_everything(drain.stopped_at(now));
        }
        self.settle();
    }

    /// Says that it carries one request of the peer's only, as HTTP does since 2026-07-28: its end is the end of a
    /// subscription, and nothing else need say so.
    pub fn carry_one_exchange(&mut self) {
        self.one_exchange = true;
    }

    /// Tells the peer something without parameters, once: while the same notification waits, it is not queued again.
    /// Returns whether the peer's revision has it and the peer is ready for it.
    pub fn notify_once(&mut self, method: Method) -> bool {
        self.notify_once_of(method, None)
    }

    /// The same with parameters, the text of a JSON object: another text is another notification. How many different ones
    /// wait is for the caller to bound.
    pub fn notify_once_of(&mut self, method: Method, params: Option<&str>) -> bool {
        self.cover(Input::Notify);
        let Some(peer) = &self.peer else { return false };
        let sends = self.hello.may_send(method, peer.revision);
        if !self.initialized || !sends || self.stage.is_closed() {
            return false;
        }
        let notice = (method, params.map(Box::from));
        let queued = self.notices.get(&notice).is_some_and(|ticket| self.outbox.holds(*ticket));
        if !queued {
            // What has left is forgotten now and then.
            if self.notices.len() >= 64 && self.notices.len().is_power_of_two() {
                self.notices.retain(|_, ticket| self.outbox.holds(*ticket));
            }
            let body = encode::notification(method.name(), params);
            let ticket = self.outbox.push(TransmitKind::Notification(method), body, None);
            self.notices.insert(notice, ticket);
        }
        true
    }
}

/// What to do now.
impl Connection {
    /// The next thing to do. Poll until there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        coverage::effect(&event);
        Some(event)
    }

    /// The next message to write. After the last one is written, say so with [`Connection::handle_flushed`].
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if self.is_quiet() {
            return None;
        }
        let transmit = self.outbox.pop()?;
        self.statistics.messages_out += 1;
        Some(transmit)
    }

    /// When to call [`Connection::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Moment> {
        match (self.timers.next(), self.stage.next_deadline()) {
            (Some(timer), Some(stage)) => Some(timer.min(stage)),
            (timer, stage) => timer.or(stage),
        }
    }
}

impl Connection {
    fn take(&mut self, now: Moment, message: Message<'_>, batch: Option<BatchKey>) {
        self.cover(match message {
            Message::Request { .. } => Input::Request,
            Message::Notification { .. } => Input::Notification,
            Message::Answer { .. } => Input::Answer,
            Message::Batch(_) => Input::Batch,
        });
        match message {
            Message::Request { id, method, params } => self.take_request(now, id, &method, &params, batch),
            Message::Notification { method, params } => self.take_notification(now, &method, &params),
            Message::Answer { id, body } => self.take_answer(id, body),
            Message::Batch(_) => self.refuse(
                Refusal { kind: RefusalKind::NotAMessage("a batch inside a batch"), salvaged: Salvaged::default() },
                batch,
            ),
        }
    }

    /// A message that cannot be taken is answered with its error, if it wants an answer.
    fn refuse(&mut self, refusal: Refusal, batch: Option<BatchKey>) {
        self.statistics.refused += 1;
        self.cover(Input::Unreadable);
        coverage::effect(&refusal.kind);
        let error = refusal.error();
        let id = refusal.salvaged.id;
        self.odd(ProtocolWarning::Refused { id: id.clone(), why: error.message.clone().into_owned() });
        if refusal.kind == RefusalKind::BadParams && id.is_none() {
            // A notification is never answered.
            return;
        }
        if refusal.salvaged.shape == Shape::Answer {
            // An answer is never answered. If somebody waits for it, they learn that it cannot be read.
            return self.end_unreadable(id, &error);
        }
        let shape = refusal.salvaged.shape;
        if shape == Shape::Unknown
            && matches!(*self.hello, Hello::Client(_))
            && id.as_ref().is_some_and(|id| self.known_call(id).is_some())
        {
            // What a server sends under the id of a call of ours is its answer, more likely than not.
            return self.end_unreadable(id, &error);
        }
        if self.ignores_requests() {
            return;
        }
        match id {
            // Only what is certainly a request is refused under its id. Anything else may be an answer to one of our calls
            // that ended long ago; an error under that id could meet a request of the peer's with the same id on its way,
            // and be taken for the answer to it.
            Some(id)
                if (shape == Shape::Call || crate::mutant!(RefuseUnderAnyId)) && !self.inbound.contains_key(&id) =>
            {
                coverage::effect(Effect::RefusedWithId);
                self.commit(encode::Answer::error(&id, &error).into_bytes(), batch, None);
            }
            Some(id) => self.refuse_without_id(id, error, batch),
            None => self.commit(encode::error_without_id(&error, self.writes_null_id()), batch, None),
        }
    }

    /// Puts an answer, or an error that answers nothing, in the queue, or with the other answers of its batch.
    fn commit(&mut self, body: Vec<u8>, batch: Option<BatchKey>, about: Option<Key>) {
        if self.ignores_requests() {
            return;
        }
        match batch {
            Some(batch) => self.batches.add(batch, body),
            None => {
                #[cfg(mutants)]
                if crate::mutant!(AnswerOvertakes) {
                    return self.outbox.push_first(body);
                }
                self.outbox.push(TransmitKind::Response, body, about);
            }
        }
    }

    /// Counts an input, for the simulator.
    fn cover(&self, input: Input) {
        let stage = match self.stage {
            Stage::Opening => coverage::Stage::Opening,
            Stage::Ready => coverage::Stage::Ready,
            Stage::Draining(Drain { window: Some(_), .. }) => coverage::Stage::Window,
            Stage::Draining(_) => coverage::Stage::Stopped,
            Stage::Closed(_) => coverage::Stage::Closed,
        };
        coverage::input(stage, input);
    }

    fn odd(&mut self, oddity: ProtocolWarning) {
        // Nobody listens after the end; a handler that was given up may still answer.
        if !self.stage.is_closed() {
            self.events.push_back(Event::Odd(oddity));
        }
    }

    fn begin_drain(&mut self, now: Moment, cause: CloseCause) {
        if !self.stage.is_live() {
            return;
        }
        let window = now + self.limits.handler_window();
        let deadline = self.limits.drain_deadline;
        let for_cleanups = deadline.saturating_sub(self.limits.handler_window());
        self.stage = Stage::Draining(Drain {
            cause,
            window: Some(window),
            quiet: false,
            last_words: now + deadline.saturating_sub(for_cleanups / 2),
            deadline: now + deadline,
        });
        self.end_subscriptions(cause);
    }

    /// Skips the window. Only cleanups are waited for: as long as they had in any case.
    fn stop_at_once(&mut self, now: Moment) {
        let Some(drain) = self.stage.drain() else { return };
        let grace = self.limits.drain_deadline.saturating_sub(self.limits.handler_window());
        let drain = Drain { deadline: drain.deadline.min(now + grace), ..drain };
        self.stage = Stage::Draining(drain);
        self.stop_everything(drain);
    }

    /// The window is over: what is open is answered with an error, and every execution is told to stop.
    fn stop_everything(&mut self, drain: Drain) {
        if drain.window.is_none() {
            return;
        }
        // A peer that has left need not hear of it before the cleanups have run.
        let quiet = drain.cause == CloseCause::PeerClosed && !self.executions.is_empty();
        self.stage = Stage::Draining(Drain { window: None, quiet, ..drain });
        let reason = match drain.cause {
            CloseCause::Shutdown => CancelReason::Shutdown,
            CloseCause::PeerClosed | CloseCause::OutputFailed => CancelReason::ConnectionClosed,
        };
        self.answer_for_all(reason);
        self.fail_all_calls();
    }

    /// Ends the connection if nothing is left to wait for.
    fn settle(&mut self) {
        let Some(mut drain) = self.stage.drain() else { return };
        if drain.quiet && self.executions.is_empty() {
            drain.quiet = false;
            self.stage = Stage::Draining(drain);
        }
        // Input that the peer sent before it left is still to be read, unless the window is over.
        let input_done = self.input_ended || drain.window.is_none() || drain.cause != CloseCause::PeerClosed;
        if input_done && self.inbound.is_empty() && self.executions.is_empty() && self.outbox.is_flushed() {
            self.close(drain.cause);
        }
    }

    fn close(&mut self, cause: CloseCause) {
        if self.stage.is_closed() {
            return;
        }
        if let Some(drain) = self.stage.drain() {
            self.stop_everything(drain);
        }
        self.fail_all_calls();
        self.statistics.abandoned = self.executions.len();
        self.stage = Stage::Closed(cause);
        self.outbox.shut();
        self.batches.clear();
        self.notices.clear();
        self.late = Late::default();
        self.timers.clear_all();
        self.events.push_back(Event::Closed(cause));
    }

    /// The longest that the drain can last.
    pub fn drain_deadline(&self) -> Duration {
        self.limits.drain_deadline
    }
}
