//! Timers, as a sorted set: the first is the next deadline.

use std::collections::BTreeSet;

use super::key::{CallKey, InboundRequestKey};
use crate::Moment;

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TimerPurpose {
    /// A handler's deadline.
    Handler(InboundRequestKey),
    /// The time has come to send progress that was held back.
    Progress(InboundRequestKey),
    /// A call has had neither a response nor progress.
    Call(CallKey),
    /// A call's total timeout: it has had no response, whatever progress was reported.
    CallTotal(CallKey),
    /// The time for the late response to a cancelled call is over.
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

    /// The earliest timer that is due.
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
