//! The log: lines on standard error, which nobody may be reading.
//!
//! A client that starts a server need not read its standard error, and a pipe holds only so much. So lines are handed to a
//! thread, and dropped when it does not keep up: a server never waits for its own log.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How many lines wait before lines are dropped.
const WAITING: usize = 1024;

/// Writes what `RUST_LOG` asks for, warnings if it does not ask.
pub(crate) fn start() {
    let (lines, waiting) = sync_channel::<Vec<u8>>(WAITING);
    let thread = std::thread::Builder::new().name("log".to_owned());
    let started = thread.spawn(move || {
        for line in waiting {
            // If standard error is closed there is nowhere left to say so.
            let _ = io::stderr().write_all(&line);
        }
    });
    if started.is_err() {
        return;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(Lines(lines)).with_ansi(false).init();
    // The panic of a tool is a line like any other: the default hook writes to standard error itself, and would wait.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no text");
        tracing::error!(place, "a panic was caught: {text}");
    }));
}

struct Lines(SyncSender<Vec<u8>>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = OneLine<'a>;

    fn make_writer(&'a self) -> OneLine<'a> {
        OneLine { lines: &self.0, line: Vec::new() }
    }
}

/// One event's line; it is handed over when the event is done.
struct OneLine<'a> {
    lines: &'a SyncSender<Vec<u8>>,
    line: Vec<u8>,
}

impl Write for OneLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OneLine<'_> {
    fn drop(&mut self) {
        // Full: the line is dropped, as said above.
        let _ = self.lines.try_send(std::mem::take(&mut self.line));
    }
}
