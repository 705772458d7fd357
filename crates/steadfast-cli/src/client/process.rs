//! The server's process, if it is one of ours: what it wrote to standard error lately, and its end by force. How one ended that
//! left by itself is in the errors of the library.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast::transport::child::{Child, Command, Handle};

use super::{harmless, progress};

/// How many lines are kept to be shown if something fails.
const LINES: usize = 10;

/// What is known of the process that was started last, if any.
#[derive(Clone, Default)]
pub(super) struct Process(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    lines: VecDeque<String>,
    handle: Option<Handle>,
    verbose: bool,
}

impl Process {
    /// With `verbose`, what it writes to standard error is shown as it comes.
    pub(super) fn new(verbose: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { verbose, ..Inner::default() })))
    }

    /// The command, with its standard error listened to.
    pub(super) fn listening(&self, command: Command) -> Command {
        let heard = self.clone();
        command.on_stderr_line(move |line| heard.hear(line))
    }

    /// Starts it.
    pub(super) fn start(&self, command: &Mutex<Command>) -> io::Result<Child> {
        let child = command.lock().unwrap_or_else(PoisonError::into_inner).spawn()?;
        self.inner().handle = Some(child.handle());
        Ok(child)
    }

    fn hear(&self, line: &str) {
        let mut inner = self.inner();
        if inner.verbose {
            drop(inner);
            progress::say_above(format_args!("server: {}", harmless::line(line)));
            return;
        }
        // Among the last few, one that says nothing takes the place of one that does.
        if line.trim().is_empty() {
            return;
        }
        if inner.lines.len() == LINES {
            inner.lines.pop_front();
        }
        inner.lines.push_back(harmless::line(line));
    }

    /// Ends it at once, with everything that it started.
    pub(super) fn kill(&self) {
        if let Some(handle) = &self.inner().handle {
            handle.kill();
        }
    }

    /// What it writes is shown as it comes.
    pub(super) fn is_heard(&self) -> bool {
        self.inner().verbose
    }

    /// What it wrote last, once it is gone, unless that was shown as it came.
    pub(super) fn last_words(&self) -> Option<String> {
        let lines = std::mem::take(&mut self.inner().lines);
        if lines.is_empty() {
            return None;
        }
        let mut words = "the last that it wrote to standard error:".to_owned();
        for line in lines {
            words.push_str("\n  | ");
            words.push_str(&line);
        }
        Some(words)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
