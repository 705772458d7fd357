//! The driver: one future that owns a connection and its transport.
//!
//! A turn: take the letters, serve the timer, read what is there, do what the core says, write what it gives in one go.
//! It never waits for anything but its transport, its timer and its mailbox, and never calls a handler.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_model::Method;
use steadfast_proto::Moment;
use steadfast_proto::connection::{CallKey, CloseCause, Connection, Event, Hello, Key, Limits, Outcome, Peer, Request};
use steadfast_proto::encode::Answer;
use steadfast_proto::envelope::OwnedParams;
use steadfast_proto::frame::line::{Line, LineDecoder};

use super::calls::{CallEnding, Slot};
use super::execution::Execution;
use super::log::OddLog;
use super::mailbox::{Letter, Mailbox};
use super::{Runtime, Timer};
use crate::transport::{Hangup, Transport};

/// How much is read at once, and about how much is written at once.
const CHUNK: usize = 64 * 1024;

/// With so few handlers under way, it is one call at a time that is being made.
const FEW: usize = 2;

/// How long the goodbye of a transport may take.
const CLOSING: Duration = Duration::from_millis(100);

/// How many turns a driver takes before it lets another one on its thread have some.
const TURNS: usize = 32;

/// What a driver asks of what it serves. Called on the driver's thread: must not block and must not run user code.
pub(crate) trait Service: Send + 'static {
    /// Starts a request, or answers it at once.
    fn start(&mut self, request: Request, mailbox: &Arc<Mailbox>, runtime: &Arc<dyn Runtime>) -> Started;

    /// The handshake of an older revision is done.
    fn opened(&mut self, _peer: &Arc<Peer>) {}

    /// The peer tells something.
    fn notified(&mut self, _method: Method, _params: OwnedParams) {}
}

/// What became of a request.
pub(crate) enum Started {
    /// It has its answer.
    Answered(Answer),
    /// It runs.
    Running(Arc<Execution>),
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Why.
    pub cause: CloseCause,
    /// Executions that had not ended when the time was up: blocked threads and workers.
    pub abandoned: usize,
}

/// Drives one connection to its end.
pub(crate) struct Driver<T, S> {
    connection: Connection,
    transport: T,
    service: S,
    mailbox: Arc<Mailbox>,
    runtime: Arc<dyn Runtime>,
    timer: Box<dyn Timer>,
    decoder: LineDecoder,
    input: Box<[u8]>,
    /// What was read and not yet looked at.
    unread: Range<usize>,
    output: Output,
    executions: BTreeMap<Key, Arc<Execution>>,
    calls: BTreeMap<CallKey, Arc<Slot>>,
    letters: Vec<Letter>,
    odd: OddLog,
    /// The peer has closed its end; what it sent before may be unread.
    peer_gone: bool,
    flushing: bool,
    ended: Option<Ended>,
}

/// Bytes on their way to the transport.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
    /// Calls among them, by the offset of their first byte.
    calls: VecDeque<(usize, CallKey)>,
}

impl<T: Transport, S: Service> Driver<T, S> {
    /// A driver; `service` is given the way to it.
    pub(crate) fn new(
        transport: T,
        service: impl FnOnce(&Arc<Mailbox>) -> S,
        hello: Hello,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let mailbox = Mailbox::new(&limits);
        let service = service(&mailbox);
        Self {
            decoder: LineDecoder::new(limits.message_bytes),
            connection: Connection::new(hello, limits),
            transport,
            service,
            mailbox,
            timer: runtime.timer(),
            runtime,
            input: vec![0; CHUNK].into_boxed_slice(),
            unread: 0..0,
            output: Output::default(),
            executions: BTreeMap::new(),
            calls: BTreeMap::new(),
            letters: Vec::new(),
            odd: OddLog::default(),
            peer_gone: false,
            flushing: false,
            ended: None,
        }
    }

    /// The way to this driver.
    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// Takes the letters. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.collect(&mut letters);
        let any = !letters.is_empty();
        let now = self.runtime.now();
        for letter in letters.drain(..) {
            self.open_letter(now, letter);
        }
        self.letters = letters;
        any
    }

    fn open_letter(&mut self, now: Moment, letter: Letter) {
        match letter {
            Letter::Answer { key, answer } => {
                self.fetch_progress(now, key);
                self.connection.respond(now, key, answer);
            }
            Letter::Finished { key, answer } => {
                self.fetch_progress(now, key);
                self.connection.respond(now, key, answer);
                self.end_execution(now, key);
            }
            Letter::Ended { key } => self.end_execution(now, key),
            Letter::Progress { key } => self.fetch_progress(now, key),
            Letter::Log { key, level, logger, data } => {
                if let Some(execution) = self.executions.get(&key) {
                    execution.log_fetched();
                }
                self.connection.log(key, level, logger, data);
            }
            Letter::Call { key, call, slot } => {
                let made = self.connection.call(now, key, call);
                self.enter_call(key, slot, made);
            }
            Letter::Initialize { key, call, offered, slot } => {
                let made = self.connection.initialize(now, key, call, offered);
                self.enter_call(key, slot, made);
            }
            Letter::SpeakModern(peer) => self.connection.speak_modern(*peer),
            Letter::CancelCall(call) => {
                self.calls.remove(&call);
                self.connection.cancel_call(call, None);
            }
            Letter::Notify(method) => {
                self.connection.notify_once(method);
            }
            Letter::ShutDown { at_once: false } => self.connection.shut_down(now),
            Letter::ShutDown { at_once: true } => self.connection.shut_down_now(now),
        }
    }

    fn enter_call(
        &mut self,
        key: CallKey,
        slot: Arc<Slot>,
        made: Result<(), steadfast_proto::connection::CallRefused>,
    ) {
        match made {
            Ok(()) => drop(self.calls.insert(key, slot)),
            Err(refused) => slot.end(CallEnding::Refused(refused)),
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

    /// Reads once, or goes on with what was read. Returns whether there was anything.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.connection.wants_input() {
            return false;
        }
        if self.unread.is_empty() {
            let Poll::Ready(read) = self.transport.poll_read(cx, &mut self.input) else { return false };
            // A transport that cannot be read any more has ended, whatever it calls that.
            self.unread = 0..read.unwrap_or(0);
            if self.unread.is_empty() {
                self.end_input();
                return true;
            }
        }
        let now = self.runtime.now();
        // As soon as too much waits to be written, the rest waits to be read.
        while self.connection.wants_input() {
            let mut bytes = self.input.get(self.unread.clone()).unwrap_or_default();
            let line = self.decoder.next(&mut bytes);
            self.unread.start = self.unread.end - bytes.len();
            match line {
                Some(Line::Message(line)) => self.connection.handle_message(now, line),
                Some(Line::TooLong(salvaged)) => self.connection.handle_too_long(now, salvaged),
                None => break,
            }
            self.act();
        }
        true
    }

    /// The peer has ended its stream.
    fn end_input(&mut self) {
        let now = self.runtime.now();
        match self.decoder.finish() {
            Some(Line::Message(line)) => self.connection.handle_message(now, line),
            Some(Line::TooLong(salvaged)) => self.connection.handle_too_long(now, salvaged),
            None => {}
        }
        self.connection.handle_end_of_input(now);
    }

    /// Learns whether the peer has gone while nothing is read or written.
    fn hear_hangup(&mut self, cx: &mut Context<'_>) -> bool {
        let mut heard = false;
        while let Poll::Ready(hangup) = self.transport.poll_hangup(cx) {
            heard = true;
            match hangup {
                Hangup::Input => self.peer_gone = true,
                Hangup::Output => self.connection.handle_write_failed(self.runtime.now()),
            }
        }
        // While input is read, its end is seen in its place, behind what was sent before it.
        if self.peer_gone && !self.connection.wants_input() && !self.connection.is_draining() {
            self.connection.handle_peer_gone(self.runtime.now());
        }
        heard
    }

    /// Does what the core says.
    fn act(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Start(request) => self.start(request),
                Event::Stop { key, reason } => {
                    if let Some(execution) = self.executions.get(&key) {
                        execution.stop(reason);
                    }
                }
                Event::CallEnded { call, outcome } => {
                    if let Some(slot) = self.calls.remove(&call) {
                        slot.end(CallEnding::Ended(outcome));
                    }
                }
                Event::CallProgress { call, progress } => {
                    if let Some(slot) = self.calls.get(&call) {
                        slot.progress(progress);
                    }
                }
                Event::Notification { method, params } => self.service.notified(method, params),
                Event::Opened(peer) => self.service.opened(&peer),
                Event::Odd(oddity) => self.odd.note(self.runtime.now(), oddity),
                Event::Closed(cause) => {
                    let abandoned = self.connection.statistics().abandoned;
                    self.ended = Some(Ended { cause, abandoned });
                }
            }
        }
    }

    fn start(&mut self, request: Request) {
        let key = request.key;
        match self.service.start(request, &self.mailbox, &self.runtime) {
            Started::Running(execution) => drop(self.executions.insert(key, execution)),
            Started::Answered(answer) => {
                let now = self.runtime.now();
                self.connection.respond(now, key, answer);
                self.connection.handle_execution_ended(now, key);
            }
        }
    }

    /// Writes what there is. Returns whether anything was written.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut wrote = false;
        loop {
            self.output.fill(&mut self.connection, &self.mailbox);
            let Some(rest) = self.output.bytes.get(self.output.written..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            match self.transport.poll_write(cx, rest) {
                Poll::Pending => return wrote,
                Poll::Ready(Ok(count)) if count > 0 => {
                    wrote = true;
                    self.flushing = true;
                    self.output.advance(count, &mut self.connection);
                }
                Poll::Ready(_) => {
                    self.fail_output();
                    return true;
                }
            }
        }
        if self.flushing {
            match self.transport.poll_flush(cx) {
                Poll::Pending => return wrote,
                Poll::Ready(Ok(())) => self.flushing = false,
                Poll::Ready(Err(_)) => {
                    self.fail_output();
                    return true;
                }
            }
        }
        self.connection.handle_flushed();
        wrote
    }

    /// Ends our writing side, so that the peer reads the last of it and then the end.
    fn close(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let Some(ended) = self.ended else { return Poll::Pending };
        // A transport that cannot be closed is dropped, which closes it too.
        let closed = self.transport.poll_close(cx).is_ready() || self.timer.poll(cx).is_ready();
        if closed { Poll::Ready(ended) } else { Poll::Pending }
    }

    fn fail_output(&mut self) {
        self.output = Output::default();
        self.flushing = false;
        self.connection.handle_write_failed(self.runtime.now());
    }
}

impl<T, S> Driver<T, S> {
    /// Everyone who still waits learns that the connection is gone.
    fn wind_up(&mut self) {
        for execution in std::mem::take(&mut self.executions).into_values() {
            execution.abandon();
        }
        for slot in std::mem::take(&mut self.calls).into_values() {
            slot.end(CallEnding::Ended(Outcome::Closed { sent: true }));
        }
        for letter in self.mailbox.close() {
            if let Letter::Call { slot, .. } | Letter::Initialize { slot, .. } = letter {
                slot.end(CallEnding::Refused(steadfast_proto::connection::CallRefused::Closed));
            }
        }
    }
}

impl Output {
    /// Takes messages from the core, each a line, until there is a chunk of them.
    fn fill(&mut self, connection: &mut Connection, mailbox: &Mailbox) {
        if self.written < self.bytes.len() {
            return;
        }
        self.written = 0;
        self.calls.clear();
        self.bytes.clear();
        while self.bytes.len() < CHUNK {
            let Some(transmit) = connection.poll_transmit() else {
                if self.bytes.is_empty() && self.bytes.capacity() > 2 * CHUNK {
                    mailbox.give_back(std::mem::take(&mut self.bytes));
                }
                return;
            };
            if let Some(call) = transmit.call {
                self.calls.push_back((self.bytes.len(), call));
            }
            if self.bytes.is_empty() && transmit.body.len() >= CHUNK / 2 {
                // A large message is not copied.
                mailbox.give_back(std::mem::replace(&mut self.bytes, transmit.body));
            } else {
                self.bytes.extend_from_slice(&transmit.body);
            }
            self.bytes.push(b'\n');
        }
    }

    fn advance(&mut self, count: usize, connection: &mut Connection) {
        self.written += count;
        while let Some((start, call)) = self.calls.front().copied() {
            if start >= self.written {
                break;
            }
            self.calls.pop_front();
            connection.handle_call_sent(call);
        }
    }

    fn waiting(&self) -> usize {
        self.bytes.len().saturating_sub(self.written)
    }
}

// The driver is moved before it is polled and never pinned in place: nothing in it refers to itself.
impl<T, S> Unpin for Driver<T, S> {}

impl<T: Transport, S: Service> Future for Driver<T, S> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let driver = &mut *self;
        if driver.ended.is_some() {
            return driver.close(cx);
        }
        for _ in 0..TURNS {
            let mut progressed = driver.collect();
            if driver.timer.poll(cx).is_ready() {
                driver.connection.handle_timeout(driver.runtime.now());
                progressed = true;
            }
            progressed |= driver.read(cx);
            progressed |= driver.hear_hangup(cx);
            driver.act();
            if progressed && (1..=FEW).contains(&driver.executions.len()) {
                // They may be done in a moment, and then nobody has to be woken. With more under way it does not pay.
                driver.runtime.yield_now();
                driver.collect();
                driver.act();
            }
            progressed |= driver.write(cx);
            driver.act();
            if driver.ended.is_some() {
                driver.wind_up();
                driver.timer.reset(Some(driver.runtime.now() + CLOSING));
                return driver.close(cx);
            }
            let held = driver.connection.waiting_bytes() + driver.output.waiting();
            progressed |= driver.mailbox.update_room(held);
            driver.timer.reset(driver.connection.poll_timeout());
            if !progressed && !driver.mailbox.listen(cx) {
                // A timer that was set just now has to be polled to wake us.
                if driver.timer.poll(cx).is_pending() {
                    return Poll::Pending;
                }
                driver.connection.handle_timeout(driver.runtime.now());
            }
        }
        // Others on this thread have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T, S> Drop for Driver<T, S> {
    fn drop(&mut self) {
        self.wind_up();
    }
}
