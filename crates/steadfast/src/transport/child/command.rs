//! The settings with which a client starts and ends a server process.

use std::ffi::OsStr;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use super::lines::LINE_LIMIT;
use super::{Child, report};

/// A server program that a client starts: its arguments, working directory and environment, and the timeouts for ending
/// the process.
///
/// By default the process inherits the environment and working directory of this process, and its standard error is
/// logged line by line with `tracing`. If the server process exits unexpectedly, the errors of the client say how, with
/// the last lines of the process's standard error unless that is [inherited](Command::stderr_inherit) or
/// [discarded](Command::stderr_null). The errors of the client contain the name of the server program, but never its
/// arguments or environment.
#[must_use = "no process is started until a client connects to the command"]
pub struct Command {
    pub(super) process: process::Command,
    pub(super) stderr: StderrTarget,
    pub(super) line_limit: usize,
    pub(super) end_timeouts: ChildShutdownTimeouts,
}

/// The callback that is called with each line of a child process's standard error.
pub(super) type StderrLineCallback = Box<dyn FnMut(&str) + Send>;

/// Where the standard error of a child process goes.
#[derive(Clone)]
pub(super) enum StderrTarget {
    Log,
    /// Passes each line of standard error to a callback, which all processes started from this command share.
    Lines(Arc<Mutex<StderrLineCallback>>),
    Inherit,
    Null,
}

/// The timeouts for ending a child process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildShutdownTimeouts {
    /// How long to wait for the process to exit after its standard input was closed, before SIGTERM is sent.
    pub(super) leave: Duration,
    /// How long to wait for the process to exit after SIGTERM, before SIGKILL is sent.
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

    /// Sets an environment variable of the server process.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.process.env(key, value);
        self
    }

    /// Sets environment variables.
    pub fn envs(mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.process.envs(variables);
        self
    }

    /// Removes a variable from the environment of the server process.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.process.env_remove(key);
        self
    }

    /// Starts the server process with an empty environment, apart from variables that are set later.
    pub fn env_clear(mut self) -> Self {
        self.process.env_clear();
        self
    }

    /// Passes only the variables `keys` of this program's environment on to the server process, so that the server
    /// sees only the secrets that it is meant to see. Environment variables that were set with [`env`](Command::env)
    /// before are removed; those that are set later stay.
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

    /// Calls `callback` with each line that the server process writes to standard error, without its line break, on a
    /// separate thread. Bytes of a line that are not valid UTF-8 are replaced by U+FFFD. A callback that panics is not
    /// called again.
    pub fn on_stderr_line(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
        self.stderr = StderrTarget::Lines(Arc::new(Mutex::new(Box::new(callback))));
        self
    }

    /// Lets the server process write to the standard error of this program.
    pub fn stderr_inherit(mut self) -> Self {
        self.stderr = StderrTarget::Inherit;
        self
    }

    /// Discards the standard error of the server process.
    pub fn stderr_null(mut self) -> Self {
        self.stderr = StderrTarget::Null;
        self
    }

    /// Sets the maximum length of a line of standard error in bytes, 16 KiB by default. A longer line of the server's
    /// standard error is split.
    pub fn stderr_line_limit(mut self, bytes: usize) -> Self {
        self.line_limit = bytes;
        self
    }

    /// Sets how long the process may take to exit after its standard input was closed, before it is sent SIGTERM. By
    /// default the server process has two seconds to exit after its standard input was closed.
    pub fn leave_within(mut self, time: Duration) -> Self {
        self.end_timeouts.leave = time;
        self
    }

    /// Sets how long the process may take to exit after SIGTERM, before it is killed with its whole group. By default
    /// the server process has two seconds to exit after SIGTERM.
    pub fn terminate_within(mut self, time: Duration) -> Self {
        self.end_timeouts.terminate = time;
        self
    }

    /// Starts a process. Each call of `spawn` starts another process; all of them share the callback for lines of
    /// standard error.
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
