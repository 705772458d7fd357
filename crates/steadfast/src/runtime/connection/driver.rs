//! The driver: one future that owns an engine and the transport of a connection.
//!
//! In each turn, the driver runs the commands in its mailbox, handles a timeout that is due, reads the bytes that have
//! arrived, processes the events of the protocol core, and writes all messages of the core at once. The driver waits
//! only for its transport, its timer and its mailbox, and never calls a handler.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use steadfast_proto::connection::{ClientOrServerDescription, Limits};
use steadfast_proto::frame::line::{InputLine, LineDecoder};
use steadfast_proto::mutant;
use tokio::sync::watch;

use super::engine::{ConnectionCloseReport, ConnectionEngine, InboundDispatcher};
use super::mailbox::DriverMailbox;
use super::output_buffer::OutputBuffer;
use crate::runtime::Runtime;
use crate::runtime::threads::driver_migration::MigratableDriver;
use crate::transport::{HangupDirection, Transport};

/// The maximum number of bytes that are read at once, and about the maximum number that are written at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// With at least this many calls in flight, the driver of a client counts as busy and runs on the I/O loop, where
/// each switch between threads serves several calls.
const MANY_CALLS: usize = 4;

/// How long closing the transport may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The maximum number of turns that the driver of a connection takes in one poll, before it yields to other tasks on
/// its thread.
const MAX_TURNS_PER_POLL: usize = 32;

/// After the peer has stopped reading, the driver reads the peer's remaining output with at most this many reads: no
/// pipe holds more bytes.
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
    /// The peer has closed its sending end. Bytes that the peer sent before may still be unread.
    input_closed: bool,
    /// The peer does not read any more.
    output_closed: bool,
    /// After the peer has stopped reading, the number of reads that are left before the driver calls
    /// `handle_write_failed`.
    last_reads: Option<usize>,
    flushing: bool,
    /// The connection has ended, and the transport is being closed.
    closing: bool,
    /// The transport is closed, or closing it has timed out.
    closed: bool,
    /// Whether the driver had more to do since the last check than calls that are made one at a time would cause.
    busy: bool,
    /// Whether bytes of the peer have arrived since the last check.
    heard: bool,
    exit_reason: watch::Sender<PeerExitReason>,
}

/// The reason why the process of the peer exited, as text for people.
#[derive(Clone, Debug, Default)]
pub(crate) enum PeerExitReason {
    /// The peer has not exited, or the reason of its exit is not known yet.
    #[default]
    Pending,
    /// The reason of the peer's exit, if there is one.
    Known(Option<Arc<str>>),
}

/// What the driver has read of the peer's bytes in one turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputProgress {
    /// The connection wants no input, because too much output waits or because input has ended.
    Unwanted,
    /// All bytes that have arrived are decoded, and the task will be woken by the next ones.
    Waits { had_read: bool },
    /// There are bytes to decode in the next turn, or the peer's stream has just ended.
    HasMore,
}

impl<T: Transport, S: InboundDispatcher> ConnectionDriver<T, S> {
    /// Creates a driver. `service` is called with the mailbox of the new driver.
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

    /// Returns a receiver for the reason why the peer exited, once the reason is known.
    pub(crate) fn exit_reason(&self) -> watch::Receiver<PeerExitReason> {
        self.exit_reason.subscribe()
    }

    /// Returns a receiver whose value becomes true when the connection accepts no more calls.
    pub(crate) fn refuses_calls(&mut self) -> watch::Receiver<bool> {
        self.engine.refuses_calls()
    }

    /// Reads from the transport once, unless bytes from an earlier read are left, and decodes messages.
    fn read(&mut self, cx: &mut Context<'_>) -> InputProgress {
        if !self.engine.connection.wants_input() {
            return InputProgress::Unwanted;
        }
        if self.undecoded.is_empty() {
            match self.fill_input(cx) {
                Poll::Pending => return InputProgress::Waits { had_read: false },
                Poll::Ready(false) => return InputProgress::HasMore,
                Poll::Ready(true) => {}
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
        // Nothing is left to decode: the next bytes are read for the next turn or, usually, the task is registered to be woken by
        // them, so that no further turn is needed for that. Not after the peer has stopped reading: then the connection may end in
        // this turn, and bytes that were read must have been decoded.
        let reads_ahead = self.undecoded.is_empty() && !self.output_closed && self.engine.connection.wants_input();
        if reads_ahead && self.fill_input(cx).is_pending() {
            return InputProgress::Waits { had_read: true };
        }
        InputProgress::HasMore
    }

    /// Reads from the transport once. Ready with false if the peer's stream has ended.
    fn fill_input(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Poll::Ready(read) = self.transport.poll_read(cx, &mut self.input) else { return Poll::Pending };
        // An error of a read is treated as the end of the stream.
        self.undecoded = 0..read.unwrap_or(0);
        self.heard = true;
        if self.undecoded.is_empty() {
            self.end_input();
        }
        Poll::Ready(!self.undecoded.is_empty())
    }

    /// Handles the end of the bytes from the peer: decodes the last line, and tells the connection.
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

    /// After the peer has stopped reading, tells the connection so as soon as all bytes that the peer wrote before are
    /// read: there may be responses among them, and their calls must not end with the connection. `had_read` says
    /// whether the driver has read bytes from the peer in its current turn.
    fn count_last_read(&mut self, had_read: bool) {
        let Some(left) = self.last_reads else { return };
        let awaits_responses = self.engine.connection.open_calls() > 0 && self.engine.connection.wants_input();
        self.last_reads = left.checked_sub(1).filter(|_| had_read && awaits_responses);
        if self.last_reads.is_none() {
            self.engine.connection.handle_write_failed(self.engine.runtime.now());
        }
    }

    /// Notices hangups of the peer while nothing is read or written. Returns whether the peer has hung up.
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

    /// Writes and flushes all messages of the connection.
    fn write(&mut self, cx: &mut Context<'_>) {
        if self.last_reads.is_some() {
            return;
        }
        loop {
            self.output.fill(&mut self.engine.connection, &self.engine.mailbox);
            let rest = self.output.rest();
            if rest.is_empty() {
                break;
            }
            match self.transport.poll_write(cx, rest) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.flushing = true;
                    self.output.advance(count, &mut self.engine.connection);
                }
                Poll::Ready(_) => return self.close_output(),
            }
        }
        if self.flushing {
            match self.transport.poll_flush(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) => self.flushing = false,
                Poll::Ready(Err(_)) => return self.close_output(),
            }
        }
        self.engine.connection.handle_flushed();
    }

    /// Closes the writing side of the transport, so that the peer reads the last bytes and then the end of the stream.
    /// After the close, waits until everything that the transport has started is gone, such as a child process.
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

    /// Discards the unwritten output, because the peer does not read any more. `count_last_read` later tells the
    /// connection that the peer does not read.
    fn close_output(&mut self) {
        self.output = OutputBuffer::default();
        self.flushing = false;
        if !std::mem::replace(&mut self.output_closed, true) {
            self.last_reads = Some(MAX_LAST_READS);
        }
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
            // What follows in this turn does all that commands and timeouts lead to.
            driver.engine.run_commands_and_timer(cx);
            driver.busy |= driver.engine.connection.open_calls() >= MANY_CALLS;
            let output_closed = driver.output_closed;
            let input = driver.read(cx);
            let had_read = matches!(input, InputProgress::HasMore | InputProgress::Waits { had_read: true });
            if output_closed {
                driver.count_last_read(had_read);
            }
            let mut progressed = input == InputProgress::HasMore || output_closed && had_read;
            progressed |= driver.poll_hangups(cx);
            driver.engine.process_events();
            driver.write(cx);
            // What the connection wants to do now that its output was taken is for the next turn.
            progressed |= driver.engine.process_events();
            progressed |= driver.output_closed != output_closed;
            progressed |= input == InputProgress::Unwanted && driver.engine.connection.wants_input();
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
