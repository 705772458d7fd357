//! The driver: one future that owns an engine and the transport of a connection.
//!
//! One turn: run the commands in the mailbox, handle the timeout, read the bytes that are there, process the events of the core,
//! write all its messages at once. The driver waits only for its transport, its timer and its mailbox, and never calls a handler.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_proto::connection::{CallKey, ClientOrServerDescription, Connection, Limits};
use steadfast_proto::frame::line::{InputLine, LineDecoder};
use steadfast_proto::mutant;
use tokio::sync::watch;

use super::engine::{ConnectionCloseReport, ConnectionEngine, InboundDispatcher};
use super::mailbox::DriverMailbox;
use crate::runtime::Runtime;
use crate::runtime::threads::driver_migration::MigratableDriver;
use crate::transport::{HangupDirection, Transport};

/// How many bytes are read at once, and about how many are written at once.
const CHUNK: usize = 64 * 1024;

/// With at most this many running handlers, the peer is assumed to send one request at a time.
const FEW_HANDLERS: usize = 2;

/// From this many calls in flight on, many calls share each switch between threads, and the driver is better off on its own.
const MANY_CALLS: usize = 4;

/// How long closing the transport may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// After this many turns in one poll, the driver yields to other tasks on its thread.
const MAX_TURNS_PER_POLL: usize = 32;

/// After the peer has stopped reading, its remaining output is read in at most this many reads: no pipe holds more.
const MAX_LAST_READS: usize = 64;

/// Drives one connection over a byte stream to its end.
pub(crate) struct ConnectionDriver<T, S> {
    engine: ConnectionEngine<S>,
    transport: T,
    decoder: LineDecoder,
    input: Box<[u8]>,
    /// The bytes of `input` that were read from the transport and not decoded yet.
    undecoded: Range<usize>,
    output: OutputBuffer,
    /// The peer has closed its sending end. Bytes that it sent before may be unread.
    input_closed: bool,
    /// The peer does not read any more.
    output_closed: bool,
    /// How many more reads are allowed before `handle_write_failed`.
    last_reads: Option<usize>,
    flushing: bool,
    /// The connection has ended, and the transport is being closed.
    closing: bool,
    /// The transport is closed, or closing it has timed out.
    closed: bool,
    /// Whether there was more to do since the last check than one call at a time causes.
    busy: bool,
    /// Bytes of the peer have arrived.
    heard: bool,
    exit_reason: watch::Sender<PeerExitReason>,
}

/// Why the peer exited, in words for people.
#[derive(Clone, Debug, Default)]
pub(crate) enum PeerExitReason {
    /// The peer has not exited, or its reason is not known yet.
    #[default]
    Pending,
    /// The reason, if there is one.
    Known(Option<Arc<str>>),
}

/// Bytes that wait to be written to the transport.
#[derive(Default)]
struct OutputBuffer {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
    /// The calls in `bytes`, with the offset of their first byte.
    calls: VecDeque<(usize, CallKey)>,
}

impl<T: Transport, S: InboundDispatcher> ConnectionDriver<T, S> {
    /// A driver. `service` is called with its mailbox.
    pub(crate) fn new(
        transport: T,
        service: impl FnOnce(&Arc<DriverMailbox>) -> S,
        hello: ClientOrServerDescription,
        limits: Limits,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        Self {
            decoder: LineDecoder::new(limits.message_bytes),
            engine: ConnectionEngine::new(service, hello, limits, runtime),
            transport,
            input: vec![0; CHUNK].into_boxed_slice(),
            undecoded: 0..0,
            output: OutputBuffer::default(),
            input_closed: false,
            output_closed: false,
            last_reads: None,
            flushing: false,
            closing: false,
            closed: false,
            busy: false,
            heard: false,
            exit_reason: watch::Sender::default(),
        }
    }

    pub(crate) fn mailbox(&self) -> &Arc<DriverMailbox> {
        &self.engine.mailbox
    }

    /// Receives why the peer exited, once that is known.
    pub(crate) fn exit_reason(&self) -> watch::Receiver<PeerExitReason> {
        self.exit_reason.subscribe()
    }

    /// Becomes true when the connection accepts no more calls.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.engine.refuses_calls()
    }

    /// Reads once, unless there are bytes from an earlier read, and decodes messages. Returns whether there was anything.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.engine.connection.wants_input() {
            return false;
        }
        if self.undecoded.is_empty() {
            let Poll::Ready(read) = self.transport.poll_read(cx, &mut self.input) else { return false };
            // An error of a read is treated as the end of the stream.
            self.undecoded = 0..read.unwrap_or(0);
            self.heard = true;
            if self.undecoded.is_empty() {
                self.end_input();
                return true;
            }
        }
        let now = self.engine.runtime.now();
        // Backpressure: while too much output waits, the connection wants no input.
        while self.engine.connection.wants_input() {
            let mut bytes = self.input.get(self.undecoded.clone()).unwrap_or_default();
            let line = self.decoder.next(&mut bytes);
            self.undecoded.start = self.undecoded.end - bytes.len();
            match line {
                Some(InputLine::Message(line)) if mutant!(LoseLines) && line.len() % 8 == 0 => {}
                Some(InputLine::Message(line)) => self.engine.connection.handle_message(now, line),
                Some(InputLine::TooLong(salvaged)) => self.engine.connection.handle_too_long(now, salvaged),
                None => break,
            }
            self.engine.process_events();
        }
        true
    }

    /// The peer has ended its stream.
    fn end_input(&mut self) {
        let now = self.engine.runtime.now();
        match self.decoder.finish() {
            Some(InputLine::Message(line)) => self.engine.connection.handle_last_message(now, line),
            Some(InputLine::TooLong(salvaged)) => self.engine.connection.handle_too_long(now, salvaged),
            None => {}
        }
        if self.last_reads.take().is_some() {
            // Before the end of input, which would treat requests that were never written as possibly sent.
            self.engine.connection.handle_write_failed(now);
        }
        self.engine.connection.handle_end_of_input(now);
    }

    /// After the peer has stopped reading, tells the connection so as soon as all bytes that the peer wrote before are read: there
    /// may be responses among them, and their calls must not end with the connection. `had_read` is whether this turn has read
    /// something.
    fn count_last_read(&mut self, had_read: bool) {
        let Some(left) = self.last_reads else { return };
        let awaits_responses = self.engine.connection.open_calls() > 0 && self.engine.connection.wants_input();
        self.last_reads = left.checked_sub(1).filter(|_| had_read && awaits_responses);
        if self.last_reads.is_none() {
            self.engine.connection.handle_write_failed(self.engine.runtime.now());
        }
    }

    /// Notices hangups of the peer while nothing is read or written. Returns whether there was one.
    fn poll_hangups(&mut self, cx: &mut Context<'_>) -> bool {
        let mut hung_up = false;
        while let Poll::Ready(hangup) = self.transport.poll_hangup(cx) {
            hung_up = true;
            match hangup {
                HangupDirection::Input => self.input_closed = true,
                HangupDirection::Output => self.close_output(),
            }
        }
        // While input is read, the read after the last byte reports the end.
        if self.input_closed && !self.engine.connection.wants_input() && !self.engine.connection.is_draining() {
            self.engine.connection.handle_peer_gone(self.engine.runtime.now());
        }
        hung_up
    }

    /// Writes and flushes all messages of the connection. Returns whether anything was written.
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
                    self.close_output();
                    return true;
                }
            }
        }
        if self.flushing {
            match self.transport.poll_flush(cx) {
                Poll::Pending => return wrote,
                Poll::Ready(Ok(())) => self.flushing = false,
                Poll::Ready(Err(_)) => {
                    self.close_output();
                    return true;
                }
            }
        }
        self.engine.connection.handle_flushed();
        wrote
    }

    /// Closes the writing side, so that the peer reads the last bytes and then the end of the stream, and waits for what the
    /// transport has started.
    fn close(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionCloseReport> {
        let Some(ended) = self.engine.ended() else { return Poll::Pending };
        // If closing the transport times out, dropping it closes it.
        self.closed |= self.transport.poll_close(cx).is_ready() || self.engine.timer.poll(cx).is_ready();
        if !self.closed {
            return Poll::Pending;
        }
        let gone = self.transport.poll_gone(cx);
        self.poll_exit_reason(cx);
        gone.map(|()| ended)
    }

    /// Publishes why the peer exited, as soon as the transport knows.
    fn poll_exit_reason(&mut self, cx: &mut Context<'_>) {
        let pending = matches!(*self.exit_reason.borrow(), PeerExitReason::Pending);
        if pending && let Poll::Ready(exit_reason) = self.transport.poll_exit_reason(cx) {
            self.exit_reason.send_replace(PeerExitReason::Known(exit_reason.map(Arc::from)));
        }
    }

    /// The peer does not read any more. `count_last_read` passes that on to the connection.
    fn close_output(&mut self) {
        self.output = OutputBuffer::default();
        self.flushing = false;
        if !std::mem::replace(&mut self.output_closed, true) {
            self.last_reads = Some(MAX_LAST_READS);
        }
    }
}

impl OutputBuffer {
    /// Takes messages from the core, each of them one line, until there is a chunk.
    fn fill(&mut self, connection: &mut Connection, mailbox: &DriverMailbox) {
        if self.written < self.bytes.len() {
            return;
        }
        self.written = 0;
        self.calls.clear();
        self.bytes.clear();
        while self.bytes.len() < CHUNK {
            let Some(transmit) = connection.poll_transmit() else {
                if self.bytes.is_empty() && self.bytes.capacity() > 2 * CHUNK {
                    mailbox.reuse_buffer(std::mem::take(&mut self.bytes));
                }
                return;
            };
            if let Some(call) = transmit.call() {
                self.calls.push_back((self.bytes.len(), call));
            }
            if self.bytes.is_empty() && transmit.body.len() >= CHUNK / 2 {
                // A large message is not copied.
                mailbox.reuse_buffer(std::mem::replace(&mut self.bytes, transmit.body));
            } else {
                self.bytes.extend_from_slice(&transmit.body);
            }
            self.bytes.push(b'\n');
        }
    }

    /// Counts written bytes. A call counts as sent as soon as its first byte is written.
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

    fn unwritten(&self) -> usize {
        self.bytes.len().saturating_sub(self.written)
    }
}

// The driver is moved before it is polled and never pinned in place: nothing in it refers to itself.
impl<T, S> Unpin for ConnectionDriver<T, S> {}

impl<T: Transport, S: InboundDispatcher> Future for ConnectionDriver<T, S> {
    type Output = ConnectionCloseReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ConnectionCloseReport> {
        let driver = &mut *self;
        if driver.closing {
            return driver.close(cx);
        }
        for _ in 0..MAX_TURNS_PER_POLL {
            let mut progressed = driver.engine.run_commands_and_timer(cx);
            driver.busy |= driver.engine.connection.open_calls() >= MANY_CALLS;
            let output_closed = driver.output_closed;
            let read = driver.read(cx);
            if output_closed {
                driver.count_last_read(read);
            }
            progressed |= read;
            progressed |= driver.poll_hangups(cx);
            driver.engine.process_events();
            if progressed && (1..=FEW_HANDLERS).contains(&driver.engine.running_handlers()) {
                // The handlers may respond in a moment, and then need not wake this thread. With more handlers this does not pay.
                if driver.engine.runtime.as_tokio().is_some() {
                    std::thread::yield_now();
                }
                driver.engine.run_commands();
                driver.engine.process_events();
            }
            progressed |= driver.write(cx);
            driver.engine.process_events();
            if driver.engine.ended().is_some() {
                driver.engine.abandon_all();
                driver.closing = true;
                driver.engine.timer.reset(Some(driver.engine.runtime.now() + CLOSE_TIMEOUT));
                return driver.close(cx);
            }
            if driver.engine.connection.is_draining() {
                driver.poll_exit_reason(cx);
            }
            if !driver.engine.prepare_sleep(cx, driver.output.unwritten(), progressed) {
                return Poll::Pending;
            }
        }
        driver.busy = true;
        // Yields to other tasks on this thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: Transport, S: InboundDispatcher> MigratableDriver for ConnectionDriver<T, S> {
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
        self.engine.mailbox.has_commands()
    }
}
