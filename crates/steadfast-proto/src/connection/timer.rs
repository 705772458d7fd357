//! What is to happen when, as a sorted set: the earliest is the next deadline.

use std::collections::BTreeSet;

use super::key::{CallKey, Key};
use crate::Moment;

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Purpose {
    /// A handler's deadline.
    Handler(Key),
    /// Progress that was held back may go out.
    Progress(Key),
    /// No answer, and no progress, came in time.
    Call(CallKey),
    /// No answer came in time, whatever progress was reported.
    CallTotal(CallKey),
    /// No answer came to a call that was given up.
    Late(CallKey),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Timers(BTreeSet<(Moment, Purpose)>);

impl Timers {
    pub(super) fn set(&mut self, when: Moment, purpose: Purpose) {
        self.0.insert((when, purpose));
    }

    pub(super) fn clear(&mut self, when: Moment, purpose: Purpose) {
        self.0.remove(&(when, purpose));
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(when, _)| *when)
    }

    /// The earliest timer that is due.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<Purpose> {
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

    pub(super) fn iter(&self) -> impl Iterator<Item = (Moment, Purpose)> {
        self.0.iter().copied()
    }
}
