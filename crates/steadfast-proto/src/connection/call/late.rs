//! Cancelled calls of this side whose results are still needed if they arrive late.
//!
//! The peer may have answered a call before the cancellation of the call arrives. Most results that arrive after
//! their call was cancelled are ignored. A late result that is an MCP task is not ignored: only this side knows of
//! the task and can cancel it.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_model::RequestId;

use super::OutboundCallEntry;
use crate::Moment;
use crate::connection::timer::TimerPurpose;
use crate::connection::{CallKey, Connection, ConnectionEvent};
use crate::envelope::ResultOrError;

/// The maximum number of cancelled calls whose late results are awaited at once; for a new call, the oldest is dropped.
const MAX_CALLS: usize = 1_024;

/// How long the late result of a cancelled call is awaited.
const EXPIRY: Duration = Duration::from_secs(60);

/// Cancelled calls whose late result is awaited, because it may be an MCP task that has to be cancelled.
#[derive(Debug, Clone, Default)]
pub(in crate::connection) struct CallsAwaitingLateResult {
    calls: BTreeMap<CallKey, CancelledCall>,
    /// By request id.
    ids: BTreeMap<RequestId, CallKey>,
}

#[derive(Debug, Clone)]
struct CancelledCall {
    id: RequestId,
    until: Moment,
    /// The peer was notified that the call is cancelled.
    peer_notified: bool,
}

impl CallsAwaitingLateResult {
    /// The cancelled call that has waited longest for its late result.
    fn oldest(&self) -> Option<CallKey> {
        self.calls.iter().min_by_key(|(key, cancelled)| (cancelled.until, **key)).map(|(key, _)| *key)
    }

    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (CallKey, &RequestId)> {
        self.calls.iter().map(|(key, cancelled)| (*key, &cancelled.id))
    }
}

impl Connection {
    /// Whether the late result of a cancelled call is expected and the peer was not notified of the cancellation. If so, a
    /// transport with one HTTP exchange per call continues to read the response of the cancelled call.
    pub fn expects_late_response(&self, key: CallKey) -> bool {
        self.late.calls.get(&key).is_some_and(|cancelled| !cancelled.peer_notified)
    }

    /// Registers a cancelled call whose late result is still expected.
    pub(in crate::connection) fn expect_late_answer(&mut self, now: Moment, key: CallKey, waiting: &OutboundCallEntry) {
        if self.stage.is_closed() || crate::mutant!(IgnoreLateTasks) {
            return;
        }
        if self.late.calls.len() >= MAX_CALLS
            && let Some(oldest) = self.late.oldest()
        {
            self.forget_late(oldest);
        }
        let until = now + EXPIRY;
        self.timers.set(until, TimerPurpose::CallsAwaitingLateResult(key));
        self.late.ids.insert(waiting.id.clone(), key);
        self.late
            .calls
            .insert(key, CancelledCall { id: waiting.id.clone(), until, peer_notified: waiting.cancellable });
    }

    /// Stops waiting for the late result of a cancelled call.
    pub(in crate::connection) fn forget_late(&mut self, key: CallKey) {
        if let Some(cancelled) = self.late.calls.remove(&key) {
            self.late.ids.remove(&cancelled.id);
            self.timers.clear(cancelled.until, TimerPurpose::CallsAwaitingLateResult(key));
        }
    }

    /// Handles the response to a cancelled call. Returns whether the response belongs to a cancelled call.
    pub(in crate::connection) fn receive_late_answer(&mut self, id: &RequestId, body: &ResultOrError<'_>) -> bool {
        let Some(key) = self.late.ids.get(id).copied() else { return false };
        self.forget_late(key);
        if let ResultOrError::Result(result) = *body {
            self.events.push_back(ConnectionEvent::LateResult(result.into()));
        }
        true
    }
}
