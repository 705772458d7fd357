//! How many checks run at the same time.
//!
//! Most checks wait more than they work, and what they measure (memory, descriptors, what came on the wire) is measured of their
//! own processes, so several run at a time. A check that asks how soon something comes while it keeps the machine busy, or that
//! has to be done with its preparations in a given time, has it to itself.

use std::sync::{Condvar, Mutex, PoisonError};

/// Limits how many checks run at once.
pub(crate) struct ConcurrencyLimit {
    taken: Mutex<usize>,
    freed: Condvar,
}

static RUNNING: ConcurrencyLimit = ConcurrencyLimit { taken: Mutex::new(0), freed: Condvar::new() };

/// Permission for one check, or for all that may run. Dropping it gives it back.
pub(crate) struct Permit(usize);

/// Waits for one of `all` permits; with `alone`, for all of them.
pub(crate) fn acquire(all: usize, alone: bool) -> Permit {
    let all = all.max(1);
    let wanted = if alone { all } else { 1 };
    let mut taken = RUNNING.taken.lock().unwrap_or_else(PoisonError::into_inner);
    while *taken + wanted > all {
        taken = RUNNING.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
    }
    *taken += wanted;
    Permit(wanted)
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        RUNNING.freed.notify_all();
    }
}
