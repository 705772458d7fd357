//! How a server process is started and ended.

use std::ffi::OsStr;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use super::lines::LINE_LIMIT;
use super::{Child, report};

/// The program to start, its arguments, directory and environment, and the timeouts for ending it.
///
/// By default the process inherits the environment and working directory of this process, and its standard error is logged line
/// by line with `tracing`. If it exits unexpectedly, the errors of a client say how, with its last lines of standard error unless
/// that is [inherited](Command::stderr_inherit) or [discarded](Command::stderr_null). They name the program, but never its
/// arguments or environment.
#[must_use = "nothing is started until a client connects to it"]
pub struct Command {
    pub(super) process: process::Command,
    pub(super) stderr: StderrTarget,
    pub(super) line_limit: usize,
    pub(super) end_timeouts: ChildShutdownTimeouts,
}

/// Callback for a line of standard error.
pub(super) type StderrLineCallback = Box<dyn FnMut(&str) + Send>;

/// Where standard error goes.
#[derive(Clone)]
pub(super) enum StderrTarget {
    Log,
    /// Passes each line to a callback, which all processes started from this command share.
    Lines(Arc<Mutex<StderrLineCallback>>),
    Inherit,
    Null,
}

/// The timeouts for ending a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildShutdownTimeouts {
    /// How long to wait for the process to exit after its standard input was closed, before SIGTERM is sent.
    pub(super) leave: Duration,
    /// From SIGTERM to SIGKILL.
    pub(super) terminate: Duration,
}

impl Command {
    /// Creates a command for a program, which is a path or a name that is searched for in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            process: process::Command::new(program),
            stderr: StderrTarget::Log,
            line_limit: LINE_LIMIT,
            end_timeouts: ChildShutdownTimeouts { leave: Duration::from_secs(2), terminate: Duration::from_secs(2) },
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.process.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.process.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.process.env(key, value);
        self
    }

    /// Sets environment variables.
    pub fn envs(mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.process.envs(variables);
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.process.env_remove(key);
        self
    }

    /// Starts with an empty environment.
    pub fn env_clear(mut self) -> Self {
        self.process.env_clear();
        self
    }

    /// Passes only these variables of our own environment on, so that a server sees only the secrets that it is meant to see.
    /// Variables set with [`env`](Command::env) before this call are removed, those set after it stay.
    pub fn env_only(mut self, keys: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.process.env_clear();
        for key in keys {
            if let Some(value) = std::env::var_os(&key) {
                self.process.env(key, value);
            }
        }
        self
    }

    /// Sets the working directory of the process.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.process.current_dir(directory);
        self
    }

    /// Calls `callback` with each line of standard error, without its line break, on a thread of its own. Bytes that
    /// are not UTF-8 arrive as replacement characters. A callback that panics is not called again.
    pub fn on_stderr_line(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
        self.stderr = StderrTarget::Lines(Arc::new(Mutex::new(Box::new(callback))));
        self
    }

    /// Lets the process write to our own standard error.
    pub fn stderr_inherit(mut self) -> Self {
        self.stderr = StderrTarget::Inherit;
        self
    }

    /// Discards standard error.
    pub fn stderr_null(mut self) -> Self {
        self.stderr = StderrTarget::Null;
        self
    }

    /// Sets the maximum length of a line of standard error in bytes, 16 KiB by default. A longer line is split.
    pub fn stderr_line_limit(mut self, bytes: usize) -> Self {
        self.line_limit = bytes;
        self
    }

    /// Sets how long the process may take to exit after its standard input was closed, before it is sent SIGTERM. Two seconds by
    /// default.
    pub fn leave_within(mut self, time: Duration) -> Self {
        self.end_timeouts.leave = time;
        self
    }

    /// Sets how long the process may take to exit after SIGTERM, before it is killed with its whole group. Two seconds by
    /// default.
    pub fn terminate_within(mut self, time: Duration) -> Self {
        self.end_timeouts.terminate = time;
        self
    }

    /// Starts a process. Each call starts another one; all of them share the callback for lines of standard error.
    ///
    /// # Errors
    ///
    /// As [`Child::spawn`].
    pub fn spawn(&mut self) -> io::Result<Child> {
        Child::start(self)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The arguments and the environment may contain secrets.
        formatter.debug_struct("Command").field("program", &report::name_of(&self.process)).finish_non_exhaustive()
    }
}
