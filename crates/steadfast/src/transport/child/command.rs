//! How a server process is to be started and ended.

use std::ffi::OsStr;
use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use super::lines::LINE_LIMIT;
use super::{Child, report};

/// What to start, where, with which environment, and how long to wait for it when it has to end.
///
/// Without further words the process inherits this one's environment and working directory, and its standard error is
/// logged line by line with `tracing`. If it dies, the errors of a client say how, with the last lines of its standard error
/// unless that is [inherited](Command::stderr_inherit) or [thrown away](Command::stderr_null). They name the program, and never its
/// arguments or environment.
#[must_use = "nothing is started until a client connects to it"]
pub struct Command {
    pub(super) process: process::Command,
    pub(super) stderr: Stderr,
    pub(super) line_limit: usize,
    pub(super) patience: EndTimeouts,
}

/// Whoever wants lines.
pub(super) type LineCallback = Box<dyn FnMut(&str) + Send>;

/// Where standard error goes.
#[derive(Clone)]
pub(super) enum Stderr {
    Log,
    /// Of every process that is started, one after the other.
    Lines(Arc<Mutex<LineCallback>>),
    Inherit,
    Null,
}

/// How long each step of the ending may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndTimeouts {
    /// From the close of standard input to SIGTERM.
    pub(super) leave: Duration,
    /// From SIGTERM to SIGKILL.
    pub(super) terminate: Duration,
}

impl Command {
    /// A program, by its path or by a name to look up in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            process: process::Command::new(program),
            stderr: Stderr::Log,
            line_limit: LINE_LIMIT,
            patience: EndTimeouts { leave: Duration::from_secs(2), terminate: Duration::from_secs(2) },
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

    /// Sets a variable of the environment.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.process.env(key, value);
        self
    }

    /// Sets variables of the environment.
    pub fn envs(mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.process.envs(variables);
        self
    }

    /// Takes a variable out of the environment.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.process.env_remove(key);
        self
    }

    /// Starts with an empty environment.
    pub fn env_clear(mut self) -> Self {
        self.process.env_clear();
        self
    }

    /// Passes on these variables of our own environment and no others: a server sees only the secrets that it is meant
    /// to see. Variables set with [`env`](Command::env) before this call are forgotten, those set after it are kept.
    pub fn env_only(mut self, keys: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.process.env_clear();
        for key in keys {
            if let Some(value) = std::env::var_os(&key) {
                self.process.env(key, value);
            }
        }
        self
    }

    /// The directory to start in.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.process.current_dir(directory);
        self
    }

    /// Calls `callback` with each line of standard error, without its line break, on a thread of its own. Bytes that
    /// are not UTF-8 arrive as replacement characters. A callback that panics is not called again.
    pub fn on_stderr_line(mut self, callback: impl FnMut(&str) + Send + 'static) -> Self {
        self.stderr = Stderr::Lines(Arc::new(Mutex::new(Box::new(callback))));
        self
    }

    /// Lets the process write to our own standard error.
    pub fn stderr_inherit(mut self) -> Self {
        self.stderr = Stderr::Inherit;
        self
    }

    /// Throws standard error away.
    pub fn stderr_null(mut self) -> Self {
        self.stderr = Stderr::Null;
        self
    }

    /// The longest line of standard error in bytes, 16 KiB by default. A longer one arrives in pieces.
    pub fn stderr_line_limit(mut self, bytes: usize) -> Self {
        self.line_limit = bytes;
        self
    }

    /// How long the process may take to leave by itself after its standard input was closed, before it is told to with
    /// SIGTERM. Two seconds by default.
    pub fn leave_within(mut self, time: Duration) -> Self {
        self.patience.leave = time;
        self
    }

    /// How long the process may take after SIGTERM before it is killed with everything in its group. Two seconds by
    /// default.
    pub fn terminate_within(mut self, time: Duration) -> Self {
        self.patience.terminate = time;
        self
    }

    /// Starts a process. It may be done again: what reads the standard error of one reads that of the next too.
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
        // The arguments and the environment may hold secrets.
        formatter.debug_struct("Command").field("program", &report::name_of(&self.process)).finish_non_exhaustive()
    }
}
