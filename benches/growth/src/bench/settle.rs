//! The state of a server that is at rest: when it is, and what memory it has.

use crate::trial::broken;
use bench_kit::process::Subject;
use std::io;
use std::time::Duration;

/// Waits until the server does nothing more.
pub(crate) fn settled(server: &Subject) -> io::Result<()> {
    let mut before = server.cpu_time()?;
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = server.cpu_time()?;
        if now.saturating_sub(before) < Duration::from_millis(2) {
            return Ok(());
        }
        before = now;
    }
}

/// Bytes of the process that are in memory.
pub(crate) fn resident(server: &Subject) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| broken("no VmRSS in the status of the process"))
}
