//! The timers of a connection, as a sorted set: the first timer is the next deadline.

use std::collections::BTreeSet;

use super::key::{CallKey, InboundRequestKey};
use crate::Moment;

/// What a timer of a connection is for, such as the deadline of a handler or the timeout of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TimerPurpose {
    /// A handler's deadline.
    Handler(InboundRequestKey),
    /// The time at which a progress report that was held back is sent.
    Progress(InboundRequestKey),
    /// The timeout of a call of this side: the peer sent neither a response nor progress.
    Call(CallKey),
    /// The total timeout of a call of this side: the peer sent no response, whatever progress it reported.
    CallTotal(CallKey),
    /// The end of the time in which the late response to a cancelled call is awaited.
    CallsAwaitingLateResult(CallKey),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Timers(BTreeSet<(Moment, TimerPurpose)>);

impl Timers {
    pub(super) fn set(&mut self, when: Moment, purpose: TimerPurpose) {
        self.0.insert((when, purpose));
    }

    pub(super) fn clear(&mut self, when: Moment, purpose: TimerPurpose) {
        self.0.remove(&(when, purpose));
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(when, _)| *when)
    }

    /// Removes and returns the earliest timer that is due.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<TimerPurpose> {
        let (when, purpose) = *self.0.first()?;
        if when > now {
            return None;
        }
        self.0.pop_first();
        Some(purpose)
    }

    pub(super) fn clear_all(&mut self) {
        self.0.clear();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Moment, TimerPurpose)> {
        self.0.iter().copied()
    }
}
