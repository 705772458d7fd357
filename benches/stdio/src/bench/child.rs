//! One server as a child process: opened, driven, its CPU time read, ended.
//!
//! The driver is one thread that never blocks on a write: all requests of a window fit into a pipe, so it reads what
//! there is, and answers that with one write.

use crate::inbox::Inbox;
use crate::watchdog::Watchdog;
use crate::workload::{Call, Era, Tool};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that was opened and is ready for calls.
pub(crate) struct Server {
    name: String,
    process: Process,
    pid: Pid,
    clock: ClockId,
    input: ChildStdin,
    output: ChildStdout,
    inbox: Inbox,
    call: Call,
    tool: Tool,
    next_id: u64,
    outgoing: Vec<u8>,
    patience: Duration,
}

/// When to stop asking.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Answered(u64),
}

/// What one drive took. The CPU time is the server's own, of all its threads, in user and kernel mode.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) requests: u64,
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

impl Server {
    /// Starts the command and opens the connection. `patience` bounds each step from here on.
    pub(crate) fn open(
        name: &str,
        command: &mut Command,
        era: Era,
        tool: Tool,
        patience: Duration,
    ) -> io::Result<Self> {
        let mut process = Process(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let pid = Pid::from_raw(process.0.id().cast_signed());
        let (Some(input), Some(output)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(io::Error::other("a child process without pipes"));
        };
        let clock = clock_getcpuclockid(pid)?;
        let mut server = Self {
            name: name.to_owned(),
            process,
            pid,
            clock,
            input,
            output,
            inbox: Inbox::new(),
            call: Call::new(era, tool),
            tool,
            next_id: 1,
            outgoing: Vec::new(),
            patience,
        };
        server.watched(|server| server.handshake(era))?;
        Ok(server)
    }

    /// Keeps `window` calls in flight until it is enough, then waits for the answers that are still due.
    pub(crate) fn drive(&mut self, window: u64, until: Until) -> io::Result<Taken> {
        self.watched(|server| {
            let cpu = server.cpu_time()?;
            let began = Instant::now();
            let requests = server.exchange(window, until, began)?;
            let wall = began.elapsed();
            Ok(Taken {
                requests,
                cpu: server.cpu_time()?.saturating_sub(cpu),
                wall,
            })
        })
    }

    /// Closes the server's input and waits for its end.
    pub(crate) fn end(self) -> io::Result<()> {
        let Self {
            name,
            mut process,
            pid,
            input,
            output,
            patience,
            ..
        } = self;
        drop(input);
        // Not closed before the process ends: a server may be writing still.
        let watchdog = Watchdog::over(pid, patience);
        // Waits without reaping, so that the watchdog cannot hit another process of the same number.
        let ended = wait_unreaped(pid);
        let fired = watchdog.fired();
        drop(watchdog);
        drop(output);
        let status = process.0.wait()?;
        ended?;
        if fired {
            return Err(io::Error::other(format!(
                "{name}: did not end within {patience:?} of the end of its input"
            )));
        }
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("{name}: {status}")))
        }
    }

    fn handshake(&mut self, era: Era) -> io::Result<()> {
        self.input.write_all(era.opening().as_bytes())?;
        let line = self.inbox.line(&mut self.output)?;
        let answer: Value = serde_json::from_slice(&line)?;
        if answer.get("id") != Some(&Value::from(0)) || answer.get("result").is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the opening was refused: {answer}"),
            ));
        }
        self.input.write_all(era.opened().as_bytes())
    }

    fn exchange(&mut self, window: u64, until: Until, began: Instant) -> io::Result<u64> {
        let first = self.next_id;
        let mut in_flight = 0;
        let mut id_sum: u64 = 0;
        loop {
            let sent = self.next_id - first;
            let room = window - in_flight;
            let wanted = match until {
                Until::Elapsed(time) if began.elapsed() >= time => 0,
                Until::Elapsed(_) => room,
                Until::Answered(count) => room.min(count.saturating_sub(sent)),
            };
            self.outgoing.clear();
            for _ in 0..wanted {
                self.call.write_under(self.next_id, &mut self.outgoing);
                id_sum = id_sum.wrapping_add(self.next_id);
                self.next_id += 1;
            }
            in_flight += wanted;
            if in_flight == 0 {
                break;
            }
            self.input.write_all(&self.outgoing)?;
            let arrived = self.inbox.answers(&mut self.output, self.tool)?;
            id_sum = id_sum.wrapping_sub(arrived.id_sum);
            in_flight = in_flight.checked_sub(arrived.answers).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "more answers than requests")
            })?;
        }
        if id_sum == 0 {
            Ok(self.next_id - first)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "some request was answered twice and another not at all",
            ))
        }
    }

    fn cpu_time(&self) -> io::Result<Duration> {
        Ok(Duration::from(self.clock.now()?))
    }

    /// Runs a step under the watchdog, and says whose failure it was.
    fn watched<T>(&mut self, step: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        let watchdog = Watchdog::over(self.pid, self.patience);
        step(self).map_err(|error| {
            let name = &self.name;
            let tool = self.tool.name();
            let cause = if watchdog.fired() {
                format!("no answer within {:?}", self.patience)
            } else {
                error.to_string()
            };
            io::Error::new(error.kind(), format!("{name}, {tool}: {cause}"))
        })
    }
}

/// Never outlives the bench, even when that ends with an error.
struct Process(Child);

impl Drop for Process {
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
