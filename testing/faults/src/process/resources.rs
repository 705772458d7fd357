//! Descriptors, threads and memory of a process, as the kernel counts them.

use std::time::{Duration, Instant};

use crate::failure::{Verdict, ensure};
use crate::limits::{CHECK_TIMEOUT, CLIENT_GROWTH_KIB, CLIENT_SPARE};
use crate::process::memory::Memory;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Resident memory in KiB.
    pub(crate) resident: u64,
}

impl Resources {
    pub(crate) fn of(process: u32) -> Verdict<Self> {
        let count = |what: &str| Ok::<_, std::io::Error>(std::fs::read_dir(format!("/proc/{process}/{what}"))?.count());
        Ok(Self { descriptors: count("fd")?, threads: count("task")?, resident: Memory::of(process)?.resident })
    }

    /// Once nothing that was closed a moment ago is still on its way out.
    pub(crate) fn settled(process: u32) -> Verdict<Self> {
        let mut last = Self::of(process)?;
        let mut quiet = 0;
        while quiet < 10 {
            std::thread::sleep(Duration::from_millis(5));
            let now = Self::of(process)?;
            quiet = if (now.descriptors, now.threads) == (last.descriptors, last.threads) { quiet + 1 } else { 0 };
            last = now;
        }
        Ok(last)
    }

    /// Waits until the process holds no more than it did, but for a little.
    pub(crate) fn are_back(self, process: u32) -> Verdict<Self> {
        let start = Instant::now();
        loop {
            let now = Self::of(process)?;
            let back = now.descriptors <= self.descriptors + CLIENT_SPARE
                && now.threads <= self.threads + CLIENT_SPARE
                && now.resident <= self.resident + CLIENT_GROWTH_KIB;
            if back {
                return Ok(now);
            }
            ensure!(start.elapsed() < CHECK_TIMEOUT, "the client holds {now:?}, and began with {self:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
