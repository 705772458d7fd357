//! One of the two sides: an end, what it reads with, what it writes with, and its handlers.

use std::collections::VecDeque;
use std::sync::Arc;

use steadfast_proto::Moment;
use steadfast_proto::frame::line::{InputLine, LineDecoder};

use super::link::{Link, Read};
use super::workload::HandlerPlan;
use crate::endpoint::Endpoint;
use crate::observation::CallNumber;
use crate::observation::message::{Id, Message};
use crate::observation::trace::Trace;

/// A side.
pub(super) struct Party {
    pub(super) endpoint: Endpoint,
    decoder: LineDecoder,
    writer: Writer,
    /// The handlers of its executions.
    pub(super) handlers: Vec<Handler>,
    /// When its timer is set to go off, in the world's queue.
    pub(super) timer: Option<Moment>,
    /// A read and a write that are already in the world's queue.
    pub(super) read_due: Option<Moment>,
    pub(super) write_due: bool,
    /// The link was full when it last wrote.
    pub(super) blocked: bool,
    /// The id of the last call of its that was on the wire.
    pub(super) last_call: Option<Id>,
    peer_gone: bool,
}

/// A handler that runs.
pub(super) struct Handler {
    pub(super) plan: Arc<HandlerPlan>,
    pub(super) next: usize,
    pub(super) progress: u32,
    pub(super) ended: bool,
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    written: usize,
    /// Calls, by the offset of their first byte.
    calls: VecDeque<(usize, CallNumber)>,
    /// Lines put in by hand.
    by_hand: VecDeque<Vec<u8>>,
    unflushed: bool,
    broken: bool,
}

/// What came of writing.
pub(super) enum WriteResult {
    /// There is nothing more to write.
    All,
    /// Something was written and more may follow.
    Some,
    /// The link is full.
    Blocked,
}

impl Party {
    pub(super) fn new(endpoint: Endpoint, longest: usize) -> Self {
        Self {
            endpoint,
            decoder: LineDecoder::new(longest),
            writer: Writer::default(),
            handlers: Vec::new(),
            timer: None,
            read_due: None,
            write_due: false,
            blocked: false,
            last_call: None,
            peer_gone: false,
        }
    }

    /// Puts a hand-written line on the wire, after what is being written.
    pub(super) fn put(&mut self, line: Vec<u8>) {
        self.writer.by_hand.push_back(line);
    }

    /// Writes once.
    pub(super) fn write(&mut self, trace: &mut Trace, link: &mut Link) -> WriteResult {
        if self.writer.broken || self.endpoint.is_closed() {
            return WriteResult::All;
        }
        self.fill(trace, link.gather());
        let Some(rest) = self.writer.bytes.get(self.writer.written..).filter(|rest| !rest.is_empty()) else {
            if self.writer.unflushed {
                self.writer.unflushed = false;
                self.endpoint.flushed(trace);
            }
            return WriteResult::All;
        };
        match link.write(self.endpoint.now, rest) {
            Ok(0) => WriteResult::Blocked,
            Ok(count) => {
                self.writer.written += count;
                while let Some((start, call)) =
                    self.writer.calls.front().copied().filter(|(start, _)| *start < self.writer.written)
                {
                    debug_assert!(start < self.writer.written, "its first byte was written");
                    self.writer.calls.pop_front();
                    self.endpoint.first_byte(trace, call);
                }
                WriteResult::Some
            }
            Err(_) => self.fail_write(trace),
        }
    }

    /// It learns that its output is not read, although it may have nothing to write.
    pub(super) fn hang_up(&mut self, trace: &mut Trace) {
        if !self.writer.broken && !self.endpoint.is_closed() {
            self.fail_write(trace);
        }
    }

    fn fail_write(&mut self, trace: &mut Trace) -> WriteResult {
        self.writer = Writer { broken: true, ..Writer::default() };
        self.endpoint.fail_write(trace);
        WriteResult::All
    }

    fn fill(&mut self, trace: &mut Trace, gather: usize) {
        let writer = &mut self.writer;
        if writer.written < writer.bytes.len() {
            return;
        }
        writer.bytes.clear();
        writer.calls.clear();
        writer.written = 0;
        for line in writer.by_hand.drain(..) {
            writer.bytes.extend_from_slice(&line);
            writer.bytes.push(b'\n');
        }
        while writer.bytes.len() < gather {
            let Some(frame) = self.endpoint.take_frame(trace) else { return };
            writer.unflushed = true;
            if let Some(call) = frame.call {
                writer.calls.push_back((writer.bytes.len(), call));
                self.last_call = self.endpoint.ledger.call(call).and_then(|call| call.id.clone());
            }
            writer.bytes.extend_from_slice(&frame.body);
            writer.bytes.push(b'\n');
        }
    }

    /// Reads once. Gives when to read again, if that is known.
    pub(super) fn read(&mut self, trace: &mut Trace, link: &mut Link) -> Option<Moment> {
        if !self.endpoint.wants_input() {
            if link.has_ended() && !self.peer_gone && !self.endpoint.is_closed() && !self.endpoint.ledger.input_ended {
                self.peer_gone = true;
                self.endpoint.peer_gone(trace);
            }
            return None;
        }
        match link.read(self.endpoint.now) {
            Read::Bytes(piece) => {
                let mut input = piece.as_slice();
                while let Some(line) = self.decoder.next(&mut input) {
                    hand_over(&mut self.endpoint, trace, line);
                }
                Some(self.endpoint.now)
            }
            Read::Later(when) => when,
            Read::End => {
                if let Some(line) = self.decoder.finish() {
                    hand_over(&mut self.endpoint, trace, line);
                }
                self.endpoint.end_input(trace);
                None
            }
        }
    }
}

fn hand_over(endpoint: &mut Endpoint, trace: &mut Trace, line: InputLine<'_>) {
    match line {
        InputLine::Message(bytes) => endpoint.receive(trace, Message::read(bytes)),
        InputLine::TooLong(salvaged) => endpoint.receive_too_long(trace, salvaged),
    }
}
