//! The command as a child process: its pipes, its signals, its threads, its exit.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Failure, Verdict, ensure};
use crate::limits::CHECK_TIMEOUT;
use crate::process::input::Input;
use crate::process::launch::Launch;
use crate::process::memory::Memory;
use crate::process::output::Output;
use crate::process::standard_error::StderrReader;

/// How tokio names the threads of its workers, cut to the 15 characters that the kernel keeps.
const WORKER_NAMES: &[&str] = &["tokio-rt-worker", "tokio-runtime-w"];

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    input: Option<Input>,
    pub(crate) output: Output,
    pub(crate) errors: StderrReader,
}

/// How a server ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    /// From the moment that the check began to wait.
    pub(crate) took: Duration,
}

impl Server {
    pub(crate) fn start(launch: &Launch) -> Verdict<Self> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What the caller's shell exports must not change the log level or the number of workers under test.
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE").env_remove("TOKIO_WORKER_THREADS");
        command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(|error| Failure(format!("{}: {error}", launch.program.display())))?;
        let missing = || Failure("the child has no pipe".to_owned());
        let input = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
        let output = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
        let errors = StderrReader::new(child.stderr.take(), launch.errors)?;
        Ok(Self { child, input: Some(Input::new(input)?), output: Output::new(output, launch.reading)?, errors })
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn memory(&self) -> Verdict<Memory> {
        Memory::of(self.process())
    }

    /// The writing end, while it is open.
    pub(crate) fn input(&self) -> Verdict<&Input> {
        self.input.as_ref().ok_or_else(|| Failure("the check has closed the input already".to_owned()))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Verdict {
        self.input()?.write_all(bytes, CHECK_TIMEOUT)
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Takes the writing end out, for a thread that floods.
    pub(crate) fn take_input(&mut self) -> Verdict<Input> {
        self.input.take().ok_or_else(|| Failure("the check has closed the input already".to_owned()))
    }

    pub(crate) fn signal(&self, signal: Signal) -> Verdict {
        let process = i32::try_from(self.process()).ok().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| Failure("no process id".to_owned()))?;
        Ok(kill_process(process, signal)?)
    }

    /// How many worker threads the runtime has; the number of cores when they cannot be recognised.
    pub(crate) fn workers(&self) -> Verdict<usize> {
        let mut workers = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process()))? {
            let name = std::fs::read_to_string(thread?.path().join("comm")).unwrap_or_default();
            workers += usize::from(WORKER_NAMES.contains(&name.trim_end()));
        }
        if workers == 0 {
            workers = std::thread::available_parallelism()?.get();
        }
        Ok(workers)
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self, time: Duration) -> Verdict<Exit> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Exit { status, took: start.elapsed() });
            }
            ensure!(start.elapsed() < time, "the process still runs after {time:?}");
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An ended child gives an error here, which is what we want it to be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
