//! Programs with a time limit, whose process group is killed at the end.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

use crate::Result;

const PAUSE: Duration = Duration::from_millis(20);

/// Runs a command to its end and returns its standard output, or says why not. Its outputs go to files in `folder`: a
/// grandchild that keeps a pipe open could make a reader wait for ever.
pub(crate) fn finish(command: &mut Command, limit: Duration, folder: &Path) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let [output, errors] = ["output", "errors"].map(|name| folder.join(name));
    let file = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(file(&output)?).stderr(file(&errors)?).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let group = Pid::from_child(&child);
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < limit => std::thread::sleep(PAUSE),
            Ok(status) => break status,
            Err(error) => return Err(format!("{name}: {error}")),
        }
    };
    // What is left of it, if anything: none of it has work to do any more.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match status {
        Some(status) if status.success() => read(&output).map_err(|error| format!("{}: {error}", output.display())),
        Some(status) => Err(format!("{name}: {status}\n{}", last_lines(&read(&errors).unwrap_or_default()))),
        None => Err(format!(
            "{name}: not done within {} s\n{}",
            limit.as_secs(),
            last_lines(&read(&errors).unwrap_or_default())
        )),
    }
}

/// Waits for a process that is not our child to be gone; ends it if it is not gone in time. False if it had to be ended.
pub(crate) fn is_gone_within(limit: Duration, pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    let start = Instant::now();
    while is_alive(pid) {
        if start.elapsed() > limit {
            // Gone between the two lines is gone.
            let _ = kill_process(pid, Signal::KILL);
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// A zombie has no command line left.
fn is_alive(pid: Pid) -> bool {
    match fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())) {
        Ok(line) => !line.is_empty(),
        Err(_) => cfg!(not(target_os = "linux")) && test_kill_process(pid).is_ok(),
    }
}

pub(crate) fn last_lines(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_ended_with_its_children() {
        let folder = std::env::temp_dir().join(format!("interop-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pid = folder.join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $! > \"$0\"; wait"]).arg(&pid);
        // Long enough for the shell to start its child on a busy machine; what is asserted does not depend on it.
        let ended = finish(&mut command, Duration::from_secs(2), &folder);
        let child = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(ended.unwrap_err().contains("not done within"));
        assert!(is_gone_within(Duration::from_secs(10), child));
    }
}
