//! The output of a driver: messages of the protocol core as lines, and which calls are among them.

use std::collections::VecDeque;

use steadfast_proto::connection::{CallKey, Connection};

use super::driver::CHUNK;
use super::mailbox::DriverMailbox;

/// Bytes that wait to be written to the transport.
#[derive(Default)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    /// The number of bytes in the buffer that are already written.
    written: usize,
    /// The calls whose requests are in `bytes`, each with the offset of its request's first byte.
    calls: VecDeque<(usize, CallKey)>,
}

impl OutputBuffer {
    /// Takes messages from the protocol core, each as one line, until the output buffer holds a chunk of bytes.
    pub(super) fn fill(&mut self, connection: &mut Connection, mailbox: &DriverMailbox) {
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
    pub(super) fn advance(&mut self, count: usize, connection: &mut Connection) {
        self.written += count;
        while let Some((start, call)) = self.calls.front().copied() {
            if start >= self.written {
                break;
            }
            self.calls.pop_front();
            connection.handle_call_sent(call);
        }
    }

    /// The bytes that were not written yet.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    pub(super) fn unwritten(&self) -> usize {
        self.bytes.len().saturating_sub(self.written)
    }
}
