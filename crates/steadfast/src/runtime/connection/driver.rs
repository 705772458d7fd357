//! The driver: one future that owns an engine and the byte stream that carries its messages.
//!
//! A turn: take the letters, serve the timer, read what is there, do what the core says, write what it gives in one go.
//! It never waits for anything but its transport, its timer and its mailbox, and never calls a handler.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_proto::connection::{CallKey, Connection, Hello, Limits};
use steadfast_proto::frame::line::{Line, LineDecoder};
use steadfast_proto::mutant;
use tokio::sync::watch;

use super::engine::{ConnectionEnd, Engine, Service};
use super::mailbox::Mailbox;
use crate::runtime::Runtime;
use crate::runtime::threads::driver_migration::Movable;
use crate::transport::{Hangup, Transport};

/// How much is read at once, and about how much is written at once.
const CHUNK: usize = 64 * 1024;

/// With so few handlers under way, it is one call at a time that is being made.
const FEW: usize = 2;

/// With so many calls under way, hops between threads are shared by many, and a thread of its own pays.
const MANY: usize = 4;

/// How long the goodbye of a transport may take.
const CLOSING: Duration = Duration::from_millis(100);

/// How many turns a driver takes before it lets another one on its thread have some.
const TURNS: usize = 32;

/// How often the rest of what a peer wrote is read once it takes nothing any more. No pipe holds more than that.
const LAST_READS: usize = 64;

/// Drives one connection over a stream of bytes to its end.
pub(crate) struct Driver<T, S> {
    engine: Engine<S>,
    transport: T,
    decoder: LineDecoder,
    input: Box<[u8]>,
    /// What was read and not yet looked at.
    unread: Range<usize>,
    output: Output,
    /// The peer has closed its end; what it sent before may be unread.
    peer_gone: bool,
    /// Nobody takes what we write any more.
    output_lost: bool,
    /// How often something is still read before the connection is told so.
    last_reads: Option<usize>,
    flushing: bool,
    /// The connection has ended, and the transport is being closed.
    closing: bool,
    /// The transport is closed, or has had the time for it.
    closed: bool,
    /// There was more to do than one call at a time makes.
    busy: bool,
    /// The peer has said something.
    heard: bool,
    exit_reason: watch::Sender<ExitReason>,
}

/// How a peer ended.
#[derive(Clone, Debug, Default)]
pub(crate) enum ExitReason {
    /// It is there, or nobody knows yet.
    #[default]
    Unwritten,
    /// All that will be known.
    Written(Option<Arc<str>>),
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
        Self {
            decoder: LineDecoder::new(limits.message_bytes),
            engine: Engine::new(service, hello, limits, runtime),
            transport,
            input: vec![0; CHUNK].into_boxed_slice(),
            unread: 0..0,
            output: Output::default(),
            peer_gone: false,
            output_lost: false,
            last_reads: None,
            flushing: false,
            closing: false,
            closed: false,
            busy: false,
            heard: false,
            exit_reason: watch::Sender::default(),
        }
    }

    /// The way to this driver.
    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.engine.mailbox
    }

    /// Tells how the peer ended, once that is known.
    pub(crate) fn exit_reason(&self) -> watch::Receiver<ExitReason> {
        self.exit_reason.subscribe()
    }

    /// Tells when the connection takes no more calls.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.engine.refuses_calls()
    }

    /// Reads once, or goes on with what was read. Returns whether there was anything.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.engine.connection.wants_input() {
            return false;
        }
        if self.unread.is_empty() {
            let Poll::Ready(read) = self.transport.poll_read(cx, &mut self.input) else { return false };
            // A transport that cannot be read any more has ended, whatever it calls that.
            self.unread = 0..read.unwrap_or(0);
            self.heard = true;
            if self.unread.is_empty() {
                self.end_input();
                return true;
            }
        }
        let now = self.engine.runtime.now();
        // As soon as too much waits to be written, the rest waits to be read.
        while self.engine.connection.wants_input() {
            let mut bytes = self.input.get(self.unread.clone()).unwrap_or_default();
            let line = self.decoder.next(&mut bytes);
            self.unread.start = self.unread.end - bytes.len();
            match line {
                Some(Line::Message(line)) if mutant!(LoseLines) && line.len() % 8 == 0 => {}
                Some(Line::Message(line)) => self.engine.connection.handle_message(now, line),
                Some(Line::TooLong(salvaged)) => self.engine.connection.handle_too_long(now, salvaged),
                None => break,
            }
            self.engine.act();
        }
        true
    }

    /// The peer has ended its stream.
    fn end_input(&mut self) {
        let now = self.engine.runtime.now();
        match self.decoder.finish() {
            Some(Line::Message(line)) => self.engine.connection.handle_last_message(now, line),
            Some(Line::TooLong(salvaged)) => self.engine.connection.handle_too_long(now, salvaged),
            None => {}
        }
        if self.last_reads.take().is_some() {
            // Before the end, which would take what was not written for what may have been.
            self.engine.connection.handle_write_failed(now);
        }
        self.engine.connection.handle_end_of_input(now);
    }

    /// Once nobody takes our output, and what the peer wrote before is read. Answers may have been among that: their calls have
    /// not ended with the connection. `had_read` is whether there was more of it just now, after the end was known.
    fn mourn_output(&mut self, had_read: bool) {
        let Some(left) = self.last_reads else { return };
        let awaited = self.engine.connection.open_calls() > 0 && self.engine.connection.wants_input();
        self.last_reads = left.checked_sub(1).filter(|_| had_read && awaited);
        if self.last_reads.is_none() {
            self.engine.connection.handle_write_failed(self.engine.runtime.now());
        }
    }

    /// Learns whether the peer has gone while nothing is read or written.
    fn hear_hangup(&mut self, cx: &mut Context<'_>) -> bool {
        let mut heard = false;
        while let Poll::Ready(hangup) = self.transport.poll_hangup(cx) {
            heard = true;
            match hangup {
                Hangup::Input => self.peer_gone = true,
                Hangup::Output => self.lose_output(),
            }
        }
        // While input is read, its end is seen in its place, behind what was sent before it.
        if self.peer_gone && !self.engine.connection.wants_input() && !self.engine.connection.is_draining() {
            self.engine.connection.handle_peer_gone(self.engine.runtime.now());
        }
        heard
    }

    /// Writes what there is. Returns whether anything was written.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        if self.last_reads.is_some() {
            return false;
        }
        let mut wrote = false;
        loop {
            self.output.fill(&mut self.engine.connection, &self.engine.mailbox);
            let Some(rest) = self.output.bytes.get(self.output.written..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            match self.transport.poll_write(cx, rest) {
                Poll::Pending => return wrote,
                Poll::Ready(Ok(count)) if count > 0 => {
                    wrote = true;
                    self.flushing = true;
                    self.output.advance(count, &mut self.engine.connection);
                }
                Poll::Ready(_) => {
                    self.lose_output();
                    return true;
                }
            }
        }
        if self.flushing {
            match self.transport.poll_flush(cx) {
                Poll::Pending => return wrote,
                Poll::Ready(Ok(())) => self.flushing = false,
                Poll::Ready(Err(_)) => {
                    self.lose_output();
                    return true;
                }
            }
        }
        self.engine.connection.handle_flushed();
        wrote
    }

    /// Ends our writing side, so that the peer reads the last of it and then the end, and waits for what the transport
    /// has started.
    fn close(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let Some(ended) = self.engine.ended() else { return Poll::Pending };
        // A transport that cannot be closed is dropped, which closes it too.
        self.closed |= self.transport.poll_close(cx).is_ready() || self.engine.timer.poll(cx).is_ready();
        if !self.closed {
            return Poll::Pending;
        }
        let gone = self.transport.poll_gone(cx);
        self.write_obituary(cx);
        gone.map(|()| ended)
    }

    /// Takes down how the peer ended, as soon as the transport knows.
    fn write_obituary(&mut self, cx: &mut Context<'_>) {
        let unwritten = matches!(*self.exit_reason.borrow(), ExitReason::Unwritten);
        if unwritten && let Poll::Ready(exit_reason) = self.transport.poll_exit_reason(cx) {
            self.exit_reason.send_replace(ExitReason::Written(exit_reason.map(Arc::from)));
        }
    }

    /// Nobody takes what we write. The connection is told as soon as what the peer wrote before is read.
    fn lose_output(&mut self) {
        self.output = Output::default();
        self.flushing = false;
        if !std::mem::replace(&mut self.output_lost, true) {
            self.last_reads = Some(LAST_READS);
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
            if let Some(call) = transmit.call() {
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
    type Output = ConnectionEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let driver = &mut *self;
        if driver.closing {
            return driver.close(cx);
        }
        for _ in 0..TURNS {
            let mut progressed = driver.engine.turn(cx);
            driver.busy |= driver.engine.connection.open_calls() >= MANY;
            let lost = driver.output_lost;
            let read = driver.read(cx);
            if lost {
                driver.mourn_output(read);
            }
            progressed |= read;
            progressed |= driver.hear_hangup(cx);
            driver.engine.act();
            if progressed && (1..=FEW).contains(&driver.engine.running()) {
                // They may be done in a moment, and then nobody has to be woken. With more under way it does not pay.
                driver.engine.runtime.yield_now();
                driver.engine.collect();
                driver.engine.act();
            }
            progressed |= driver.write(cx);
            driver.engine.act();
            if driver.engine.ended().is_some() {
                driver.engine.wind_up();
                driver.closing = true;
                driver.engine.timer.reset(Some(driver.engine.runtime.now() + CLOSING));
                return driver.close(cx);
            }
            if driver.engine.connection.is_draining() {
                driver.write_obituary(cx);
            }
            if !driver.engine.rest(cx, driver.output.waiting(), progressed) {
                return Poll::Pending;
            }
        }
        driver.busy = true;
        // Others on this thread have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: Transport, S: Service> Movable for Driver<T, S> {
    fn leave_runtime(&mut self) -> bool {
        self.transport.leave_runtime()
    }

    fn was_busy(&mut self) -> bool {
        std::mem::take(&mut self.busy)
    }

    fn was_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    fn is_neglected(&self) -> bool {
        self.engine.mailbox.has_letters()
    }
}
