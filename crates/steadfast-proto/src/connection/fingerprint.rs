//! A hash of the state of a connection, for the exhaustive search of the tests: connections with the same fingerprint behave
//! alike.
//!
//! In the fingerprint of a connection, times are relative to now, keys are replaced by their rank and statistics are left out,
//! so that two histories that lead to the same state have the same fingerprint.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::call::CallSendState;
use super::key::{CallKey, InboundRequestKey};
use super::timer::TimerPurpose;
use super::{Connection, ConnectionStage};
use crate::Moment;

impl Connection {
    /// The fingerprint of the connection at `now`, which is a hash of its state.
    pub fn fingerprint(&self, now: Moment) -> u64 {
        let mut hasher = DefaultHasher::new();
        let requests: BTreeMap<InboundRequestKey, usize> =
            self.executions.keys().enumerate().map(|(rank, key)| (*key, rank)).collect();
        let calls: BTreeMap<CallKey, usize> =
            self.outbound.iter().enumerate().map(|(rank, (key, _))| (key, rank)).collect();
        let late: BTreeMap<CallKey, usize> = self.late.iter().enumerate().map(|(rank, (key, _))| (key, rank)).collect();
        self.hash_stage(now, &mut hasher);
        for (key, execution) in &self.executions {
            (requests.get(key), &execution.id, execution.bytes, execution.stop_requested).hash(&mut hasher);
        }
        for (id, inbound) in &self.inbound {
            (id, requests.get(&inbound.key), inbound.batch, inbound.progress_token.is_some(), inbound.log_level)
                .hash(&mut hasher);
            (inbound.progress.value.map(f64::to_bits), inbound.peer.revision).hash(&mut hasher);
            let queued = inbound.progress.queued().and_then(|ticket| self.outbox.place(ticket));
            let next = inbound.progress.last_at().map(|last| until(last + self.limits.progress_interval, now));
            (queued, next, inbound.progress.held_until().map(|when| until(when, now))).hash(&mut hasher);
            inbound
                .logs
                .iter()
                .filter_map(|ticket| self.outbox.place(*ticket))
                .for_each(|place| place.hash(&mut hasher));
            (inbound.method, inbound.acknowledged).hash(&mut hasher);
            for (notification, ticket) in &inbound.queued_notifications {
                (notification, self.outbox.place(*ticket)).hash(&mut hasher);
            }
        }
        for (key, waiting) in self.outbound.iter() {
            let state = match waiting.state {
                CallSendState::Held(_) => 0,
                CallSendState::Queued(ticket) => 1 + u8::from(self.outbox.holds(ticket)),
                CallSendState::Sent => 3,
            };
            (calls.get(&key), &waiting.id, waiting.method, state, waiting.timeout_length()).hash(&mut hasher);
            waiting.exempt_from_limit.hash(&mut hasher);
            waiting.parent.and_then(|parent| requests.get(&parent)).hash(&mut hasher);
        }
        for (key, id) in self.late.iter() {
            (late.get(&key), id).hash(&mut hasher);
        }
        for transmit in self.outbox.iter() {
            // The rest of its kind follows from the body.
            (&transmit.body, transmit.call().and_then(|call| calls.get(&call))).hash(&mut hasher);
        }
        for (key, open) in self.batches.iter() {
            (key, open.waiting, &open.answers).hash(&mut hasher);
        }
        for (when, purpose) in self.timers.iter() {
            let rank = match purpose {
                TimerPurpose::Handler(key) => (0, requests.get(&key)),
                TimerPurpose::Progress(key) => (1, requests.get(&key)),
                TimerPurpose::Call(call) => (2, calls.get(&call)),
                TimerPurpose::CallTotal(call) => (3, calls.get(&call)),
                TimerPurpose::CallsAwaitingLateResult(call) => (4, late.get(&call)),
            };
            (until(when, now), rank).hash(&mut hasher);
        }
        (self.events.len(), self.outbound.next_id(), self.outbox.is_in_transit()).hash(&mut hasher);
        hasher.finish()
    }

    fn hash_stage(&self, now: Moment, hasher: &mut DefaultHasher) {
        match self.stage {
            ConnectionStage::Draining(drain) => {
                let window = drain.window.map(|window| until(window, now));
                let quiet = drain.quiet.then(|| until(drain.release_output_at, now));
                (drain.cause, window, quiet, until(drain.deadline, now)).hash(hasher);
            }
            other => other.hash(hasher),
        }
        (self.input_ended, self.output_failed, self.initialized, self.log_level).hash(hasher);
        (self.peer.as_ref().map(|peer| peer.revision), self.stateless_client.is_some(), &self.discovery).hash(hasher);
    }
}

/// The time from `now` until `when`; zero if `when` is in the past.
fn until(when: Moment, now: Moment) -> Duration {
    when.since(now)
}
