//! JSON-RPC batches (2025-03-26): the responses to a batch are sent as one array when all its requests have ended.

use std::collections::BTreeMap;

use steadfast_model::Method;

use crate::Moment;
use crate::connection::Connection;
use crate::connection::key::InboundRequestKey;
use crate::encode;
use crate::envelope::{self, Batch, MalformedMessage, MalformedMessageReason, Message};
use crate::salvage::SalvagedFields;

/// Identifies one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::connection) struct JsonRpcBatchKey(u64);

#[derive(Debug, Clone, Default)]
pub(in crate::connection) struct OpenBatchTable {
    open: BTreeMap<JsonRpcBatchKey, OpenBatch>,
    next: u64,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
pub(in crate::connection) struct OpenBatch {
    /// The current number of requests of the batch that have not ended, plus one while the batch is being read.
    pub(in crate::connection) waiting: usize,
    pub(in crate::connection) answers: Vec<Vec<u8>>,
}

impl OpenBatchTable {
    pub(in crate::connection) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::connection) fn add(&mut self, key: JsonRpcBatchKey, body: Vec<u8>) {
        if let Some(open) = self.open.get_mut(&key) {
            self.bytes += body.len();
            open.answers.push(body);
        }
    }

    /// Records that the batch waits for one more request to end.
    pub(in crate::connection) fn enter(&mut self, key: JsonRpcBatchKey) {
        if let Some(open) = self.open.get_mut(&key) {
            open.waiting += 1;
        }
    }

    /// Records that a request of the batch has ended. After the last request of the batch, returns the array of responses, if
    /// there are any.
    pub(in crate::connection) fn leave(&mut self, key: JsonRpcBatchKey) -> Option<Vec<u8>> {
        let open = self.open.get_mut(&key)?;
        open.waiting = open.waiting.saturating_sub(1);
        if open.waiting > 0 {
            return None;
        }
        let open = self.open.remove(&key)?;
        self.bytes -= open.answers.iter().map(Vec::len).sum::<usize>();
        (!open.answers.is_empty()).then(|| encode::batch(&open.answers))
    }

    pub(in crate::connection) fn clear(&mut self) {
        self.open.clear();
        self.bytes = 0;
    }

    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (JsonRpcBatchKey, &OpenBatch)> {
        self.open.iter().map(|(key, open)| (*key, open))
    }
}

impl Connection {
    pub(in crate::connection) fn receive_batch(&mut self, now: Moment, batch: Batch<'_>) {
        if let Err(why) = self.check_batch(batch) {
            let refusal = MalformedMessage {
                kind: MalformedMessageReason::NotAMessage(why),
                salvaged: SalvagedFields::default(),
            };
            return self.refuse(refusal, None);
        }
        let key = JsonRpcBatchKey(self.batches.next);
        self.batches.next += 1;
        self.batches.open.insert(key, OpenBatch { waiting: 1, answers: Vec::new() });
        batch.each(|member| match envelope::read_text(member, self.limits.depth) {
            Ok(message) => self.take(now, message, Some(key)),
            Err(refusal) => self.refuse(refusal, Some(key)),
        });
        self.leave_batch(Some(key), None);
    }

    /// Records that a request of a batch has ended, or that the whole batch has been read.
    pub(in crate::connection) fn leave_batch(
        &mut self,
        batch: Option<JsonRpcBatchKey>,
        member: Option<InboundRequestKey>,
    ) {
        if let Some(body) = batch.and_then(|batch| self.batches.leave(batch)) {
            self.queue_response(body, None, member);
        }
    }

    fn check_batch(&self, batch: Batch<'_>) -> Result<(), &'static str> {
        let legal = self.peer.as_ref().is_some_and(|peer| peer.revision.has_batches());
        if !legal {
            return Err("batches exist in revision 2025-03-26 only");
        }
        if batch.is_empty() {
            return Err("the batch is empty");
        }
        if batch.len() > self.limits.batch {
            return Err("the batch has more messages than the limit allows");
        }
        let mut initializes = false;
        batch.each(|member| {
            let message = envelope::read_text(member, self.limits.depth);
            initializes |=
                matches!(message, Ok(Message::Request { method, .. }) if method == Method::Initialize.name());
        });
        if initializes { Err("initialize must not be part of a batch") } else { Ok(()) }
    }
}
