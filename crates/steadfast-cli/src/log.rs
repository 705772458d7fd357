//! The log: lines on standard error, which nobody may be reading.
//!
//! A client that starts a server need not read its standard error, and a pipe holds only so much. So lines are handed to a
//! thread, and dropped when it does not keep up: a server never waits for its own log. Only when the command ends are the last
//! lines waited for, and not for long.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How many lines wait before lines are dropped.
const WAITING: usize = 1024;
/// How long the end waits for a line to be read; where none is, nobody reads.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the thread is given.
enum Entry {
    Line(Vec<u8>),
    /// All that came before it is written when this is dropped.
    Flush(#[allow(dead_code, reason = "its drop is the message")] SyncSender<()>),
}

static LINES: OnceLock<SyncSender<Entry>> = OnceLock::new();
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Writes what `RUST_LOG` asks for; what is of this level or worse if it does not ask.
pub(crate) fn start(level: &str) {
    let (lines, waiting) = sync_channel::<Entry>(WAITING);
    let thread = std::thread::Builder::new().name("log".to_owned());
    let started = thread.spawn(move || {
        for entry in waiting {
            if let Entry::Line(line) = entry {
                // If standard error is closed there is nowhere left to say so.
                let _ = io::stderr().write_all(&line);
                WRITTEN.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    if started.is_err() || LINES.set(lines.clone()).is_err() {
        return;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
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

/// Waits until the lines so far are written, or nobody seems to read them. The end of the process takes the thread with it.
pub(crate) fn finish() {
    let Some(lines) = LINES.get() else { return };
    let (done, written) = sync_channel(0);
    if lines.try_send(Entry::Flush(done)).is_err() {
        // The thread is stuck, and has been for a thousand lines.
        return;
    }
    let mut so_far = WRITTEN.load(Ordering::Relaxed);
    // Nothing ever comes but the end.
    while written.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        let now = WRITTEN.load(Ordering::Relaxed);
        if now == so_far {
            return;
        }
        so_far = now;
    }
}

struct Lines(SyncSender<Entry>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = OneLine<'a>;

    fn make_writer(&'a self) -> OneLine<'a> {
        OneLine { lines: &self.0, line: Vec::new() }
    }
}

/// One event's line; it is handed over when the event is done.
struct OneLine<'a> {
    lines: &'a SyncSender<Entry>,
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
        let _ = self.lines.try_send(Entry::Line(std::mem::take(&mut self.line)));
    }
}
