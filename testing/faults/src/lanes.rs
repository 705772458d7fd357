//! How many checks run at the same time.
//!
//! Most checks wait more than they work, and what they measure (memory, descriptors, what came on the wire) is measured of their
//! own processes, so several run at a time. A check that asks how soon something comes while it keeps the machine busy, or that
//! has to be done with its preparations in a given time, has it to itself.

use std::sync::{Condvar, Mutex, PoisonError};

/// Limits how many checks run at once.
pub(crate) struct Lanes {
    taken: Mutex<usize>,
    freed: Condvar,
}

static LANES: Lanes = Lanes { taken: Mutex::new(0), freed: Condvar::new() };

/// A lane, or all of them. Dropping it gives it back.
pub(crate) struct Lane(usize);

/// Waits for a lane of `all`; with `alone`, for all of them.
pub(crate) fn enter(all: usize, alone: bool) -> Lane {
    let all = all.max(1);
    let wanted = if alone { all } else { 1 };
    let mut taken = LANES.taken.lock().unwrap_or_else(PoisonError::into_inner);
    while *taken + wanted > all {
        taken = LANES.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
    }
    *taken += wanted;
    Lane(wanted)
}

impl Drop for Lane {
    fn drop(&mut self) {
        *LANES.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        LANES.freed.notify_all();
    }
}
