//! One contestant as a child process: started, watched, its CPU time read, ended.

use crate::watchdog::Watchdog;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A server or client that runs. It never outlives the bench, even when that ends with an error.
pub struct Subject {
    name: String,
    child: Reaped,
    pid: Pid,
    clock: ClockId,
    patience: Duration,
}

impl Subject {
    /// Starts the command with pipes for its input and output. `patience` bounds each step from here on.
    pub fn start(name: &str, command: &mut Command, patience: Duration) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut child = Reaped(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let pid = Pid::from_raw(child.0.id().cast_signed());
        let (Some(input), Some(output)) = (child.0.stdin.take(), child.0.stdout.take()) else {
            return Err(io::Error::other("a child process without pipes"));
        };
        let clock = clock_getcpuclockid(pid)?;
        Ok((Self { name: name.to_owned(), child, pid, clock, patience }, input, output))
    }

    /// The number of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The CPU time that it took so far: all its threads, in user and kernel mode.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        Ok(Duration::from(self.clock.now()?))
    }

    /// Watches a step that begins now: if it takes too long, the process is killed.
    pub fn watch(&self) -> Watch {
        let (name, patience) = (self.name.clone(), self.patience);
        Watch { watchdog: Watchdog::over(self.pid, patience), name, patience }
    }

    /// Waits for its end, once its input was closed.
    pub fn wait(self) -> io::Result<()> {
        let Self { name, mut child, pid, patience, .. } = self;
        let watchdog = Watchdog::over(pid, patience);
        // Waits without reaping, so that the watchdog cannot hit another process of the same number.
        let ended = wait_unreaped(pid);
        let fired = watchdog.fired();
        drop(watchdog);
        let status = child.0.wait()?;
        ended?;
        if fired {
            return Err(io::Error::other(format!("{name}: did not end within {patience:?} of the end of its input")));
        }
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{name}: {status}"))) }
    }
}

/// A step under watch.
pub struct Watch {
    watchdog: Watchdog,
    name: String,
    patience: Duration,
}

impl Watch {
    /// Ends the step, and says whose failure it was and at what.
    pub fn end<T>(self, step: &str, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            let cause =
                if self.watchdog.fired() { format!("no answer within {:?}", self.patience) } else { error.to_string() };
            io::Error::new(error.kind(), format!("{}, {step}: {cause}", self.name))
        })
    }
}

struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both do nothing to a process that was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_unreaped(pid: Pid) -> io::Result<()> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    Ok(())
}
