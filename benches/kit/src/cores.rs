//! Where the bench and what it measures run.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::io;

/// Keeps this process, and all that it starts from here on, on one core.
pub fn stay_on_one() -> io::Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let mut one = CpuSet::new();
    let last = (0..CpuSet::count()).rev().find(|core| allowed.is_set(*core).unwrap_or(false));
    one.set(last.unwrap_or(0))?;
    Ok(sched_setaffinity(this, &one)?)
}
