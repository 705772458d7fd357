//! Waits for the end of a process group whose leader is reaped.
//!
//! While a process group has members, its id is not reused, so a signal to the group cannot reach other processes. The
//! system reports no event for the end of a process group, so its end has to be polled.

use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// Waits until the process group is gone, for at most `timeout`. Returns whether the process group is gone.
pub(super) fn wait_until_gone(group: Pid, timeout: Duration) -> bool {
    let deadline = Instant::now().checked_add(timeout);
    let mut pause = Duration::from_millis(1);
    while !is_gone(group) {
        let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    true
}

/// Whether the process group has no more processes that a signal could end.
pub(super) fn is_gone(group: Pid) -> bool {
    // If this process adopts orphans, as the first process of a container does, it has to reap them.
    let reap = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = rustix::process::waitid(WaitId::Pgid(Some(group)), reap) {}
    rustix::process::test_kill_process_group(group).is_err() || only_zombies(group)
}

/// Whether all processes of the group have exited and wait for another process to reap them. The first process of a
/// container, for example, may reap such zombies late or never.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn only_zombies(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let group = group.as_raw_nonzero().to_string();
    let mut zombies = 0;
    for process in processes.flatten() {
        let Ok(stat) = std::fs::read(process.path().join("stat")) else { continue };
        match state_in_group(&String::from_utf8_lossy(&stat), &group) {
            None => {}
            Some("Z" | "X") => zombies += 1,
            Some(_) => return false,
        }
    }
    // If `/proc` shows no process of the group at all, it cannot be trusted.
    zombies > 0
}

/// The state of a process from its `/proc/PID/stat`; `None` if the process does not belong to `group`. In
/// `/proc/PID/stat`, the process name in parentheses may contain any characters; the fields after it are the state, the
/// parent and the group.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn state_in_group<'a>(stat: &'a str, group: &str) -> Option<&'a str> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    (fields.nth(1)? == group).then_some(state)
}

/// On systems other than Linux, a group that has only zombies cannot be signalled, so the caller has already found that
/// the group is gone.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn only_zombies(_group: Pid) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::state_in_group;

    #[test]
    fn the_group_is_found_after_any_name() {
        assert_eq!(state_in_group("12 (sh) S 1 10 10 0", "10"), Some("S"));
        assert_eq!(state_in_group("12 (a) Z 1 7) b) Z 1 10 10 0", "10"), Some("Z"));
        assert_eq!(state_in_group("12 (sh) S 10 11 10 0", "10"), None);
        assert_eq!(state_in_group("", "10"), None);
    }
}
