//! Batches of 2025-03-26: their answers go out as one array when all have ended.

use std::collections::BTreeMap;

use steadfast_model::Method;

use super::Connection;
use super::key::Key;
use crate::Moment;
use crate::encode;
use crate::envelope::{self, Batch, Message, Refusal, RefusalKind};
use crate::salvage::Salvaged;

/// Names one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BatchKey(u64);

#[derive(Debug, Clone, Default)]
pub(super) struct Batches {
    open: BTreeMap<BatchKey, Open>,
    next: u64,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    /// Members without an end, and one for the reading of the batch itself.
    pub(super) waiting: usize,
    pub(super) answers: Vec<Vec<u8>>,
}

impl Batches {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn add(&mut self, key: BatchKey, body: Vec<u8>) {
        if let Some(open) = self.open.get_mut(&key) {
            self.bytes += body.len();
            open.answers.push(body);
        }
    }

    /// One more member has to end.
    pub(super) fn enter(&mut self, key: BatchKey) {
        if let Some(open) = self.open.get_mut(&key) {
            open.waiting += 1;
        }
    }

    /// A member has ended. Gives the array if it was the last, and there is anything in it.
    pub(super) fn leave(&mut self, key: BatchKey) -> Option<Vec<u8>> {
        let open = self.open.get_mut(&key)?;
        open.waiting = open.waiting.saturating_sub(1);
        if open.waiting > 0 {
            return None;
        }
        let open = self.open.remove(&key)?;
        self.bytes -= open.answers.iter().map(Vec::len).sum::<usize>();
        (!open.answers.is_empty()).then(|| encode::batch(&open.answers))
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.bytes = 0;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (BatchKey, &Open)> {
        self.open.iter().map(|(key, open)| (*key, open))
    }
}

impl Connection {
    pub(super) fn take_batch(&mut self, now: Moment, batch: Batch<'_>) {
        if let Err(why) = self.check_batch(batch) {
            let refusal = Refusal { kind: RefusalKind::NotAMessage(why), salvaged: Salvaged::default() };
            return self.refuse(refusal, None);
        }
        let key = BatchKey(self.batches.next);
        self.batches.next += 1;
        self.batches.open.insert(key, Open { waiting: 1, answers: Vec::new() });
        batch.each(|member| match envelope::read_text(member, self.limits.depth) {
            Ok(message) => self.take(now, message, Some(key)),
            Err(refusal) => self.refuse(refusal, Some(key)),
        });
        self.leave_batch(Some(key), None);
    }

    /// A member of a batch has ended: that request, or the reading of the batch.
    pub(super) fn leave_batch(&mut self, batch: Option<BatchKey>, member: Option<Key>) {
        if let Some(body) = batch.and_then(|batch| self.batches.leave(batch)) {
            self.commit(body, None, member);
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
            return Err("the batch has more members than the limit allows");
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
