//! The memory of a process as the kernel counts it.

use crate::failure::{Failure, Verdict};

/// Resident memory of a process, in KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Now (`VmRSS`).
    pub(crate) resident: u64,
    /// The most so far (`VmHWM`).
    pub(crate) peak: u64,
}

impl Memory {
    pub(crate) fn of(process: u32) -> Verdict<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        Ok(Self { resident: field(&status, "VmRSS:")?, peak: field(&status, "VmHWM:")? })
    }
}

fn field(status: &str, name: &str) -> Verdict<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Failure(format!("no {name} for the process: has it ended?")))
}

/// KiB as MiB, for notes.
pub(crate) fn mebibytes(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}
