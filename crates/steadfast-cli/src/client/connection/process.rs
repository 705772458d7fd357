//! The server's process, if the target is a command: keeps the last lines of its standard error, and kills it. The exit status
//! of a process that exits by itself is in the errors of the library.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast::transport::child::{Child, ChildHandle, Command};

use crate::client::display::{progress, sanitize};

/// The maximum number of lines of the server's standard error that are kept, to show them if the request fails.
const LINES: usize = 10;

/// The server process that was started last, if any.
#[derive(Clone, Default)]
pub(crate) struct ServerProcess(Arc<Mutex<ServerProcessState>>);

#[derive(Default)]
struct ServerProcessState {
    lines: VecDeque<String>,
    handle: Option<ChildHandle>,
    verbose: bool,
}

impl ServerProcess {
    /// With `verbose`, the standard error of the server process is shown as it is written.
    pub(crate) fn new(verbose: bool) -> Self {
        Self(Arc::new(Mutex::new(ServerProcessState { verbose, ..ServerProcessState::default() })))
    }

    /// Returns the command with the standard error of its process captured, line by line.
    pub(crate) fn capture_stderr(&self, command: Command) -> Command {
        let process = self.clone();
        command.on_stderr_line(move |line| process.record_line(line))
    }

    /// Starts the process.
    pub(crate) fn start(&self, command: &Mutex<Command>) -> io::Result<Child> {
        let child = command.lock().unwrap_or_else(PoisonError::into_inner).spawn()?;
        self.inner().handle = Some(child.handle());
        Ok(child)
    }

    fn record_line(&self, line: &str) {
        let mut inner = self.inner();
        if inner.verbose {
            drop(inner);
            progress::eprint_above_bar(format_args!("server: {}", sanitize::line(line)));
            return;
        }
        // An empty line would displace a useful one.
        if line.trim().is_empty() {
            return;
        }
        if inner.lines.len() == LINES {
            inner.lines.pop_front();
        }
        inner.lines.push_back(sanitize::line(line));
    }

    /// Kills the server process and its children.
    pub(crate) fn kill(&self) {
        if let Some(handle) = &self.inner().handle {
            handle.kill();
        }
    }

    /// Whether the server's standard error is shown as it is written (verbose).
    pub(crate) fn shows_stderr(&self) -> bool {
        self.inner().verbose
    }

    /// The last lines of the server process on standard error, unless they were shown as they were written. Call
    /// `recent_stderr` after the server process has exited.
    pub(crate) fn recent_stderr(&self) -> Option<String> {
        let lines = std::mem::take(&mut self.inner().lines);
        if lines.is_empty() {
            return None;
        }
        let mut text = "the last lines of the server's standard error:".to_owned();
        for line in lines {
            text.push_str("\n  | ");
            text.push_str(&line);
        }
        Some(text)
    }

    fn inner(&self) -> MutexGuard<'_, ServerProcessState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
