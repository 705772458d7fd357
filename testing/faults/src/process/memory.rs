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

/// A leak shows in every window of rounds; memory that the allocator happens to hold, or that a thread frees late,
/// does not. So memory has stopped growing when one window shows no growth.
pub(crate) struct Windows {
    /// Rounds in one.
    pub(crate) rounds: usize,
    /// Windows at most.
    pub(crate) most: usize,
    /// How much may be added within one, in KiB.
    pub(crate) bound: u64,
}

/// The size after the first round and after the last, in KiB.
pub(crate) struct Settled {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Windows {
    /// Runs rounds, each of which returns the memory after it, until there was a window without growth.
    pub(crate) fn run(&self, mut round: impl FnMut() -> Verdict<u64>) -> Verdict<Settled> {
        let first = round()?;
        let mut last = first;
        let mut added = Vec::new();
        for _ in 0..self.most {
            let before = last;
            for _ in 0..self.rounds {
                last = round()?;
            }
            added.push(last.saturating_sub(before));
            if last.saturating_sub(before) <= self.bound {
                return Ok(Settled { first, last });
            }
        }
        let (rounds, bound) = (self.rounds, self.bound);
        Err(Failure(format!(
            "each round leaves something: {added:?} KiB more, each after {rounds} rounds, the bound is {bound} KiB"
        )))
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

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { rounds: 3, most: 4, bound: 10 };

    fn sizes(mut of: impl FnMut(u64) -> u64) -> Verdict<Settled> {
        let mut round = 0;
        WINDOWS.run(|| {
            round += 1;
            Ok(of(round))
        })
    }

    #[test]
    fn what_grows_with_each_round_is_found() {
        assert!(sizes(|round| 1_000 + round * 4).is_err());
    }

    #[test]
    fn what_grows_for_a_while_is_kept_by_the_allocator() {
        let settled = sizes(|round| 1_000 + round.min(7) * 100).unwrap();
        assert_eq!((settled.first, settled.last), (1_100, 1_700));
    }
}
