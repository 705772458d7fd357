//! The server's process, if it is one of ours: what it wrote to standard error lately, how it ended, and its end by force.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast::transport::child::{Child, Command, Handle};

use super::harmless;

/// How many lines are kept to be shown if something fails.
const LINES: usize = 10;
/// How long a process may take to be gone that is told to: the library sends SIGTERM after two seconds, and kills after two more.
const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Starts it, and says which program it was if that fails.
    pub(super) fn start(&self, program: &str, command: &Mutex<Command>) -> io::Result<Child> {
        let started = command.lock().unwrap_or_else(PoisonError::into_inner).spawn();
        let why = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => "there is no such program".to_owned(),
            io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
            _ => error.to_string(),
        };
        let child = started.map_err(|error| {
            io::Error::new(error.kind(), format!("`{program}` could not be started: {}", why(&error)))
        })?;
        self.inner().handle = Some(child.handle());
        Ok(child)
    }

    fn hear(&self, line: &str) {
        let mut inner = self.inner();
        if inner.verbose {
            drop(inner);
            crate::output::say(format_args!("server: {}", harmless::line(line)));
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

    /// What it wrote last, once it is gone, and how it ended if that was `by_itself`: for somebody whose connection failed.
    pub(super) async fn last_words(&self, by_itself: bool) -> Vec<String> {
        let Some(handle) = self.inner().handle.clone() else { return Vec::new() };
        // How it ended says something if it did so by itself.
        let ended = tokio::time::timeout(Duration::from_millis(100), handle.exit()).await;
        handle.shutdown();
        if tokio::time::timeout(PATIENCE, handle.ended()).await.is_err() {
            handle.kill();
        }
        let mut words = Vec::new();
        if let (Ok(Some(status)), true) = (ended, by_itself) {
            words.push(format!("the server's process has ended: {status}"));
        }
        let lines = std::mem::take(&mut self.inner().lines);
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().map(|line| format!("\n  | {line}")).collect();
            words.push(format!("the last that it wrote to standard error:{}", lines.concat()));
        }
        words
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
