//! Processes that a client should have ended: they are found by the folder of their check, which is in their arguments.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;

/// Waits until no process of that folder is left.
pub(crate) fn none_left(folder: &Path) -> Verdict {
    let start = Instant::now();
    loop {
        let left = of(folder)?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(start.elapsed() < CHECK_TIMEOUT, "these processes were left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the processes that a failed check has left running.
pub(crate) fn end_all(folder: &Path) {
    for process in of(folder).unwrap_or_default() {
        if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            // It may just have ended.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Waits until a process has no children, not even ones that it has not reaped.
pub(crate) fn all_reaped(parent: u32) -> Verdict {
    let start = Instant::now();
    loop {
        let left = children(parent)?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(start.elapsed() < CHECK_TIMEOUT, "these children of the client were not reaped: {left:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn children(parent: u32) -> Verdict<Vec<u32>> {
    let mut found = Vec::new();
    for process in processes()? {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name may have anything in it, but ends with the last bracket; then come the state and the parent.
        let its_parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if its_parent == Some(parent) {
            found.push(process);
        }
    }
    Ok(found)
}

fn processes() -> Verdict<Vec<u32>> {
    let names = std::fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// The processes that run for a check.
fn of(folder: &Path) -> Verdict<Vec<u32>> {
    let mark = format!("{}/", folder.display());
    let mut found = Vec::new();
    for process in processes()? {
        // A process that has ended meanwhile, or is a zombie, has no arguments.
        let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&arguments).contains(&mark) {
            found.push(process);
        }
    }
    Ok(found)
}
