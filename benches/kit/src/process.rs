//! One contestant as a child process: started, watched, its CPU time read, ended.

use crate::misbehaved;
use crate::rates::{Latency, Taken};
use crate::watchdog::Watchdog;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

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

    /// How often a thread of the process stopped to run so far. Threads that have ended are not counted.
    pub fn context_switches(&self) -> io::Result<u64> {
        let mut switches = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.pid))? {
            // A thread that ends meanwhile has no status any more.
            let Ok(status) = std::fs::read_to_string(thread?.path().join("status")) else { continue };
            let counts =
                status.lines().filter_map(|line| line.split_once("ctxt_switches:")?.1.trim().parse::<u64>().ok());
            switches += counts.sum::<u64>();
        }
        Ok(switches)
    }

    /// Bytes of the process that are in memory.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        let missing = || misbehaved("no VmRSS in the status of the process");
        kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(missing)
    }

    /// Waits until the process does nothing more.
    pub fn settle(&self) -> io::Result<()> {
        let mut before = self.cpu_time()?;
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.cpu_time()?;
            if now.saturating_sub(before) < Duration::from_millis(2) {
                return Ok(());
            }
            before = now;
        }
    }

    /// Runs a load that returns how many requests were answered and how long each took, and reads what the process took for it.
    pub fn measure(&self, load: impl FnOnce() -> io::Result<(u64, Vec<Duration>)>) -> io::Result<Taken> {
        let switches = self.context_switches()?;
        let cpu = self.cpu_time()?;
        let began = Instant::now();
        let (requests, times) = load()?;
        let wall = began.elapsed();
        let cpu = self.cpu_time()?.saturating_sub(cpu);
        let context_switches = self.context_switches()?.saturating_sub(switches);
        Ok(Taken { requests, cpu, wall, context_switches, latency: Latency::of(times) })
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
