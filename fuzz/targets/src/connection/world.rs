//! The connection with a clock, a driver, handlers and a peer; each thing that happens is followed by every check.

use std::time::Duration;

use serde_json::json;
use steadfast_model::{CancelledParams, ErrorObject, LoggingLevel, Method, ProgressToken, RequestId, Revision};
use steadfast_proto::Moment;
use steadfast_proto::connection::{Call, CallKey, Connection, ConnectionEvent, InboundRequestKey, PeerInfo, ProgressReport};
use steadfast_proto::encode::EncodedResponse;
use steadfast_proto::salvage::{SalvagedFields, SalvagedMessageShape};

use super::calls::Calls;
use super::frame::{Frame, Tag};
use super::hearing::Hearing;
use super::ledger::Ledger;
use super::operation::{Operation, Side};
use super::setting::{hello_of, limits_of};
use super::speech::{Utterance, request_id};

/// More than any one message that the connection writes of itself, apart from what it repeats of the peer's.
const ONE_MESSAGE: usize = 768;

/// What may be told without parameters.
const NOTICES: [Method; 4] =
    [Method::ToolListChanged, Method::PromptListChanged, Method::ResourceListChanged, Method::RootsListChanged];

/// How long time passes at once, in milliseconds.
const STEPS: [u64; 8] = [0, 1, 5, 100, 500, 1_000, 2_000, 10_000];

#[derive(Debug, Clone)]
pub(super) struct World {
    connection: Connection,
    side: Side,
    now: Moment,
    ledger: Ledger,
    calls: Calls,
    /// Messages that the peer has sent.
    heard: u64,
    input_ended: bool,
    write_failed: bool,
    closed: bool,
}

impl World {
    pub(super) fn new(side: Side, limits: u8) -> Self {
        Self {
            connection: Connection::new(hello_of(side), limits_of(limits)),
            side,
            now: Moment::ORIGIN,
            ledger: Ledger::default(),
            calls: Calls::default(),
            heard: 0,
            input_ended: false,
            write_failed: false,
            closed: false,
        }
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Hear(utterance) => self.hear(utterance, |bytes| bytes),
            Operation::HearBroken(utterance, breakage) => self.hear(utterance, |bytes| breakage.apply(bytes)),
            Operation::HearTooLong(id) => self.hear_too_long(*id),
            Operation::Respond { which, fails } => self.respond(*which, *fails),
            Operation::End { which } => {
                if let Some((_, key, _)) = self.ledger.pick(*which) {
                    self.end(key);
                }
            }
            Operation::Progress { which, value } => self.report(*which, *value),
            Operation::Log { which, level } => self.log(*which, *level),
            Operation::Call { method, parent, patience } => self.call(*method, *parent, *patience),
            Operation::CancelCall { which } => {
                if let Some(call) = self.calls.pick(*which) {
                    self.step(ONE_MESSAGE, |connection, now| connection.cancel_call(now, call, Some("given up")));
                }
            }
            Operation::Initialize { revision } => self.initialize(*revision),
            Operation::OpenStateless => {
                // A client asks before it is asked. What it owes from before that would not be said any more.
                if self.side == Side::Client && self.ledger.owed() == 0 {
                    let peer = PeerInfo::new(Revision::V2026_07_28);
                    self.step(0, |connection, _| connection.open_stateless(peer));
                }
            }
            Operation::Notify { method } => {
                let method = NOTICES[usize::from(*method) % NOTICES.len()];
                self.step(ONE_MESSAGE, |connection, _| {
                    connection.notify_once(method);
                });
            }
            Operation::Write { messages, tells } => self.write(*messages, *tells),
            Operation::Flushed => self.flush(),
            Operation::WriteFailed => {
                self.write_failed = true;
                self.step(0, Connection::handle_write_failed);
            }
            Operation::Wait { steps } => {
                let step = STEPS[usize::from(*steps) % STEPS.len()];
                self.wait_until(self.now + Duration::from_millis(step));
            }
            Operation::WaitForDeadline => {
                if let Some(deadline) = self.connection.poll_timeout() {
                    self.wait_until(deadline.max(self.now));
                }
            }
            Operation::EndOfInput => self.end_input(),
            Operation::PeerGone => self.step(self.endings(), Connection::handle_peer_gone),
            Operation::ShutDown { now: false } => self.step(self.endings(), Connection::shut_down),
            Operation::ShutDown { now: true } => self.step(self.endings(), Connection::shut_down_now),
        }
    }
}

/// What the peer does.
impl World {
    fn hear(&mut self, utterance: &Utterance, on_its_way: impl FnOnce(Vec<u8>) -> Vec<u8>) {
        if self.is_full() {
            return;
        }
        self.heard += 1;
        let bytes = on_its_way(utterance.bytes(self.heard * 16));
        let hearing = Hearing::of(&self.connection, self.side);
        // What it is answered with repeats some of it; and it may end what is open, and let go what was held.
        let most = 3 * bytes.len() + ONE_MESSAGE * hearing.members(&bytes) + self.endings();
        let listens = self.connection.statistics().messages_in;
        let events = self.act(most, |connection, now| connection.handle_message(now, &bytes));
        if self.connection.statistics().messages_in > listens {
            hearing.enter(&bytes, &events, &self.calls, &mut self.ledger);
        }
        self.follow(events);
    }

    fn hear_too_long(&mut self, id: u8) {
        if self.is_full() {
            return;
        }
        let id = serde_json::from_value::<RequestId>(request_id(id)).ok();
        let salvaged = SalvagedFields { id: id.clone(), shape: SalvagedMessageShape::Call };
        let hearing = Hearing::of(&self.connection, self.side);
        let listens = self.connection.statistics().messages_in;
        let events = self.act(2 * ONE_MESSAGE, |connection, now| connection.handle_too_long(now, salvaged));
        if self.connection.statistics().messages_in > listens && hearing.is_answered() {
            match id {
                Some(id) if !self.ledger.is_open(&id) => self.ledger.owe(id),
                _ => self.ledger.owe_without_id(),
            }
        }
        self.follow(events);
    }

    fn end_input(&mut self) {
        self.input_ended = true;
        self.step(self.endings(), Connection::handle_end_of_input);
    }

    /// A driver does not read while too much waits to be written. After the end it might, and nothing comes of it.
    fn is_full(&self) -> bool {
        !self.connection.wants_input() && !self.input_ended && !self.closed
    }
}

/// What handlers and callers do.
impl World {
    fn respond(&mut self, which: u8, fails: bool) {
        let Some((place, key, id)) = self.ledger.pick(which) else { return };
        let answer = if fails {
            EncodedResponse::error(&id, &ErrorObject::new(1, "no"))
        } else {
            EncodedResponse::serialized(&id, &Tag { request: place })
        };
        self.ledger.answer(key);
        // Progress that was held back goes before the answer, and the answer may complete a batch.
        self.step(self.endings(), |connection, now| connection.respond(now, key, answer));
    }

    fn end(&mut self, key: InboundRequestKey) {
        self.ledger.end(key);
        self.step(self.endings(), |connection, now| connection.handle_execution_ended(now, key));
    }

    fn report(&mut self, which: u8, value: u8) {
        let Some((_, key, _)) = self.ledger.pick(which) else { return };
        let progress = match value {
            15 => f64::NAN,
            value => f64::from(value),
        };
        let progress = ProgressReport::new(progress).with_total(f64::INFINITY).with_message("on");
        self.step(ONE_MESSAGE, |connection, now| connection.progress(now, key, progress));
    }

    fn log(&mut self, which: u8, level: u8) {
        let Some((place, key, _)) = self.ledger.pick(which) else { return };
        let level = if level.is_multiple_of(2) { LoggingLevel::Emergency } else { LoggingLevel::Debug };
        self.step(ONE_MESSAGE, |connection, _| connection.log(key, level, None, json!(Tag { request: place })));
    }

    fn call(&mut self, method: u8, parent: u8, patience: u8) {
        let methods = [
            Method::ListRoots,
            Method::Ping,
            Method::CreateMessage,
            Method::ListTools,
            Method::Discover,
            Method::Listen,
        ];
        let (key, serial) = self.calls.new_key();
        let mut call = Call::new(methods[usize::from(method) % methods.len()], Some("{}".into()));
        // Fifteen and more: nobody's handler.
        call.parent = if parent == 15 { None } else { self.ledger.pick(parent).map(|(_, key, _)| key) };
        call.timeout = (patience & 1 != 0).then_some(Duration::from_millis(500));
        call.total_timeout = (patience & 2 != 0).then_some(Duration::from_secs(1));
        // The tokens of calls: small integers, as the peer's progress names them.
        call.progress_token =
            (patience & 4 != 0).then(|| ProgressToken::from(i64::try_from(serial).unwrap_or(0)));
        call.cancellable = patience & 8 == 0;
        self.open(key, call, |connection, now, call| connection.call(now, key, call).is_ok());
    }

    fn initialize(&mut self, revision: u8) {
        let revision = Revision::ALL[usize::from(revision) % Revision::ALL.len()];
        let (key, _) = self.calls.new_key();
        let mut call = Call::new(Method::Initialize, None);
        call.cancellable = false;
        call.total_timeout = Some(Duration::from_secs(1));
        self.open(key, call, |connection, now, call| connection.initialize(now, key, call, revision).is_ok());
    }

    fn open(&mut self, key: CallKey, call: Call, make: impl FnOnce(&mut Connection, Moment, Call) -> bool) {
        let (parent, cancellable) = (call.parent, call.cancellable);
        let total = call.total_timeout.map(|total| self.now + total);
        let mut made = false;
        let events = self.act(ONE_MESSAGE, |connection, now| made = make(connection, now, call));
        if made {
            assert!(!self.closed && !self.write_failed, "a call that nobody can answer was made");
            self.calls.open(key, parent, cancellable, total);
        }
        self.follow(events);
    }
}

/// What the writer and the clock do.
impl World {
    fn write(&mut self, messages: u8, tells: bool) {
        for _ in 0..messages {
            let Some(transmit) = self.connection.poll_transmit() else { break };
            assert!(!self.closed && !self.write_failed, "written when nobody reads any more");
            let frames = Frame::read(&transmit.body);
            for frame in &frames {
                match (transmit.call(), frame.method.as_deref()) {
                    (Some(call), _) => self.calls.wrote(call, frame),
                    (None, Some("notifications/cancelled")) => self.wrote_cancelled(&frame.params()),
                    (None, _) => self.ledger.wrote(frame),
                }
            }
        }
        if tells {
            self.tell();
        }
        if messages == u8::MAX {
            // While what was stopped cleans up, a peer that has left is told nothing: what is left then still waits.
            if !self.closed && !self.write_failed && self.connection.waiting_bytes() == 0 {
                self.ledger.assert_cancellations_told();
            }
            self.flush();
        }
        self.step(0, |_, _| {});
    }

    /// Either side's ids are small integers, so one may name a call of ours and a subscription of the peer's.
    fn wrote_cancelled(&mut self, cancelled: &CancelledParams) {
        let has_reason = |id: &RequestId| self.calls.wrote_cancelled(id) || self.ledger.wrote_cancelled(id);
        let told = cancelled.request_id.as_ref().is_some_and(has_reason);
        assert!(told, "the cancellation of nothing that was sent, or not given up, or told before: {cancelled:?}");
    }

    fn tell(&mut self) {
        for call in self.calls.tell() {
            self.step(0, |connection, _| connection.handle_call_sent(call));
        }
    }

    fn flush(&mut self) {
        self.tell();
        self.step(0, |connection, _| connection.handle_flushed());
    }

    fn wait_until(&mut self, moment: Moment) {
        self.now = moment;
        self.step(self.endings(), Connection::handle_timeout);
        let next = self.connection.poll_timeout();
        assert!(next.is_none_or(|next| next > moment), "a deadline that was handled is due again");
        self.ledger.tick(moment, self.connection.limits().handler_deadline);
        self.calls.tick(moment);
    }

    /// What may be written when everything that is open ends: answers with progress before them, cancellations of calls.
    fn endings(&self) -> usize {
        ONE_MESSAGE * (2 * self.ledger.owed() + 2 * self.connection.open_calls() + 2)
    }
}

/// One step and its checks.
impl World {
    fn step(&mut self, most: usize, act: impl FnOnce(&mut Connection, Moment)) {
        let events = self.act(most, act);
        self.follow(events);
    }

    /// Does something, and gives what the connection makes of it. No more than `most` bytes may wait afterwards that did
    /// not wait before.
    fn act(&mut self, most: usize, act: impl FnOnce(&mut Connection, Moment)) -> Vec<ConnectionEvent> {
        let waited = self.connection.waiting_bytes();
        act(&mut self.connection, self.now);
        let waits = self.connection.waiting_bytes();
        assert!(waits <= waited + most, "{waited} bytes waited, {waits} wait now, and {most} are accounted for");
        std::iter::from_fn(|| self.connection.poll_event()).collect()
    }

    /// Enters what the connection did in the books, and checks them.
    fn follow(&mut self, events: Vec<ConnectionEvent>) {
        let mut stopped = Vec::new();
        for event in events {
            assert!(!self.closed, "nothing happens after the end: {event:?}");
            match event {
                // Requests are entered when their message is heard: nothing else starts one.
                ConnectionEvent::Start(request) => {
                    assert!(self.ledger.knows(request.key), "started by nothing: {request:?}");
                    let acknowledgement = Method::SubscriptionAcknowledged;
                    if request.method == Method::Listen
                        && self.connection.notify_about(request.key, acknowledgement, "{}")
                    {
                        self.ledger.acknowledge(request.key);
                    }
                }
                ConnectionEvent::Stop { key, reason } => {
                    self.ledger.stop(key, reason);
                    stopped.push(key);
                }
                ConnectionEvent::CallEnded { call, outcome } => self.calls.end(call, &outcome),
                ConnectionEvent::CallProgress { call, .. } => self.calls.progress(call),
                ConnectionEvent::Closed(_) => self.closed = true,
                _ => {}
            }
        }
        for key in stopped {
            self.calls.assert_orphans_ended(key);
        }
        self.check();
    }

    fn check(&self) {
        self.ledger.assert_agrees(&self.connection);
        self.calls.assert_agrees(&self.connection);
        if self.connection.waiting_bytes() > 0 {
            self.ledger.assert_may_wait(&self.pending(), self.connection.limits().queued_logs);
        }
        assert_eq!(self.connection.closed().is_some(), self.closed, "the end and its event");
        if self.closed || self.write_failed {
            assert_eq!(self.connection.waiting_bytes(), 0, "waits for a reader who is gone");
        }
        if self.closed {
            assert_eq!(self.connection.poll_timeout(), None, "a deadline after the end");
            assert_eq!(self.connection.open_requests(), 0, "a request is open after the end");
            self.calls.assert_all_ended();
        }
    }

    /// What waits to be written.
    fn pending(&self) -> Vec<Frame> {
        let mut connection = self.connection.clone();
        std::iter::from_fn(|| connection.poll_transmit()).flat_map(|transmit| Frame::read(&transmit.body)).collect()
    }
}

/// How it ends.
impl World {
    /// Whatever the state is, it can be brought to a good end, in two ways.
    pub(super) fn finish(mut self) {
        assert_eq!(self.connection.clone().fingerprint(self.now), self.connection.fingerprint(self.now));
        self.clone().abandon();
        let lives = !self.closed && !self.connection.is_draining();
        for which in (0..u8::MAX).take(self.connection.live_executions()) {
            self.respond(which, false);
        }
        self.write(u8::MAX, true);
        if lives {
            self.ledger.assert_settled();
        }
        for key in self.ledger.live_keys() {
            self.end(key);
        }
        self.end_input();
        self.write(u8::MAX, true);
        assert!(self.closed, "nothing is left, and it has not closed: {:?}", self.connection);
    }

    /// Handlers never end and nobody reads: it closes all the same, by its deadline.
    fn abandon(mut self) {
        self.end_input();
        let last = self.now + self.connection.limits().drain_deadline;
        while let Some(deadline) = self.connection.poll_timeout() {
            assert!(deadline <= last, "the drain lasts longer than its deadline");
            self.wait_until(deadline.max(self.now));
        }
        assert!(self.closed, "the drain has no end");
    }
}
