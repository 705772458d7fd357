//! Standard error of the server: read and recorded, left unread, or closed.

use std::io::Read;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::limits::PROMPT;

/// What the client does with standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StderrMode {
    /// Reads and keeps it.
    Drain,
    /// Holds the pipe and never reads.
    LeaveUnread,
    /// Closes its end.
    Close,
}

/// The most that is recorded; a check that floods standard error cares about the server, not the flood.
const KEPT: usize = 4 * 1024 * 1024;

/// Words by which a person, or a client that shows standard error, would call it a crash.
const CRASH_WORDS: &[&str] = &[
    "panicked",
    "backtrace",
    "RUST_BACKTRACE",
    "stack overflow",
    "fatal runtime error",
    "SIGSEGV",
    "SIGABRT",
    "core dumped",
];

pub(crate) struct StderrReader {
    kept: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    /// Held only to keep the pipe open.
    unread: Option<ChildStderr>,
}

impl StderrReader {
    pub(crate) fn new(pipe: Option<ChildStderr>, treatment: StderrMode) -> std::io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut errors = Self { kept: Arc::clone(&kept), thread: None, unread: None };
        match (pipe, treatment) {
            (Some(pipe), StderrMode::Drain) => {
                let builder = std::thread::Builder::new().name("errors".to_owned());
                errors.thread = Some(builder.spawn(move || drain(pipe, &kept))?);
            }
            (pipe, StderrMode::LeaveUnread) => errors.unread = pipe,
            (_, StderrMode::Close) | (None, _) => {}
        }
        Ok(errors)
    }

    /// The recorded bytes, shared, so that they can be shown after the server has exited.
    pub(crate) fn kept(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.kept)
    }

    pub(crate) fn text(&self) -> String {
        text(&self.kept)
    }

    /// Waits for the end of the stream, but not for a process that inherited it from the server. Only after the
    /// server has ended.
    pub(crate) fn finish(&mut self) {
        self.unread = None;
        let start = Instant::now();
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && start.elapsed() < PROMPT {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

pub(crate) fn text(kept: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

fn drain(mut pipe: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length) = pipe.read(&mut buffer) {
        if length == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.extend_from_slice(&buffer[..length]);
        }
    }
}

/// The first line that looks like a crash: a panic, a trace, or an error that fell out of `main`.
pub(crate) fn crash_line(text: &str) -> Option<&str> {
    text.lines().find(|line| {
        CRASH_WORDS.iter().any(|word| line.contains(word)) || line.starts_with("Error:") || line.starts_with("error:")
    })
}
